"""Judges what an agent made of its batch of a tutorial's blocks: checks its commits and runs its tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swarm_tui.adapters.git import NoSpaceForGit
from swarm_tui.adapters.pytest import pytest_argument
from swarm_tui.adapters.pytest_runs import TestRun
from swarm_tui.agents.integrator.branches import AgentCommit, read_branch
from swarm_tui.agents.integrator.classify import kinds_of
from swarm_tui.agents.integrator.inputs import BranchInput, IntegratorInputs, PersonInput, TestInput
from swarm_tui.agents.integrator.scratch import ScratchCopies
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.pull import Pulled
from swarm_tui.engine.tutorial_task import action_of, items_of, reader_of, tutorial_of
from swarm_tui.errors import SwarmError
from swarm_tui.model.events import Harvested
from swarm_tui.model.harvest import HarvestedChange
from swarm_tui.model.outcome import ChangeKind, ChangeStatus, Escalation, EscalationKind, Outcome
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import Result
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.tutorial.loop import OpenBlock
from swarm_tui.tutorial.loop_judging import CommitVerdict, MadeCommit, Standing, hard_items, judge_commits, stand

TESTS_TIMEOUT: Final = 900.0
_NEEDLESS_KEY: Final = "needs_no_command"
_WHY_NOT: Final = {
    "fill": "no commands were written for it",
    "sync": "no test that cites it was written",
}


@dataclass(frozen=True, slots=True)
class _Judged:
    """What became of a batch."""

    items: tuple[OpenBlock, ...]
    verdicts: tuple[CommitVerdict, ...]
    commits: Mapping[str, AgentCommit]
    hard: tuple[tuple[OpenBlock, str], ...]


async def judge_batch(context: EngineContext, record: TestRecord, pulled: Pulled, harvested: Harvested) -> Harvested:
    """Return what a batch came to; where the agent failed or was stopped it stays as it was judged already."""
    outcome = pulled.outcome
    if outcome is None or outcome.errored:
        return harvested
    try:
        judged = await _judge(context, record, pulled.brought.tip, _needless(outcome))
    except NoSpaceForGit:
        raise
    except SwarmError as error:
        reason = f"its commits cannot be judged: {plain(str(error), 200)}"
        report = harvested.harvest.model_copy(update={"errored": True, "changes": ()})
        return harvested.model_copy(update={"result": Result.FAILED, "reason": reason, "harvest": report})
    return _with_judgement(context.spec, harvested, judged)


def batch_inputs(context: EngineContext) -> IntegratorInputs:
    """Return what the integrator's parts need to know of a sweep over a tutorial."""
    spec = context.spec
    name, email = spec.identity
    return IntegratorInputs(
        sweep=spec.sweep,
        repository=spec.repository,
        base=spec.base,
        branch=f"swarm/{spec.sweep}/integrator",
        committer=PersonInput(name=name, email=email),
        tutorial=tutorial_of(spec),
        python=spec.python,
        folder=spec.folder,
        import_roots=spec.import_roots or (".",),
        pytest_options=spec.run_options,
        setup=spec.setup or "",
    )


def commits_of(context: EngineContext, record: TestRecord, tip: str) -> list[AgentCommit]:
    """Return the commits that an agent made, oldest first."""
    source = BranchInput(agent=record.agent, test=record.test, branch=record.branch, tip=tip)
    return read_branch(context.repository, source, batch_inputs(context)) if tip else []


async def _judge(context: EngineContext, record: TestRecord, tip: str, needless: Sequence[str]) -> _Judged:
    spec, action = context.spec, action_of(context.spec)
    reader = reader_of(spec, context.repository)
    items, commits, standings = await asyncio.to_thread(_look, context, record, tip)
    failing: dict[tuple[str, ...], str] = {}
    if action == "sync" and commits:
        failing = await _failing(context, commits[-1], standings[-1])
    made = [
        MadeCommit(commit.commit, commit.paths, before, after)
        for commit, before, after in zip(commits, standings, standings[1:], strict=False)
    ]
    allowed = spec.tests_folder if action == "sync" else reader.tutorial
    verdicts = tuple(judge_commits(action, items, made, allowed, failing))
    hard = tuple(hard_items(items, verdicts, needless, _WHY_NOT[action]))
    return _Judged(items, verdicts, {commit.commit: commit for commit in commits}, hard)


def _look(
    context: EngineContext, record: TestRecord, tip: str
) -> tuple[tuple[OpenBlock, ...], list[AgentCommit], list[Standing]]:
    """Return the items, the commits, and how the items stand at the base and after each commit."""
    spec, action = context.spec, action_of(context.spec)
    reader = reader_of(spec, context.repository)
    items = items_of(spec, reader.read(spec.base), record)
    commits = commits_of(context, record, tip)
    trees = [spec.base, *(commit.tree for commit in commits)]
    return items, commits, [stand(action, items, reader.read(tree)) for tree in trees]


