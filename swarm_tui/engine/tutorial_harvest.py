"""Judges the work of an agent on a batch of a tutorial's blocks: checks its commits and runs its tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swarm_tui.adapters.git import NoSpaceForGit
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.pytest import pytest_argument
from swarm_tui.adapters.pytest_runs import TestRun
from swarm_tui.agents.integrator.branches import AgentCommit, read_branch
from swarm_tui.agents.integrator.inputs import BranchInput, IntegratorInputs, PersonInput
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.pull import Pulled
from swarm_tui.engine.tutorial_task import action_of, items_of, reader_of, tutorial_of
from swarm_tui.errors import SwarmError
from swarm_tui.model.commit_kinds import kinds_of
from swarm_tui.model.events import Harvested
from swarm_tui.model.harvest import HarvestedChange
from swarm_tui.model.outcome import BLOCKING_KINDS, ChangeKind, ChangeStatus, Escalation, EscalationKind, Outcome
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import Result
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.results import ResultCache
from swarm_tui.testing.settings import settings_of_sweep
from swarm_tui.tutorial.commit_judging import (
    BlockKey,
    CommitEffect,
    CommitVerdict,
    TutorialState,
    judge_commits,
    tutorial_state,
    unfinished_items,
)
from swarm_tui.tutorial.open_work import OpenBlock

TESTS_TIMEOUT: Final = 900.0
_WITHOUT_COMMAND_KEY: Final = "needs_no_command"
_DEFAULT_REASONS: Final = {"fill": "no commands were written for it", "sync": "no test that cites it was written"}


@dataclass(frozen=True, slots=True)
class _Judged:
    """The judgement of a batch."""

    items: tuple[OpenBlock, ...]
    verdicts: tuple[CommitVerdict, ...]
    commits: Mapping[str, AgentCommit]
    unfinished: tuple[tuple[OpenBlock, str], ...]
    """The items that are not done, each with the reason."""


async def judge_batch(context: EngineContext, record: TestRecord, pulled: Pulled, harvested: Harvested) -> Harvested:
    """Return the harvest of a batch with its judgement; that of a failed or stopped agent is returned as it is."""
    outcome = pulled.outcome
    if outcome is None or outcome.errored:
        return harvested
    try:
        judged = await _judge(context, record, pulled.fetched.tip, _titles_without_command(outcome))
    except NoSpaceForGit:
        raise
    except SwarmError as error:
        reason = f"its commits cannot be judged: {plain(str(error), 200)}"
        report = harvested.harvest.model_copy(update={"errored": True, "changes": ()})
        return harvested.model_copy(update={"result": Result.FAILED, "reason": reason, "harvest": report})
    return _with_judgement(context.spec, harvested, judged)


def batch_inputs(context: EngineContext) -> IntegratorInputs:
    """Return a sweep over a tutorial as input of the integrator."""
    spec = context.spec
    name, email = spec.identity
    return IntegratorInputs(
        sweep=spec.sweep,
        repository=spec.repository,
        base=spec.base,
        branch=f"swarm/{spec.sweep}/integrator",
        committer=PersonInput(name=name, email=email),
        tutorial=tutorial_of(spec),
    )


def commits_of(context: EngineContext, record: TestRecord, tip: str) -> list[AgentCommit]:
    source = BranchInput(agent=record.agent, test=record.test, branch=record.branch, tip=tip)
    return read_branch(context.repository, source, batch_inputs(context)) if tip else []


async def _judge(context: EngineContext, record: TestRecord, tip: str, without_command: Sequence[str]) -> _Judged:
    spec, action = context.spec, action_of(context.spec)
    reader = reader_of(spec, context.repository)
    items, commits, states = await asyncio.to_thread(_read_states, context, record, tip)
    failing: dict[BlockKey, str] = {}
    if action == "sync" and commits:
        failing = await _failing_blocks(context, commits[-1], states[-1])
    made = [
        CommitEffect(commit.commit, commit.paths, before, after)
        for commit, before, after in zip(commits, states, states[1:], strict=False)
    ]
    allowed = spec.tests_folder if action == "sync" else reader.tutorial
    verdicts = tuple(judge_commits(action, items, made, allowed, failing))
    unfinished = tuple(unfinished_items(items, verdicts, without_command, _DEFAULT_REASONS[action]))
    return _Judged(items, verdicts, {commit.commit: commit for commit in commits}, unfinished)


def _read_states(
    context: EngineContext, record: TestRecord, tip: str
) -> tuple[tuple[OpenBlock, ...], list[AgentCommit], list[TutorialState]]:
    """Return the items of a batch, its commits, and the states at the base and after each commit."""
    spec, action = context.spec, action_of(context.spec)
    reader = reader_of(spec, context.repository)
    items = items_of(spec, reader.read(spec.base), record)
    commits = commits_of(context, record, tip)
    trees = [spec.base, *(commit.tree for commit in commits)]
    return items, commits, [tutorial_state(action, items, reader.read(tree)) for tree in trees]


async def _failing_blocks(context: EngineContext, last: AgentCommit, state: TutorialState) -> dict[BlockKey, str]:
    """Run the tests of the batch's blocks at its last commit; return why, for each block with a test that fails."""
    spec = context.spec
    wanted = {key: names for key, names in state.tests.items() if names and key in state.done}
    named = list(dict.fromkeys(name for names in wanted.values() for name in names))
    if not named:
        return {}
    run = await _run_tests(context, last, named)
    return {
        key: plain(f"its test {bad[0]} {_failure_reason(run, _id_of(spec, bad[0]))}", 300)
        for key, names in wanted.items()
        if (bad := [name for name in names if not run.is_green(_id_of(spec, name))])
    }


