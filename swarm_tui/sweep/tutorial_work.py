"""Task, prompt and judging of a tutorial's batches."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec import structs

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.pytest import TestRun, pytest_argument
from swarm_tui.agents.contract import Task
from swarm_tui.agents.prompting import FILL_TEMPLATE, SYNC_TEMPLATE, render_tutorial_prompt
from swarm_tui.errors import ResourceShortage, SwarmError
from swarm_tui.integrator.branches import AgentCommit, read_branch
from swarm_tui.integrator.inputs import BranchInput, IntegratorInputs, PersonInput
from swarm_tui.journal.events import Pulled
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.pulled import (
    BLOCKING_KINDS,
    ChangeKind,
    ChangeStatus,
    Escalation,
    EscalationKind,
    PulledChange,
    kinds_of,
)
from swarm_tui.model.report import AgentReport
from swarm_tui.model.results import Result
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.copies import task_for
from swarm_tui.sweep.pull import PulledOutput
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.settings import settings_of_sweep
from swarm_tui.tutorial.judging import (
    BlockKey,
    CommitEffect,
    CommitVerdict,
    TutorialState,
    judge_commits,
    tutorial_state,
    unfinished_items,
)
from swarm_tui.tutorial.open_work import Action, OpenBlock, file_for, find_open_work, guess_tool, items_of_batch
from swarm_tui.tutorial.read import CommittedTutorial, CommittedTutorialReader

_DOCS_NAMED: Final = 40
_DOC_SUFFIXES: Final = frozenset({".md", ".rst", ".adoc", ".1", ".5", ".7", ".8"})


def action_of(spec: SweepSpec) -> Action:
    assert spec.kind != "tests", "a sweep over a tutorial"
    return spec.kind


def tutorial_of(spec: SweepSpec) -> str:
    return os.path.relpath(spec.tutorial or "", spec.repository)


def reader_of(spec: SweepSpec, repository: Repository) -> CommittedTutorialReader:
    """Return a reader of a sweep's tutorial and tests at any commit."""
    return CommittedTutorialReader(repository, tutorial_of(spec), spec.tests_folder)


def items_of(spec: SweepSpec, tutorial: CommittedTutorial, record: TestRecord) -> tuple[OpenBlock, ...]:
    action = action_of(spec)
    return items_of_batch(action, find_open_work(action, tutorial), record.block)


def tutorial_task(spec: SweepSpec, record: TestRecord, items: Sequence[OpenBlock], command: str) -> Task:
    """Return the content of the task file for one batch; its command checks the batch's blocks."""
    tutorial = tutorial_of(spec)
    blocks = [f"--block={item.block.title}" for item in items]
    folder = [spec.tests_folder] if spec.tests_folder else []
    check = (command, "tutorial", "check", *blocks, "--", tutorial, *folder)
    return replace(task_for(spec, record), file=tutorial, folder="", pytest=check)


def tutorial_prompt(spec: SweepSpec, repository: Repository, record: TestRecord, command: str) -> tuple[Task, str]:
    """Return the task of a batch, and the prompt for it."""
    found = reader_of(spec, repository).read(spec.base)
    items = items_of(spec, found, record)
    task = tutorial_task(spec, record, items, command)
    template = FILL_TEMPLATE if spec.kind == "fill" else SYNC_TEMPLATE
    values = {
        "items": [
            {
                "title": item.block.title,
                "line": item.block.line,
                "section": item.block.section,
                "text": item.block.text,
                "file": file_for(item, spec.tests_folder, found.paths),
                "near": [
                    {"test": f"{miss.test.file}::{miss.test.name}", "difference": "\n".join(miss.difference)}
                    for miss in item.near_misses
                ],
            }
            for item in items
        ],
        "tutorial": tutorial_of(spec),
        "tests_folder": spec.tests_folder,
        "tool": guess_tool(found.text or ""),
        "documents": _documents(repository, spec.base),
        "material": spec.material,
        "python": spec.python,
    }
    return task, render_tutorial_prompt(Path(spec.mapper_prompt) if spec.mapper_prompt else template, task, values)


def _documents(repository: Repository, base: str) -> list[str]:
    paths = repository.run("ls-tree", "-r", "-z", "--full-tree", "--name-only", base).fields
    chosen = [path for path in paths if _is_document(PurePosixPath(path))]
    return sorted(chosen, key=lambda path: (path.count("/"), path))[:_DOCS_NAMED]


def _is_document(path: PurePosixPath) -> bool:
    is_in_docs = bool({"doc", "docs", "man"} & {part.lower() for part in path.parts[:-1]})
    return path.suffix.lower() in _DOC_SUFFIXES and (is_in_docs or path.stem.upper() == "README")


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


