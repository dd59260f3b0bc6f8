"""Previews the tree that a plan leads to, in a throw-away object directory; the user's repository is only read."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from swarm_tui.adapters.git.merging import ATTRIBUTES_FILE, MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import FILE_MODES, TreeEntry
from swarm_tui.model.fixes import Commit, CommitParts, Conflict, Fix, IntegratedBranch, Preview
from swarm_tui.triage import plan
from swarm_tui.triage.hunks import CommitHunks, HunksOfFixes
from swarm_tui.triage.left_out import TakenStep, take_in, with_taken
from swarm_tui.triage.rebuild import Rebuilder, without

Resolution = Mapping[str, TreeEntry | None]
"""A resolution of a conflict: the entries of the paths that differ from git's attempt; None for a deleted path."""


@dataclass(frozen=True, slots=True)
class RevertStep:
    """One revert on one tree."""

    ours: str
    tree: str
    """The resulting tree; the same as `ours` when there is a conflict."""
    merge: MergeResult | None = None
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
        self.hunks = HunksOfFixes(space)
        self._steps: dict[tuple[str, str, str], RevertStep] = {}
        self._previews: dict[frozenset[str], Preview] = {}
        self._merged_ahead: dict[tuple[str, str], MergeResult] = {}
        self._is_conflicting: dict[tuple[str, str, str], bool] = {}
        self._parts = CommitParts()
        self._rebuilder: Rebuilder | None = None
        self._left_out: tuple[Fix, ...] = ()
        self._lock = threading.RLock()

    def use_parts(self, parts: CommitParts) -> None:
        """From now on let plans leave out these parts: such a plan is what picking all the rest gives."""
        with self._lock:
            self._parts = parts
            self._rebuilder = Rebuilder(self._space, self._branch, parts, self.hunks) if parts.parts else None
            self._previews.clear()

    def use_hunks(self, hunks: CommitHunks) -> None:
        """From now on let plans revert these hunks by themselves."""
        with self._lock:
            self.hunks.add(hunks)
            self._previews.clear()

    def use_left_out(self, fixes: tuple[Fix, ...]) -> None:
        """From now on let plans take in these fixes, which are not on the branch."""
        with self._lock:
            self._left_out = fixes
            self._previews.clear()

    def rest_of(self, preview: Preview) -> Preview:
        """Return the preview of a plan without the left-out fixes that it takes in."""
        return self.preview(preview.chosen.difference(preview.taken)) if preview.taken else preview

    def taken_steps(self, preview: Preview) -> list[TakenStep]:
        """Return what taking in each left-out fix of a plan does."""
        rest = self.rest_of(preview)
        return take_in(self._space, rest.tree, self._taken(preview.chosen)[0]) if rest.tree is not None else []

    def _taken(self, chosen: Collection[str]) -> tuple[list[Fix], tuple[str, ...]]:
        """Return the left-out fixes that a plan takes in, as it takes them in, and the hunks of them that it leaves."""
        taken, left = list[Fix](), list[str]()
        for fix in self._left_out:
            if fix.id in chosen:
                commit, hunks = self.hunks.taken_part(fix.commit, chosen)
                taken += [replace(fix, commit=commit)] if commit is not None else []
                left += hunks
        return taken, tuple(left)

    def rebuilder(self, reverted: Collection[str]) -> Rebuilder | None:
        """Return what makes the branch anew where a plan leaves out parts; None where it only reverts."""
        return self._rebuilder if without(self._branch, self._parts, reverted) else None

    def preview(self, reverted: Collection[str]) -> Preview:
        """Return the preview of reverting exactly these commits and hunks, and of leaving out these parts."""
        wanted = frozenset(reverted)
        with self._lock:
            if self._space.clear_if_full():
                self._forget()
            known = self._previews.get(wanted)
            if known is None:
                taken, left = self._taken(wanted)
                if taken:
                    rest = self.preview(wanted - {fix.id for fix in taken})
                    with_them = with_taken(self._space, self._branch, rest, taken)
                    known = replace(with_them, hunks=(*rest.hunks, *left))
                else:
                    rebuilder = self.rebuilder(wanted)
                    known = rebuilder.preview(self.left_out(wanted)) if rebuilder else self._compute(wanted)
                self._previews[wanted] = known
            return known

    def left_out(self, reverted: Collection[str]) -> frozenset[str]:
        """Return what is not picked when the branch is made anew: fixes, and parts in place of their commit."""
        parts = without(self._branch, self._parts, reverted)
        return (frozenset(reverted) - {self._branch.squashed or ""}) | parts if parts else frozenset(reverted)

    def steps(self, reverted: Collection[str]) -> list[tuple[Commit, RevertStep]]:
        """Return each revert with what it does, newest first. A revert that conflicts is skipped by the next one.

        Of a fix of which only some hunks are reverted, the commit is one of these, on top of one of the others.
        """
        with self._lock:
            tree = self._branch.tip_tree
            done = []
            commits = self.reverts(reverted)
            self._merge_ahead(commits)
            for commit in commits:
                step = self._step(commit, tree)
                done.append((commit, step))
                tree = step.tree
            return done

    def reverts(self, reverted: Collection[str]) -> list[Commit]:
        """Return what is reverted, newest first: a later fix may build on an earlier one."""
        parts = (self.hunks.reverted_part(commit, reverted) for commit in reversed(self._branch.commits))
        return [commit for commit in parts if commit is not None]

    def add_resolution(self, key: str, resolution: Resolution) -> None:
        """Use the resolution of a person for each later conflict with the same key."""
        with self._lock:
            self._resolutions[key] = resolution
            self._forget()

    def _forget(self) -> None:
        self._steps.clear()
        self._merged_ahead.clear()
        self._previews.clear()
        if self._rebuilder is not None:
            self._rebuilder.forget()

    def _compute(self, reverted: frozenset[str]) -> Preview:
        steps = self.steps(reverted)
        possible = {
            commit: (step.merge.conflict_paths, self._possible_opponents(commit, step.merge, reverted))
            for commit, step in steps
            if step.merge is not None and step.is_conflict
        }
        self._find_pair_conflicts([(commit, later) for commit, (_, others) in possible.items() for later in others])
        conflicts = tuple(
            Conflict(commit.id, self._opponents(commit, others), paths) for commit, (paths, others) in possible.items()
        )
        return Preview(
            reverted=self.hunks.reverted_commits(self._branch, reverted),
            tree=None if conflicts else (steps[-1][1].tree if steps else self._branch.tip_tree),
            conflicts=conflicts,
            unchanging=tuple(commit.id for commit, step in steps if step.tree == step.ours and not step.is_conflict),
            resolved=tuple(commit.id for commit, step in steps if step.is_resolved),
            hunks=self.hunks.reverted_hunks(self._branch, reverted),
        )

    def _step(self, commit: Commit, ours: str) -> RevertStep:
        key = (commit.id, commit.parent_tree, ours)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._revert(commit, ours)
        return known

    def _revert(self, commit: Commit, ours: str) -> RevertStep:
        reverted = self._revert_by_path(commit, ours) or self._revert_as_merged(commit, ours)
        if reverted is not None:
            return RevertStep(ours, reverted)
        # A revert is the merge that turns the commit into its parent, done on what we have.
        ahead = self._merged_ahead.get((commit.id, commit.parent_tree)) if ours == self._branch.tip_tree else None
        merge = ahead or self._space.merge(base=commit.tree, ours=ours, theirs=commit.parent_tree)
        if merge.is_clean:
            return RevertStep(ours, merge.tree)
        resolution = self._resolutions.get(conflict_key(commit.id, merge))
        if resolution is None:
            return RevertStep(ours, ours, merge)
        return RevertStep(ours, self._space.with_entries(merge.tree, resolution), merge, is_resolved=True)

    def _revert_by_path(self, commit: Commit, ours: str) -> str | None:
        """Return the tree with the commit's paths as they were before it, or None where only a merge is exact."""
        if not plan.can_be_reverted_by_path(commit):
            return None
        changes: dict[str, TreeEntry | None] = {}
        for change in commit.changes:
            if self._space.entry(ours, change.path) != TreeEntry(change.new_mode, change.new_id):
                return None
            changes[change.path] = None if change.status == "A" else TreeEntry(change.old_mode, change.old_id)
        return self._space.with_entries(ours, changes)

    def _merge_ahead(self, commits: Sequence[Commit]) -> None:
        """Merge what a plan reverts onto the tip of the branch, all at once, where one merge after the other is slow.

        The entries are those after the revert also on any tree that has the same ones before it: where a commit only
        changes files that are still there, nothing but these decides about its merge.
        """
        tip, changed = self._branch.tip_tree, set[str]()
        wanted = []
        for commit in commits:
            is_new = not any(
                known[:2] == (commit.id, commit.parent_tree) for known in (*self._steps, *self._merged_ahead)
            )
            # What an earlier revert has changed is merged with what that leads to.
            is_apart = changed.isdisjoint(commit.paths) and self._only_changes_files(commit)
            if is_new and is_apart and self._revert_by_path(commit, tip) is None:
                wanted.append(commit)
            changed |= commit.paths
        if len(wanted) < 2 or not self._space.merger.is_slow or any(map(_has_attributes, commits)):
            return
        merges = self._space.merger.merge_many_onto(tip, [(commit.tree, commit.parent_tree) for commit in wanted])
        for commit, merge in zip(wanted, merges, strict=True):
            self._merged_ahead[commit.id, commit.parent_tree] = merge

    def _only_changes_files(self, commit: Commit) -> bool:
        """Return whether a commit only changes the content of files that are as they were otherwise on the branch."""
        return bool(commit.changes) and all(
            change.status == "M"
            and change.old_mode == change.new_mode
            and change.new_mode in FILE_MODES
            and (entry := self._space.entry(self._branch.tip_tree, change.path)) is not None
            and entry.mode == change.new_mode
            for change in commit.changes
        )

    def _revert_as_merged(self, commit: Commit, ours: str) -> str | None:
        """Return the tree with the files of a commit as they were merged ahead, where they are as they were then."""
        merge = self._merged_ahead.get((commit.id, commit.parent_tree))
        tip, entry = self._branch.tip_tree, self._space.entry
        if merge is None or not merge.is_clean or any(entry(ours, path) != entry(tip, path) for path in commit.paths):
            return None
        return self._space.with_entries(ours, {path: entry(merge.tree, path) for path in commit.paths})

    def _possible_opponents(self, commit: Commit, merge: MergeResult, reverted: frozenset[str]) -> tuple[Commit, ...]:
        """Return the later commits that stay and that a revert may conflict with."""
        stay = plan.later_commits_that_stay(self._branch, commit.id, reverted)
        paths = frozenset(merge.conflict_paths)
        # A path that the commit does not change was renamed later: commits that change the old name are opponents too.
        return plan.commits_changing(stay, paths if paths <= commit.paths else paths | commit.paths)

    def _opponents(self, commit: Commit, possible: Sequence[Commit]) -> tuple[str, ...]:
        """Return those with which the revert conflicts by themselves; all possible ones when there is none."""
        proven = tuple(later.id for later in possible if self._is_conflicting[_pair(commit, later)])
        return proven or tuple(later.id for later in possible)

    def _find_pair_conflicts(self, pairs: Sequence[tuple[Commit, Commit]]) -> None:
        """Find out for each pair whether a revert of the first commit conflicts when only the second was made since.

        The merges are done on trees that hold nothing but the paths of the two, all pairs at once.
        """
        only = self._space.flat_tree
        unknown = [
            (commit, later, commit.paths | later.paths)
            for commit, later in pairs
            if _pair(commit, later) not in self._is_conflicting
        ]
        onto = self._space.merger.merge_many(
            [
                (only(later.parent_tree, paths), only(commit.tree, paths), only(later.tree, paths))
                for commit, later, paths in unknown
            ]
        )
        made = [(*pair, merge.tree) for pair, merge in zip(unknown, onto, strict=True) if merge.is_clean]
        back = self._space.merger.merge_many(
            [(only(commit.tree, paths), tree, only(commit.parent_tree, paths)) for commit, _, paths, tree in made]
        )
        self._is_conflicting.update({_pair(commit, later): False for commit, later, _ in unknown})
        for (commit, later, _, _), merge in zip(made, back, strict=True):
            self._is_conflicting[_pair(commit, later)] = not merge.is_clean


def _has_attributes(commit: Commit) -> bool:
    """Return whether a commit changes how files are merged."""
    return any(path.rpartition("/")[2] == ATTRIBUTES_FILE for path in commit.paths)


def _pair(commit: Commit, later: Commit) -> tuple[str, str, str]:
    return commit.id, commit.parent_tree, later.id


def conflict_key(commit: str, merge: MergeResult) -> str:
    """Return what names a conflict: the commit, and the versions of each path that could not be merged."""
    lines = [f"{stage.number} {stage.entry.mode} {stage.entry.id} {stage.path}" for stage in merge.stages]
    if not lines:
        lines = [merge.tree, *merge.blocked_paths]
    return hashlib.sha256("\0".join([commit, *sorted(lines)]).encode("utf-8", "surrogateescape")).hexdigest()


def extend_until_clean(previewer: Previewer, reverted: Collection[str]) -> frozenset[str] | None:
    """Return the reverts and those of all later commits that they conflict with, or None when none is known."""
    wanted = frozenset(reverted)
    while True:
        preview = previewer.preview(wanted)
        if preview.is_clean:
            return wanted
        more = {opponent for conflict in preview.conflicts for opponent in conflict.opponents} - wanted
        if not more:
            return None
        wanted |= more
