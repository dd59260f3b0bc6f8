"""Builds the integrated branch in the object store: one commit with all test and doc fixes, then one for each fix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.adapters.git import Identity
from swarm_tui.adapters.git.merging import MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.integrator.branches import AgentCommit
from swarm_tui.integrator.duplicates import DistinctFix
from swarm_tui.integrator.inputs import IntegratorInputs
from swarm_tui.model.commit_messages import TestWork, fix_message, squash_message
from swarm_tui.model.text import plain
from swarm_tui.review.picking import CommitBuilder, find_conflicts, pick

NOTHING_NEW: Final = "it adds nothing that is not already on the branch"


@dataclass(frozen=True, slots=True)
class RejectedCommit:
    """A commit that is not on the branch, and the reason."""

    commit: AgentCommit
    reason: str


@dataclass(frozen=True, slots=True)
class Tip:
    """The last commit of a branch, and its tree."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class FixTree:
    """A fix and a tree that has it: on top of the test and doc fixes, or on the branch after the previous fixes."""

    fix: DistinctFix
    tree: str
    before: str = ""
    """The tree without this fix, if it builds on other fixes; otherwise the tree without any fix."""
    builds_on: str = ""
    """The title of the fix that it builds on."""
    commit: str = ""
    """The commit of the fix, if it is on the branch."""


@dataclass(slots=True)
class BranchFixes:
    """The fixes on the branch, in its order, and those that were left out, with the reasons."""

    picked: list[FixTree] = field(default_factory=list)
    left_out: list[tuple[DistinctFix, str]] = field(default_factory=list)


def squash(
    space: ObjectSpace, inputs: IntegratorInputs, base: Tip, commits: Sequence[AgentCommit]
) -> tuple[Tip, list[AgentCommit], list[RejectedCommit]]:
    """Combine all test and doc commits into one. Commits that conflict with earlier ones are left out."""
    tree, squashed, rejected = base.tree, list[AgentCommit](), list[RejectedCommit]()
    for commit in commits:
        step = pick(space, commit, tree)
        tree = step.tree
        if step.merge is None:
            squashed.append(commit)
        else:
            rejected.append(RejectedCommit(commit, _conflict_reason(space, commit, step.merge, squashed)))
    if tree == base.tree:
        return base, squashed, rejected
    message = squash_message(works_of(squashed), inputs.sweep)
    authors = {commit.author.email: commit.author for commit in squashed}
    author = (
        next(iter(authors.values())) if len(authors) == 1 else Identity(inputs.committer.name, inputs.committer.email)
    )
    squashed_commit = CommitBuilder(space, base.commit).add(tree, message, author=author)
    return Tip(squashed_commit, tree), squashed, rejected


def add_fixes(
    space: ObjectSpace, inputs: IntegratorInputs, start: Tip, fixes: Iterable[DistinctFix]
) -> tuple[Tip, BranchFixes]:
    """Cherry-pick the fixes in order. A fix that conflicts is retried after the others, then left out."""
    tree, branch = start.tree, BranchFixes()
    builder = CommitBuilder(space, start.commit)
    waiting, is_progressing = list(fixes), True
    while waiting and is_progressing:
        conflicting = []
        for fix in waiting:
            step = pick(space, fix.chosen, tree)
            if step.tree == tree:
                conflicting.append(fix)
                continue
            tree = step.tree
            message = fix_message(fix.chosen.message, fix.agents, fix.tests, inputs.sweep)
            branch.picked.append(FixTree(fix, tree, commit=builder.add(tree, message, like=fix.chosen)))
        waiting, is_progressing = conflicting, len(conflicting) < len(waiting)
    for fix in waiting:
        merge = pick(space, fix.chosen, tree).merge
        others = [entry.fix.chosen for entry in branch.picked]
        reason = _conflict_reason(space, fix.chosen, merge, others) if merge is not None else NOTHING_NEW
        branch.left_out.append((fix, reason))
    return Tip(builder.tip, tree), branch


def _conflict_reason(space: ObjectSpace, commit: AgentCommit, merge: MergeResult, others: Iterable[AgentCommit]) -> str:
    """Return a sentence with the files and the commits on the branch that a commit conflicts with."""
    possible = [other for other in others if other.paths.intersection(merge.conflict_paths)]
    found = find_conflicts(space, [(other, commit) for other in possible], if_first_fails=True)
    opponents = [other for other, is_conflict in zip(possible, found, strict=True) if is_conflict]
    return conflict_reason(merge.conflict_paths, opponents)


def conflict_reason(paths: Sequence[str], opponents: Sequence[AgentCommit]) -> str:
    """Return a sentence with the files and commits that a commit conflicts with."""
    places = ", ".join(plain(path, 100) for path in paths[:3])
    if not opponents:
        return f"conflicts in {places}"
    sides = " and ".join(f"{other.subject!r} of {other.source.agent}" for other in opponents[:3])
    return f"conflicts in {places} with {sides}"


def works_of(commits: Sequence[AgentCommit]) -> list[TestWork]:
    """Return the entries of these commits for the message of the commit with all test and doc fixes."""
    return [
        TestWork(
            commit.message, commit.source.agent, commit.source.test, str(commit.author), bool(commit.source.weaker)
        )
        for commit in commits
    ]