async def judge_batch(context: SweepContext, record: TestRecord, pulled: PulledOutput, event: Pulled) -> Pulled:
    """Return the event of a batch with its judgement. The event of a failed or stopped agent stays unchanged."""
    outcome = pulled.outcome
    if outcome is None or outcome.errored:
        return event
    try:
        judged = await _judge(context, record, pulled.fetched.tip, _titles_without_command(outcome))
    except ResourceShortage:
        raise
    except SwarmError as error:
        reason = f"its commits cannot be judged: {plain(str(error), 200)}"
        report = structs.replace(event.pulled, errored=True, changes=())
        return structs.replace(event, result=Result.ERROR, reason=reason, pulled=report)
    judgement = _with_judgement(context.spec, event, judged)
    reason = ". ".join(filter(None, (judgement.reason, *pulled.fetched.remarks)))
    return structs.replace(judgement, reason=plain(reason, 600))


def batch_inputs(context: SweepContext) -> IntegratorInputs:
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


def commits_of(context: SweepContext, record: TestRecord, tip: str) -> list[AgentCommit]:
    source = BranchInput(agent=record.agent, test=record.test, branch=record.branch, tip=tip)
    return read_branch(context.repository, source, batch_inputs(context)) if tip else []


async def _judge(context: SweepContext, record: TestRecord, tip: str, without_command: Sequence[str]) -> _Judged:
    spec, action = context.spec, action_of(context.spec)
    reader = reader_of(spec, context.repository)
    items, commits, states = await asyncio.to_thread(_read_states, context, record, tip)
    failing: dict[BlockKey, str] = {}
    if action == "sync" and commits:
        failing = await _failing_blocks(context, commits[-1], states[-1])
    made = [
        CommitEffect(commit.id, tuple(sorted(commit.paths)), before, after)
        for commit, before, after in zip(commits, states, states[1:], strict=False)
    ]
    allowed = spec.tests_folder if action == "sync" else reader.tutorial
    verdicts = tuple(judge_commits(action, items, made, allowed, failing))
    unfinished = tuple(unfinished_items(items, verdicts, without_command, _DEFAULT_REASONS[action]))
    return _Judged(items, verdicts, {commit.id: commit for commit in commits}, unfinished)


def _read_states(
    context: SweepContext, record: TestRecord, tip: str
) -> tuple[tuple[OpenBlock, ...], list[AgentCommit], list[TutorialState]]:
    """Return the items of a batch, its commits, and the states at the base and after each commit."""
    spec, action = context.spec, action_of(context.spec)
    reader = reader_of(spec, context.repository)
    items = items_of(spec, reader.read(spec.base), record)
    commits = commits_of(context, record, tip)
    trees = [spec.base, *(commit.tree for commit in commits)]
    return items, commits, [tutorial_state(action, items, reader.read(tree)) for tree in trees]


async def _failing_blocks(context: SweepContext, last: AgentCommit, state: TutorialState) -> dict[BlockKey, str]:
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


async def _run_tests(context: SweepContext, last: AgentCommit, named: Sequence[str]) -> TestRun:
    spec = context.spec
    arguments = {_id_of(spec, name): pytest_argument(name, name.partition("::")[0], spec.folder) for name in named}
    with ObjectSpace(context.repository) as space:
        async with TestCopies(space, settings_of_sweep(spec), base=spec.base, count=1) as copies:
            copies.arguments.update(arguments)
            return await copies.run(last.tree, list(arguments), TESTS_TIMEOUT)


def _id_of(spec: SweepSpec, name: str) -> str:
    """Return the node id of a test: its path begins at pytest's rootdir."""
    file, separator, rest = name.partition("::")
    return os.path.relpath(file, spec.root or ".") + separator + rest


def _titles_without_command(outcome: AgentReport) -> list[str]:
    """Return the titles of the comments that need no command, as the agent reports."""
    titles: Any = (outcome.model_extra or {}).get(_WITHOUT_COMMAND_KEY)
    return [title for title in titles if isinstance(title, str)] if isinstance(titles, list) else []


def _with_judgement(spec: SweepSpec, event: Pulled, judged: _Judged) -> Pulled:
    changes = tuple(_change(spec, verdict, judged.commits[verdict.commit]) for verdict in judged.verdicts)
    escalations = tuple(_escalations(spec, event.pulled.escalations, judged))
    report = structs.replace(
        event.pulled,
        changes=changes,
        escalations=escalations,
        passing_before=False,
        passing_after=not judged.unfinished,
    )
    return structs.replace(event, pulled=report, **_result(spec, judged, escalations))


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


def _change(spec: SweepSpec, verdict: CommitVerdict, commit: AgentCommit) -> PulledChange:
    usual = ChangeKind.FIX_TUTORIAL if spec.kind == "fill" else ChangeKind.IMPROVE_TEST
    kind, *_ = (*kinds_of(commit.message), usual)
    about = ", ".join(f"line {item.block.line}, {item.title}" for item in verdict.items) or commit.subject
    return PulledChange(
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
            kind=EscalationKind.UNFINISHED_BLOCK if own is None else EscalationKind.HARD_TO_USE,
            title=f"{tutorial_of(spec)}:{item.block.line} {item.title}",
            detail_markdown=plain_lines(detail.strip()),
        )
    yield from rest


def _is_about(escalation: Escalation, item: OpenBlock) -> bool:
    is_hard = escalation.kind == EscalationKind.HARD_TO_USE
    return is_hard and plain(item.block.title, 300).strip().casefold() == escalation.title.strip().casefold()
