"""Previews what a plan would make of a branch, in a throw-away object directory; the user's repository is only read."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from swarm_tui.doors.git.objects import Entry, Merge, ObjectSpace
from swarm_tui.model.fixes import Commit, Conflict, IntegratedBranch, Preview
from swarm_tui.triage import plan

Resolution = Mapping[str, Entry | None]
"""What a person made of a conflict: the paths that differ from git's own attempt, and what they hold (or None)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One revert on one tree."""

    ours: str
    tree: str
    """What came of it; as it was before when there is a conflict."""
    merge: Merge | None = None
    """The merge that could not be done cleanly."""
    is_resolved: bool = False

    @property
    def is_conflict(self) -> bool:
        return self.merge is not None and not self.is_resolved


class Previewer:
    """Computes previews of one branch and remembers every step, so that one more verdict costs one more merge.

    Usable from any thread; two threads wait for each other.
    """

    def __init__(
        self, space: ObjectSpace, branch: IntegratedBranch, resolutions: Mapping[str, Resolution] | None = None
    ) -> None:
        self._space = space
        self._branch = branch
        self._resolutions: dict[str, Resolution] = dict(resolutions or {})
        self._steps: dict[tuple[str, str], Step] = {}
        self._previews: dict[frozenset[str], Preview] = {}
        self._fights: dict[tuple[str, str], bool] = {}
        self._lock = threading.RLock()

    def preview(self, reverted: Collection[str]) -> Preview:
        """Give what reverting these commits, and no others, would lead to."""
        wanted = frozenset(reverted)
        with self._lock:
            known = self._previews.get(wanted)
            if known is None:
                known = self._previews[wanted] = self._compute(wanted)
            return known

    def steps(self, reverted: Collection[str]) -> list[tuple[Commit, Step]]:
        """Give each revert with what it does, newest first. A revert that conflicts is skipped by the next one."""
        with self._lock:
            tree = self._branch.tip_tree
            done = []
            for commit in plan.reverts_in_order(self._branch, reverted):
                step = self._step(commit, tree)
                done.append((commit, step))
                tree = step.tree
            return done

    def resolve(self, key: str, resolution: Resolution) -> None:
        """Take what a person made of a conflict; it counts wherever the same conflict comes up again."""
        with self._lock:
            self._resolutions[key] = resolution
            self._steps.clear()
            self._previews.clear()

    def _compute(self, reverted: frozenset[str]) -> Preview:
        steps = self.steps(reverted)
        conflicts = tuple(
            Conflict(commit.id, self._opponents(commit, step.merge, reverted), step.merge.conflict_paths)
            for commit, step in steps
            if step.merge is not None and step.is_conflict
        )
        return Preview(
            reverted=tuple(commit.id for commit, _ in steps),
            tree=None if conflicts else (steps[-1][1].tree if steps else self._branch.tip_tree),
            conflicts=conflicts,
            unchanging=tuple(commit.id for commit, step in steps if step.tree == step.ours and not step.is_conflict),
            resolved=tuple(commit.id for commit, step in steps if step.is_resolved),
        )

    def _step(self, commit: Commit, ours: str) -> Step:
        known = self._steps.get((commit.id, ours))
        if known is None:
            known = self._steps[commit.id, ours] = self._revert(commit, ours)
        return known

    def _revert(self, commit: Commit, ours: str) -> Step:
        quick = self._take_back_by_path(commit, ours)
        if quick is not None:
            return Step(ours, quick)
        # A revert is the merge that turns the commit into its parent, done on what we have.
        merge = self._space.merge(base=commit.tree, ours=ours, theirs=commit.parent_tree)
        if merge.is_clean:
            return Step(ours, merge.tree)
        resolution = self._resolutions.get(conflict_key(commit.id, merge))
        if resolution is None:
            return Step(ours, ours, merge)
        return Step(ours, self._space.with_entries(merge.tree, resolution), merge, is_resolved=True)

    def _take_back_by_path(self, commit: Commit, ours: str) -> str | None:
        """Give the tree with the commit's paths as they were before it, or None where only a merge is exact."""
        if not plan.can_be_taken_back_by_path(commit):
            return None
        changes: dict[str, Entry | None] = {}
        for change in commit.changes:
            if self._space.entry(ours, change.path) != Entry(change.new_mode, change.new_id):
                return None
            changes[change.path] = None if change.status == "A" else Entry(change.old_mode, change.old_id)
        return self._space.with_entries(ours, changes)

    def _opponents(self, commit: Commit, merge: Merge, reverted: frozenset[str]) -> tuple[str, ...]:
        """Give the later commits that stay and that this revert conflicts with."""
        stay = plan.later_commits_that_stay(self._branch, commit.id, reverted)
        near = plan.touching(stay, {*merge.conflict_paths, *commit.paths})
        proven = tuple(later.id for later in near if self._fight(commit, later))
        return proven or tuple(later.id for later in near)

    def _fight(self, commit: Commit, later: Commit) -> bool:
        """Whether a revert of the commit conflicts when only that one later commit has been made since."""
        known = self._fights.get((commit.id, later.id))
        if known is None:
            onto = self._space.merge(base=later.parent_tree, ours=commit.tree, theirs=later.tree)
            known = onto.is_clean and not (
                self._space.merge(base=commit.tree, ours=onto.tree, theirs=commit.parent_tree).is_clean
            )
            self._fights[commit.id, later.id] = known
        return known


def conflict_key(commit: str, merge: Merge) -> str:
    """Give what names a conflict: the commit, and the versions of each path that could not be merged."""
    lines = [f"{stage.number} {stage.entry.mode} {stage.entry.id} {stage.path}" for stage in merge.stages]
    return hashlib.sha256("\0".join([commit, *sorted(lines)]).encode("utf-8", "surrogateescape")).hexdigest()


def grow_until_clean(previewer: Previewer, reverted: Collection[str]) -> frozenset[str] | None:
    """Give the reverts with every later commit that stands in their way reverted too, or None when none is known."""
    wanted = frozenset(reverted)
    while True:
        preview = previewer.preview(wanted)
        if preview.is_clean:
            return wanted
        more = {opponent for conflict in preview.conflicts for opponent in conflict.opponents} - wanted
        if not more:
            return None
        wanted |= more
