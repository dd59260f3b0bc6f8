"""The integrated branch of a tutorial sweep."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swarm_tui.adapters.git import Identity
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.integrator.branches import AgentCommit
from swarm_tui.integrator.build import conflict_reason
from swarm_tui.integrator.events import Integrated, IntegrationStarted
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.pulled import ChangeStatus, EscalationKind, without_marks
from swarm_tui.model.report import IntegratorReport, LeftOut
from swarm_tui.model.results import State
from swarm_tui.model.text import plain, plain_lines, read_python
from swarm_tui.review.picking import CommitBuilder, pick
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.integrate import integrated_branch, set_branch, with_open_tests, write_outcome
from swarm_tui.sweep.tutorial_work import action_of, commits_of, reader_of
from swarm_tui.tutorial.citations import TestFunction
from swarm_tui.tutorial.open_work import find_open_work
from swarm_tui.tutorial.read import CommittedTutorialReader

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def without_tests(source: bytes, names: Collection[str]) -> bytes | None:
    """Return the source without the tests (`name` or `Class::name`); None if nothing else is left.

    A class that loses its last test goes as well.
    """
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    removed: list[ast.stmt] = []
    _find(tree.body, "", frozenset(names), removed)
    gone: set[int] = set()
    for node in removed:
        first = min([node.lineno, *(each.lineno for each in _decorators(node))])
        while first > 1 and lines[first - 2].lstrip().startswith(b"#"):
            first -= 1
        last = node.end_lineno or node.lineno
        gone.update(range(first, last + 1))
        # Remove the empty lines above a test, too.
        while first > 1 and not lines[first - 2].strip():
            first -= 1
            gone.add(first)
    left = [node for node in tree.body if node not in removed]
    if all(_is_preamble(node) for node in left):
        return None
    return b"".join(line for number, line in enumerate(lines, 1) if number not in gone)


def _find(body: list[ast.stmt], prefix: str, names: frozenset[str], removed: list[ast.stmt]) -> None:
    for node in body:
        if isinstance(node, _Function) and prefix + node.name in names:
            removed.append(node)
        elif isinstance(node, ast.ClassDef):
            below: list[ast.stmt] = []
            _find(node.body, f"{prefix}{node.name}::", names, below)
            kept = [each for each in node.body if each not in below]
            is_empty = all(_is_preamble(each) for each in kept)
            removed += [node] if below and is_empty else below


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, _Function | ast.ClassDef) else []


def _is_preamble(node: ast.stmt) -> bool:
    """Return whether a statement is a docstring, an import or `pass`."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)


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


async def integrate_blocks(context: SweepContext) -> None:
    """Make the integrated branch of a sweep over a tutorial; raise SwarmError when that is not possible."""
    pulled = [record for record in context.state.tests() if record.state is State.DONE and record.pulled.tip]
    context.record(IntegrationStarted(by="builtin", branches=len(pulled)))
    branch, open_blocks = await asyncio.to_thread(_build_branch, context, pulled)
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


def _build_branch(context: SweepContext, records: Sequence[TestRecord]) -> tuple[_Branch, int]:
    """Make the branch; return it and the number of blocks that are still open on it."""
    spec, repository = context.spec, context.repository
    branch = _Branch(spec.base, repository.tree_of(spec.base))
    reader = reader_of(spec, repository)
    with ObjectSpace(repository) as space:
        for record in records:
            taken = {change.commit for change in record.pulled.changes if change.status == ChangeStatus.SUCCEEDED}
            for change in record.pulled.changes:
                if change.status != ChangeStatus.SUCCEEDED:
                    branch.left_out.append(LeftOut(branch=record.branch, commit=change.commit, reason=change.summary))
            for commit in commits_of(context, record, record.pulled.tip) if taken else ():
                if commit.id in taken:
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
    step = pick(space, commit, branch.tree)
    if step.merge is not None:
        reason = f"{commit.subject!r} {conflict_reason(step.merge.conflict_paths, ())}"
        branch.left_out.append(LeftOut(branch=record.branch, commit=commit.id, reason=reason))
    elif step.tree != branch.tree:
        new = CommitBuilder(space, branch.commit).add(step.tree, _message(commit, record, sweep), like=commit)
        why = next((change.summary for change in record.pulled.changes if change.commit == commit.id), "")
        branch.add_commit(new, step.tree, why, [record])


def _message(commit: AgentCommit, record: TestRecord, sweep: str) -> str:
    subject, _, body = plain_lines(commit.message).partition("\n")
    trailers = f"Agent: {record.agent}\nSweep: {sweep}"
    parts = (without_marks(subject) or "(no title)", body.strip(), trailers)
    return "\n\n".join(part for part in parts if part) + "\n"


def _propose_removals(
    context: SweepContext,
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
        made = CommitBuilder(space, branch.commit).add(tree, message, author=author)
        branch.add_commit(made, tree, "proposed: the tutorial does not hold these blocks any more", ())


def _outcome(branch: _Branch, context: SweepContext, open_blocks: int) -> IntegratorReport:
    records = list(context.state.tests())
    extra: dict[str, Any] = {"by": "builtin", "ranking": branch.ranking, "open_blocks": open_blocks}
    outcome = IntegratorReport(failed=tuple(branch.left_out), **extra)
    return with_open_tests(outcome, records)


def _summary_line(branch: _Branch, open_blocks: int, outcome: IntegratorReport) -> str:
    count = len(branch.ranking)
    parts = [counted(count, "commit")] if count else ["nothing could be taken"]
    parts.append(f"{counted(open_blocks, 'block is', 'blocks are') if open_blocks else 'no block is'} left open")
    hard = sum(each.kind == EscalationKind.HARD_TO_USE for each in outcome.escalations)
    return ", ".join([*parts, *([f"{hard} hard to use"] if hard else [])])