async def _failing(context: EngineContext, last: AgentCommit, standing: Standing) -> dict[tuple[str, ...], str]:
    """Run the tests of the batch's blocks as the agent left them; return the blocks of which one does not pass."""
    spec = context.spec
    wanted = {key: names for key, names in standing.tests.items() if names and key in standing.done}
    named = list(dict.fromkeys(name for names in wanted.values() for name in names))
    if not named:
        return {}
    run = await _run(context, last, named)
    return {
        key: plain(f"its test {bad[0]} {_how(run, _id_of(spec, bad[0]))}", 300)
        for key, names in wanted.items()
        if (bad := [name for name in names if not run.is_green(_id_of(spec, name))])
    }


def _how(run: TestRun, test: str) -> str:
    result = run.outcomes.get(test)
    if result is None:
        return f"cannot be run: {run.complaint or 'pytest does not find it'}"
    return "does not pass" if result == "failed" else f"is {result}"


async def _run(context: EngineContext, last: AgentCommit, named: Sequence[str]) -> TestRun:
    spec = context.spec
    tests = tuple(
        TestInput(test=_id_of(spec, name), argument=pytest_argument(name, file, spec.folder), file=file)
        for name, file in ((name, name.partition("::")[0]) for name in named)
    )
    inputs = batch_inputs(context).model_copy(update={"tests": tests})
    copies = ScratchCopies(context.repository, inputs, count=1)
    try:
        return await copies.run_anew(last.commit, [test.test for test in tests], TESTS_TIMEOUT)
    finally:
        await asyncio.to_thread(copies.close)


def _id_of(spec: SweepSpec, name: str) -> str:
    """Return a test as pytest names it: from its rootdir."""
    file, separator, rest = name.partition("::")
    return os.path.relpath(file, spec.root or ".") + separator + rest


def _needless(outcome: Outcome) -> list[str]:
    """Return the titles of the comments that need no command, as the agent says."""
    told: Any = (outcome.model_extra or {}).get(_NEEDLESS_KEY)
    return [title for title in told if isinstance(title, str)] if isinstance(told, list) else []


def _with_judgement(spec: SweepSpec, harvested: Harvested, judged: _Judged) -> Harvested:
    changes = tuple(_change(spec, verdict, judged.commits[verdict.commit]) for verdict in judged.verdicts)
    escalations = tuple(_escalations(spec, harvested.harvest.escalations, judged))
    report = harvested.harvest.model_copy(
        update={
            "changes": changes,
            "escalations": escalations,
            "passing_before": False,
            "passing_after": not judged.hard,
        }
    )
    return harvested.model_copy(update={"harvest": report} | _result(spec, judged, escalations))


def _result(spec: SweepSpec, judged: _Judged, escalations: Sequence[Escalation]) -> dict[str, Any]:
    """Return result and reason of a batch."""
    is_taken = any(not verdict.problem for verdict in judged.verdicts)
    reason = ""
    if judged.hard:
        item, why = judged.hard[0]
        done = len(judged.items) - len(judged.hard)
        reason = plain(f"{done} of {len(judged.items)} blocks; {item.title!r}: {why}", 300)
    if is_taken:
        is_mending = all(item.near for each in judged.verdicts if not each.problem for item in each.items)
        result = Result.TUTORIAL_FIX if spec.kind == "fill" else Result.TEST_FIX if is_mending else Result.BETTER
        return {"result": result, "reason": reason}
    blocker = next((each for each in escalations if each.kind is EscalationKind.BLOCKER), None)
    if blocker is not None:
        return {"result": Result.BLOCKED, "reason": plain(blocker.title or blocker.detail_markdown, 300)}
    return {"result": Result.UNRESOLVED if judged.hard else Result.CLEAN, "reason": reason}


def _change(spec: SweepSpec, verdict: CommitVerdict, commit: AgentCommit) -> HarvestedChange:
    usual = ChangeKind.FIX_TUTORIAL if spec.kind == "fill" else ChangeKind.IMPROVE_TEST
    kind, *_ = (*kinds_of(commit.message), usual)
    about = ", ".join(f"line {item.block.line}, {item.title}" for item in verdict.items) or commit.subject
    return HarvestedChange(
        kind=kind.value,
        status=(ChangeStatus.FAILED if verdict.problem else ChangeStatus.SUCCEEDED).value,
        summary=f"{about}: {verdict.problem}" if verdict.problem else about,
        commit=verdict.commit,
    )


def _escalations(spec: SweepSpec, told: Iterable[Escalation], judged: _Judged) -> Iterable[Escalation]:
    """Return what is hard to use: each block that is not done, in the agent's words too; then all else that it says."""
    rest = list(told)
    for item, why in judged.hard:
        words = next((each for each in rest if _is_about(each, item)), None)
        if words is not None:
            rest.remove(words)
        detail = f"{words.detail_markdown}\n\n{why}" if words is not None and words.detail_markdown else why
        yield Escalation(
            kind=EscalationKind.HARD_TO_USE,
            title=f"{tutorial_of(spec)}:{item.block.line} {item.title}",
            detail_markdown=plain_lines(detail.strip()),
        )
    yield from rest


def _is_about(escalation: Escalation, item: OpenBlock) -> bool:
    is_hard = escalation.kind is EscalationKind.HARD_TO_USE
    return is_hard and plain(item.block.title, 300).strip().casefold() == escalation.title.strip().casefold()
