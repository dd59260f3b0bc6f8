"""Builds the integrated branch in the object store: one commit with all test and doc fixes, then one for each fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from swarm_tui.adapters.git import Identity
from swarm_tui.adapters.git.merging import MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.integrator.branches import AgentCommit
from swarm_tui.integrator.duplicates import DistinctFix
from swarm_tui.integrator.inputs import IntegratorInputs
from swarm_tui.integrator.ranking import RankedFix
from swarm_tui.model.commit_messages import TestWork, fix_message, squash_message
from swarm_tui.model.text import plain


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
class FixOnBranch:
    """A fix and its commit on the branch."""

    ranked: RankedFix
    tip: Tip

    @property
    def fix(self) -> DistinctFix:
        return self.ranked.fix

    @property
    def commit(self) -> str:
        return self.tip.commit


@dataclass(slots=True)
class BranchFixes:
    """The fixes on the branch, in its order, and those that were left out, with the reasons."""

    picked: list[FixOnBranch] = field(default_factory=list)
    left_out: list[tuple[RankedFix, str]] = field(default_factory=list)


class BranchBuilder:
    """Stacks commits of agents by three-way merges of trees."""

    def __init__(self, space: ObjectSpace, inputs: IntegratorInputs) -> None:
        self._space = space
        self._inputs = inputs
        self._committer = Identity(inputs.committer.name, inputs.committer.email)

    def squash(self, base: Tip, commits: Sequence[AgentCommit]) -> tuple[Tip, list[AgentCommit], list[RejectedCommit]]:
        """Combine all test and doc commits into one. Commits that conflict with earlier ones are left out."""
        tree, squashed, rejected = base.tree, list[AgentCommit](), list[RejectedCommit]()
        for commit in commits:
            merge = self._merge(tree, commit)
            if merge.is_clean:
                tree = merge.tree
                squashed.append(commit)
            else:
                others = [other for other in squashed if set(other.paths) & set(merge.conflict_paths)]
                rejected.append(RejectedCommit(commit, conflict_reason(merge.conflict_paths, others)))
        if tree == base.tree:
            return base, squashed, rejected
        message = squash_message(works_of(squashed), self._inputs.sweep)
        authors = {commit.author.email: commit.author for commit in squashed}
        author = next(iter(authors.values())) if len(authors) == 1 else self._committer
        squashed_commit = self._space.commit(tree, [base.commit], message.encode(), author=author)
        return Tip(squashed_commit, tree), squashed, rejected

    def tree_with(self, tree: str, commits: Sequence[AgentCommit]) -> str | None:
        """Return a tree with these commits cherry-picked, or None if one of them conflicts."""
        for commit in commits:
            merge = self._merge(tree, commit)
            if not merge.is_clean:
                return None
            tree = merge.tree
        return tree

    def contains(self, tree: str, commit: AgentCommit) -> bool | None:
        """Return whether cherry-picking a commit would change nothing; None if it conflicts."""
        merge = self._merge(tree, commit)
        return merge.tree == tree if merge.is_clean else None

    def add_fixes(self, start: Tip, ranked: Sequence[RankedFix]) -> tuple[Tip, BranchFixes]:
        """Cherry-pick the fixes in order. A fix that conflicts is retried after the others, then left out."""
        tip, fixes = start, BranchFixes()
        waiting = list(ranked)
        while waiting:
            conflicting = []
            for entry in waiting:
                next_tip = self._pick(tip, entry)
                if next_tip is None:
                    conflicting.append(entry)
                    continue
                tip = next_tip
                fixes.picked.append(FixOnBranch(entry, tip))
            if len(conflicting) == len(waiting):
                break
            waiting = conflicting
        for entry in waiting:
            fixes.left_out.append((entry, self._reason_left_out(start, tip, entry.fix.chosen, fixes)))
        return tip, fixes

    def _merge(self, tree: str, commit: AgentCommit) -> MergeResult:
        return self._space.merge(base=commit.parent_tree, ours=tree, theirs=commit.tree)

    def _pick(self, tip: Tip, entry: RankedFix) -> Tip | None:
        chosen = entry.fix.chosen
        merge = self._merge(tip.tree, chosen)
        if not merge.is_clean or merge.tree == tip.tree:
            return None
        message = fix_message(chosen.message, entry.fix.agents, entry.fix.tests, self._inputs.sweep).encode()
        new_commit = self._space.commit(
            merge.tree, [tip.commit], message, author=chosen.author, authored=f"@{chosen.authored}"
        )
        return Tip(new_commit, merge.tree)

    def _reason_left_out(self, start: Tip, tip: Tip, commit: AgentCommit, fixes: BranchFixes) -> str:
        merge = self._merge(tip.tree, commit)
        if merge.is_clean:
            return "it adds nothing that is not already on the branch"
        paths = set(merge.conflict_paths)
        on_branch = (entry.fix.chosen for entry in fixes.picked)
        opponents = [
            other for other in on_branch if paths & set(other.paths) and self._do_conflict(start, other, commit)
        ]
        return conflict_reason(merge.conflict_paths, opponents)

    def _do_conflict(self, start: Tip, first: AgentCommit, second: AgentCommit) -> bool:
        """Return whether the second commit conflicts if only the first one is on top of `start`."""
        alone = self._merge(start.tree, first)
        return not alone.is_clean or not self._merge(alone.tree, second).is_clean


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