def _failure_reason(run: TestRun, test: str) -> str:
    result = run.outcomes.get(test)
    if result is None:
        return f"cannot be run: {run.complaint or 'pytest does not find it'}"
    return "does not pass" if result == "failed" else f"is {result}"


async def _run_tests(context: EngineContext, last: AgentCommit, named: Sequence[str]) -> TestRun:
    spec = context.spec
    arguments = {_id_of(spec, name): pytest_argument(name, name.partition("::")[0], spec.folder) for name in named}
    settings = settings_of_sweep(spec)
    with ObjectSpace(context.repository) as space:
        async with TestCopies(space, settings, ResultCache(None, settings.key), base=spec.base, count=1) as copies:
            copies.arguments.update(arguments)
            return await copies.run(last.tree, list(arguments), TESTS_TIMEOUT)


def _id_of(spec: SweepSpec, name: str) -> str:
    """Return the node id of a test: its path begins at pytest's rootdir."""
    file, separator, rest = name.partition("::")
    return os.path.relpath(file, spec.root or ".") + separator + rest


def _titles_without_command(outcome: Outcome) -> list[str]:
    """Return the titles of the comments that need no command, as the agent reports."""
    titles: Any = (outcome.model_extra or {}).get(_WITHOUT_COMMAND_KEY)
    return [title for title in titles if isinstance(title, str)] if isinstance(titles, list) else []


def _with_judgement(spec: SweepSpec, harvested: Harvested, judged: _Judged) -> Harvested:
    changes = tuple(_change(spec, verdict, judged.commits[verdict.commit]) for verdict in judged.verdicts)
    escalations = tuple(_escalations(spec, harvested.harvest.escalations, judged))
    report = harvested.harvest.model_copy(
        update={
            "changes": changes,
            "escalations": escalations,
            "passing_before": False,
            "passing_after": not judged.unfinished,
        }
    )
    return harvested.model_copy(update={"harvest": report} | _result(spec, judged, escalations))


def _result(spec: SweepSpec, judged: _Judged, escalations: Sequence[Escalation]) -> dict[str, Any]:
    is_taken = any(not verdict.problem for verdict in judged.verdicts)
    reason = ""
    if judged.unfinished:
        item, why = judged.unfinished[0]
        done = len(judged.items) - len(judged.unfinished)
        reason = plain(f"{done} of {len(judged.items)} blocks; {item.title!r}: {why}", 300)
    if is_taken:
        is_mending = all(item.near_misses for each in judged.verdicts if not each.problem for item in each.items)
        result = Result.TUTORIAL_FIX if spec.kind == "fill" else Result.TEST_FIX if is_mending else Result.BETTER
        return {"result": result, "reason": reason}
    blocker = next((each for each in escalations if each.kind in BLOCKING_KINDS), None)
    if blocker is not None:
        return {"result": Result.BLOCKED, "reason": plain(blocker.title or blocker.detail_markdown, 300)}
    return {"result": Result.UNRESOLVED if judged.unfinished else Result.CLEAN, "reason": reason}


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


def _escalations(spec: SweepSpec, reported: Iterable[Escalation], judged: _Judged) -> Iterable[Escalation]:
    """Return an escalation for each unfinished block, with the agent's own text about it, then its other ones."""
    rest = list(reported)
    for item, why in judged.unfinished:
        own = next((each for each in rest if _is_about(each, item)), None)
        if own is not None:
            rest.remove(own)
        detail = f"{own.detail_markdown}\n\n{why}" if own is not None and own.detail_markdown else why
        yield Escalation(
            kind=EscalationKind.HARD_TO_USE,
            title=f"{tutorial_of(spec)}:{item.block.line} {item.title}",
            detail_markdown=plain_lines(detail.strip()),
        )
    yield from rest


def _is_about(escalation: Escalation, item: OpenBlock) -> bool:
    is_hard = escalation.kind == EscalationKind.HARD_TO_USE
    return is_hard and plain(item.block.title, 300).strip().casefold() == escalation.title.strip().casefold()
