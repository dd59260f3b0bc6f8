"""Rebuilds a branch without some of its test changes, by cherry-picking everything else in order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from swarm_tui.adapters.git.merging import MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.review.changes import Conflict, IntegratedBranch, Pick, Preview, TestChanges
from swarm_tui.review.hunks import HunksOfFixes, is_of


@dataclass(frozen=True, slots=True)
class PickStep:
    """One cherry-pick on one tree."""

    pick: Pick
    ours: str
    tree: str
    """The resulting tree; equal to `ours` after a conflict."""
    merge: MergeResult | None = None
    """The merge that conflicted."""


def picks_of(branch: IntegratedBranch, parts: TestChanges) -> tuple[Pick, ...]:
    """Return all cherry-picks that build the branch: its commits in order, with one commit split into test changes."""
    picks: list[Pick] = []
    for commit in branch.commits:
        if commit.id == branch.squashed and parts.picks:
            picks += parts.picks
        else:
            picks.append(Pick(commit.id, commit.parent_tree, commit.tree, commit.changes))
    return tuple(picks)


def without(branch: IntegratedBranch, parts: TestChanges, reverted: Collection[str]) -> frozenset[str]:
    """Return the left-out test changes. If the plan reverts their commit, these are all test changes."""
    if branch.squashed in reverted:
        return frozenset(part.id for part in parts.parts)
    return frozenset(part.id for part in parts.parts if part.id in reverted)


class Rebuilder:
    """Cherry-picks the remaining commits of a branch, and caches every step. Not thread-safe."""

    def __init__(self, space: ObjectSpace, branch: IntegratedBranch, parts: TestChanges, hunks: HunksOfFixes) -> None:
        self._space = space
        self._branch = branch
        self._picks = picks_of(branch, parts)
        self._commits = {commit.id: commit for commit in branch.commits}
        self._hunks = hunks
        self._steps: dict[tuple[str, str, str], PickStep] = {}

    def forget(self) -> None:
        self._steps.clear()

    def steps(self, left_out: Collection[str]) -> list[PickStep]:
        """Return the step of each remaining cherry-pick. A cherry-pick that conflicts is skipped."""
        picks = (self._kept_part(pick, left_out) for pick in self._picks)
        return pick_all(self._space, self._branch.base_tree, [pick for pick in picks if pick is not None], self._steps)

    def _kept_part(self, pick: Pick, left_out: Collection[str]) -> Pick | None:
        """Return the remaining part of a cherry-pick, which may be some hunks of a fix."""
        if pick.owner in left_out:
            return None
        commit = self._commits.get(pick.owner)
        kept = self._hunks.kept_part(commit, left_out) if commit is not None else None
        if commit is None or kept is commit:
            return pick
        return Pick(kept.id, kept.parent_tree, kept.tree, kept.changes) if kept is not None else None

    def preview(self, left_out: frozenset[str]) -> Preview:
        """Return the tree of the branch without these commits and test changes, or the conflicts."""
        steps = self.steps(left_out)
        blocked = [step for step in steps if step.merge is not None]
        tree = steps[-1].tree if steps else self._branch.base_tree
        return Preview(
            reverted=self._hunks.reverted_commits(self._branch, left_out),
            tree=None if blocked else tree,
            conflicts=self._conflicts(blocked, left_out),
            left_out=tuple(
                dict.fromkeys(pick.owner for pick in self._picks if pick.owner in left_out - self._commits.keys())
            ),
            hunks=self._hunks.reverted_hunks(self._branch, left_out),
        )

    def _conflicts(self, blocked: Sequence[PickStep], left_out: Collection[str]) -> tuple[Conflict, ...]:
        """Return the remaining commits that depend on each left-out commit or test change."""
        found: dict[str, dict[str, None]] = {}
        paths: dict[str, dict[str, None]] = {}
        for step in blocked:
            assert step.merge is not None, "a blocked step has a merge"
            for culprit in self._needed_by(step, left_out):
                found.setdefault(culprit, {})[step.pick.owner] = None
                paths.setdefault(culprit, {}).update(dict.fromkeys(step.merge.conflict_paths))
        return tuple(Conflict(culprit, tuple(others), tuple(paths[culprit])) for culprit, others in found.items())

    def _needed_by(self, blocked: PickStep, left_out: Collection[str]) -> list[str]:
        """Return the left-out ids that a cherry-pick depends on: those that block it alone, else all earlier ones."""
        place = next(n for n, pick in enumerate(self._picks) if _is_same(pick, blocked.pick))
        before = [pick for pick in self._picks[:place] if self._kept_part(pick, left_out) is not pick]
        missing = list(dict.fromkeys(pick.owner for pick in before))
        alone = [owner for owner in missing if self._is_blocked_by(owner, blocked.pick, left_out)]
        return alone or missing

    def _is_blocked_by(self, owner: str, blocked: Pick, left_out: Collection[str]) -> bool:
        """Return whether a cherry-pick conflicts if only this commit or test change, or its hunks, are left out."""
        hunks = {name for name in left_out if is_of(name, owner)}
        steps = self.steps({owner} if owner in left_out else hunks)
        return any(step.merge is not None and _is_same(step.pick, blocked) for step in steps)


def _is_same(pick: Pick, other: Pick) -> bool:
    """Return whether two cherry-picks apply the same change, or hunks of it."""
    return (pick.owner, pick.before) == (other.owner, other.before)


def pick_all(
    space: ObjectSpace, tree: str, picks: Sequence[Pick], cache: dict[tuple[str, str, str], PickStep] | None = None
) -> list[PickStep]:
    """Cherry-pick one commit after the other, starting from a tree. A cherry-pick that conflicts is skipped."""
    cache = {} if cache is None else cache
    done = []
    for pick in picks:
        key = (pick.before, pick.after, tree)
        step = cache.get(key)
        if step is None or step.pick != pick:
            step = cache[key] = _pick(space, pick, tree)
        done.append(step)
        tree = step.tree
    return done


def _pick(space: ObjectSpace, pick: Pick, ours: str) -> PickStep:
    picked = _pick_by_path(space, pick, ours)
    if picked is not None:
        return PickStep(pick, ours, picked)
    merge = space.merge(base=pick.before, ours=ours, theirs=pick.after)
    return PickStep(pick, ours, merge.tree) if merge.is_clean else PickStep(pick, ours, ours, merge)


def _pick_by_path(space: ObjectSpace, pick: Pick, ours: str) -> str | None:
    """Return the tree with the paths of a commit as they are after it, or None if only a merge is exact.

    This is exact if the commit only changes files that are the same as before it. An added file may belong in a folder
    that was moved.
    """
    if not pick.changes or any(change.status != "M" for change in pick.changes):
        return None
    changes: dict[str, TreeEntry | None] = {}
    for change in pick.changes:
        if space.entry(ours, change.path) != TreeEntry(change.old_mode, change.old_id):
            return None
        changes[change.path] = TreeEntry(change.new_mode, change.new_id)
    return space.with_entries(ours, changes)
