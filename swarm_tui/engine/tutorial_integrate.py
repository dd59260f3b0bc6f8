"""Builds the integrated branch of a sweep over a tutorial: a commit for each block; tests of removed blocks go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swarm_tui.adapters.git import Identity
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.agents.integrator.branches import AgentCommit
from swarm_tui.agents.integrator.build_branch import conflict_reason
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.integrate import integrated_branch, set_branch, with_open_tests, write_outcome
from swarm_tui.engine.tutorial_harvest import commits_of
from swarm_tui.engine.tutorial_task import action_of, reader_of
from swarm_tui.model.commit_kinds import without_marks
from swarm_tui.model.events import Integrated, Integrating
from swarm_tui.model.formatting import counted
from swarm_tui.model.outcome import ChangeStatus, EscalationKind, IntegratorOutcome, LeftOut
from swarm_tui.model.python_source import read_python
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.tutorial.citations import TestFunction
from swarm_tui.tutorial.committed import CommittedTutorialReader
from swarm_tui.tutorial.open_work import find_open_work
from swarm_tui.tutorial.removal import without_tests

_TESTS_NAMED: Final = 20


@dataclass(slots=True)
class _Branch:
    """The branch so far, and its report."""

    commit: str
    tree: str
    ranking: list[dict[str, Any]] = field(default_factory=list)
    """One entry for each commit, in their order."""
    left_out: list[LeftOut] = field(default_factory=list)

    def add_commit(self, commit: str, tree: str, why: str, records: Sequence[TestRecord]) -> None:
        self.commit, self.tree = commit, tree
        self.ranking.append(
            {
                "rank": len(self.ranking) + 1,
                "commit": commit,
                "branches": [record.branch for record in records],
                "agents": [record.agent for record in records],
                "why": why,
            }
        )


async def integrate_blocks(context: EngineContext) -> None:
    """Make the integrated branch of a sweep over a tutorial; raise SwarmError when that is not possible."""
    harvested = [record for record in context.state.tests() if record.state is State.DONE and record.harvest.tip]
    context.record(Integrating(by="builtin", branches=len(harvested)))
    branch, open_blocks = await asyncio.to_thread(_build_branch, context, harvested)
    is_made = branch.commit != context.spec.base
    outcome = _outcome(branch, context, open_blocks)
    write_outcome(context, outcome)
    context.record(
        Integrated(
            branch=integrated_branch(context.spec) if is_made else None,
            tip=branch.commit if is_made else "",
            fixes=len(branch.ranking),
            left_out=len(branch.left_out),
            detail=_summary_line(branch, open_blocks, outcome),
        )
    )


def _build_branch(context: EngineContext, records: Sequence[TestRecord]) -> tuple[_Branch, int]:
    """Make the branch; return it and the number of blocks that are still open on it."""
    spec, repository = context.spec, context.repository
    branch = _Branch(spec.base, repository.tree_of(spec.base))
    reader = reader_of(spec, repository)
    with ObjectSpace(repository) as space:
        for record in records:
            taken = {change.commit for change in record.harvest.changes if change.status == ChangeStatus.SUCCEEDED}
            for change in record.harvest.changes:
                if change.status != ChangeStatus.SUCCEEDED:
                    branch.left_out.append(LeftOut(branch=record.branch, commit=change.commit, reason=change.summary))
            for commit in commits_of(context, record, record.harvest.tip) if taken else ():
                if commit.commit in taken:
                    _cherry_pick(space, branch, record, commit, spec.sweep)
        if branch.commit != spec.base:
            space.copy_to_repository(branch.commit, known=[spec.base])
        last_picked = branch.commit
        open_work = find_open_work(action_of(spec), reader.read(branch.tree))
        _propose_removals(context, space, reader, branch, open_work.removed)
        if branch.commit != last_picked:
            space.copy_to_repository(branch.commit, known=[last_picked])
    if branch.commit != spec.base:
        set_branch(repository, spec, branch.commit)
    return branch, len(open_work.items)


def _cherry_pick(space: ObjectSpace, branch: _Branch, record: TestRecord, commit: AgentCommit, sweep: str) -> None:
    merge = space.merge(base=commit.parent_tree, ours=branch.tree, theirs=commit.tree)
    if not merge.is_clean:
        reason = f"{commit.subject!r} {conflict_reason(merge.conflict_paths, ())}"
        branch.left_out.append(LeftOut(branch=record.branch, commit=commit.commit, reason=reason))
        return
    if merge.tree == branch.tree:
        return
    message = _message(commit, record, sweep).encode()
    made = space.commit(merge.tree, [branch.commit], message, author=commit.author, authored=f"@{commit.authored}")
    why = next((change.summary for change in record.harvest.changes if change.commit == commit.commit), "")
    branch.add_commit(made, merge.tree, why, [record])


def _message(commit: AgentCommit, record: TestRecord, sweep: str) -> str:
    subject, _, body = plain_lines(commit.message).partition("\n")
    trailers = f"Agent: {record.agent}\nSweep: {sweep}"
    parts = (without_marks(subject) or "(no title)", body.strip(), trailers)
    return "\n\n".join(part for part in parts if part) + "\n"


def _propose_removals(
    context: EngineContext,
    space: ObjectSpace,
    reader: CommittedTutorialReader,
    branch: _Branch,
    removed: Iterable[TestFunction],
) -> None:
    """Remove the tests of removed blocks, with one commit for each file."""
    by_file: dict[str, list[str]] = {}
    for test in removed:
        by_file.setdefault(test.file, []).append(test.name)
    for path, names in by_file.items():
        entry = space.entry(branch.tree, path)
        left = without_tests(reader.source(branch.tree, path), names)
        if entry is None:
            continue
        if left is not None and read_python(left) is None:
            reason = f"{plain(path, 100)} would be no Python without {', '.join(names[:3])}"
            branch.left_out.append(LeftOut(reason=reason))
            continue
        new = None if left is None else TreeEntry(entry.mode, space.write("blob", left))
        tree = space.with_entries(branch.tree, {path: new})
        many = "a test" if len(names) == 1 else f"{len(names)} tests"
        subject = f"Remove {many} of blocks that are gone from {plain(path, 100)}"
        listed = "\n".join(f"* {plain(name, 200)}" for name in names[:_TESTS_NAMED])
        reason = "The tutorial does not hold what they cite any more."
        message = f"{subject}\n\n{reason}\n\n{listed}\n\nSweep: {context.spec.sweep}\n"
        name, email = context.spec.identity
        author = Identity(name, email) if name and email else None
        made = space.commit(tree, [branch.commit], message.encode(), author=author)
        branch.add_commit(made, tree, "proposed: the tutorial does not hold these blocks any more", ())


def _outcome(branch: _Branch, context: EngineContext, open_blocks: int) -> IntegratorOutcome:
    records = list(context.state.tests())
    extra: dict[str, Any] = {"by": "builtin", "ranking": branch.ranking, "open_blocks": open_blocks}
    outcome = IntegratorOutcome(failed=tuple(branch.left_out), **extra)
    return with_open_tests(outcome, records)


def _summary_line(branch: _Branch, open_blocks: int, outcome: IntegratorOutcome) -> str:
    count = len(branch.ranking)
    parts = [counted(count, "commit")] if count else ["nothing could be taken"]
    parts.append("no block is left open" if not open_blocks else f"{open_blocks} blocks are left open")
    hard = sum(each.kind == EscalationKind.HARD_TO_USE for each in outcome.escalations)
    return ", ".join([*parts, *([f"{hard} hard to use"] if hard else [])])
