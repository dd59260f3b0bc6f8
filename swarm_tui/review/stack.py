"""The stack of changes on a branch: the trees without some of them, and the previews of plans."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from swarm_tui.adapters.git.merging import ATTRIBUTES_FILE, MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import FILE_MODES, TreeEntry
from swarm_tui.model.commits import Commit
from swarm_tui.review.changes import Change, Conflict, IntegratedBranch, Preview, TestChanges
from swarm_tui.review.hunks import CommitHunks, HunksOfFixes, is_of
from swarm_tui.review.picking import Step, find_conflicts, inverse, pick, pick_by_path

Resolution = Mapping[str, TreeEntry | None]
"""Resolution of a conflict: the paths whose entries differ from git's merge; None for a deleted path."""


class Stack:
    """The commits of a branch, without those that a plan removes, and the fixes that a plan adds on top.

    A plan is a set of ids: reverted commits and hunks, left-out test changes, and included left-out fixes. Every step
    is cached, so that one more verdict costs one more merge. Thread-safe: calls from several threads run one after the
    other.
    """

    def __init__(
        self, space: ObjectSpace, branch: IntegratedBranch, resolutions: Mapping[str, Resolution] | None = None
    ) -> None:
        self._space = space
        self._branch = branch
        self._resolutions: dict[str, Resolution] = dict(resolutions or {})
        self.hunks = HunksOfFixes(space)
        self._parts = TestChanges()
        self._left_out: tuple[Change, ...] = ()
        self._steps: dict[tuple[str, str, str, str], Step] = {}
        self._previews: dict[frozenset[str], Preview] = {}
        self._merged_ahead: dict[tuple[str, str], MergeResult] = {}
        self._is_conflicting: dict[tuple[str, str, str], bool] = {}
        self._lock = threading.RLock()

    # Changes that plans can contain, apart from the commits of the branch

    def use_parts(self, parts: TestChanges) -> None:
        """Let plans leave out these test changes."""
        with self._lock:
            self._parts = parts
            self._previews.clear()

    def use_hunks(self, hunks: CommitHunks) -> None:
        """Let plans revert these hunks separately."""
        with self._lock:
            self.hunks.add(hunks)
            self._previews.clear()

    def use_left_out(self, fixes: tuple[Change, ...]) -> None:
        """Let plans include these fixes, which are not on the branch."""
        with self._lock:
            self._left_out = fixes
            self._previews.clear()

    def add_resolution(self, key: str, resolution: Resolution) -> None:
        """Use the user's resolution for all later conflicts with the same key."""
        with self._lock:
            self._resolutions[key] = resolution
            self._forget()

    def _forget(self) -> None:
        self._steps.clear()
        self._merged_ahead.clear()
        self._previews.clear()

    # Operations

    def without(self, plan: Collection[str]) -> list[Step]:
        """Revert the commits and hunks of a plan, newest first, because later fixes may build on earlier ones.

        A revert that conflicts is skipped. Return its steps, with the inverse commits.
        """
        with self._lock:
            tree, steps = self._branch.tip_tree, list[Step]()
            commits = [inverse(commit) for commit in self.reverts(plan)]
            self._merge_ahead(commits)
            for commit in commits:
                steps.append(self._step(commit, tree, is_revert=True))
                tree = steps[-1].tree
            return steps

    def with_only(self, plan: Collection[str]) -> list[Step]:
        """Cherry-pick everything that a plan keeps onto the base, oldest first. A commit that conflicts is skipped."""
        out = self._removed(plan)
        with self._lock:
            tree, steps = self._branch.base_tree, list[Step]()
            for commit in filter(None, (self.hunks.kept_part(commit, out) for commit in self._picks)):
                steps.append(self._step(commit, tree))
                tree = steps[-1].tree
            return steps

    def on_top(self, plan: Collection[str]) -> list[Step]:
        """Cherry-pick the left-out fixes that a plan includes onto the rest of the plan."""
        tree, steps = self.preview(self.rest_of(plan)).tree, list[Step]()
        with self._lock:
            for commit in self._included(plan)[0]:
                if tree is not None:
                    steps.append(self._step(commit, tree))
                    tree = steps[-1].tree
            return steps

    def reverts(self, plan: Collection[str]) -> list[Commit]:
        """Return the reverted commits, newest first. Of a partly reverted commit, this is the reverted part."""
        parts = (self.hunks.reverted_part(commit, plan) for commit in reversed(self._branch.commits))
        return [commit for commit in parts if commit is not None]

    def rest_of(self, plan: Collection[str]) -> frozenset[str]:
        """Return a plan without the left-out fixes that it includes."""
        return frozenset(plan).difference(fix.id for fix in self._left_out)

    @property
    def _picks(self) -> tuple[Commit, ...]:
        """All commits that build the branch, with the commit of test and doc fixes split into test changes."""
        return tuple(
            pick
            for commit in self._branch.commits
            for pick in (self._parts.picks if commit.id == self._branch.squashed and self._parts.picks else (commit,))
        )

    def _parts_left_out(self, plan: Collection[str]) -> frozenset[str]:
        """Return the left-out test changes. If the plan reverts their commit, these are all test changes."""
        parts = frozenset(part.id for part in self._parts.parts)
        return parts if self._branch.squashed in plan else parts.intersection(plan)

    def _removed(self, plan: Collection[str]) -> frozenset[str]:
        """Return the ids that are not cherry-picked: fixes, hunks and test changes."""
        parts = self._parts_left_out(plan)
        return (frozenset(plan) - {self._branch.squashed or ""}) | parts if parts else frozenset(plan)

    def _included(self, plan: Collection[str]) -> tuple[list[Commit], tuple[str, ...]]:
        """Return the included parts of the left-out fixes of a plan, and their hunks that are not included."""
        commits, hunks = list[Commit](), list[str]()
        for fix in self._left_out:
            if fix.id in plan:
                commit, left = self.hunks.taken_part(fix.commit, plan)
                commits += [commit] if commit is not None else []
                hunks += left
        return commits, tuple(hunks)

    # Steps

    def _step(self, commit: Commit, ours: str, *, is_revert: bool = False) -> Step:
        key = (commit.id, commit.parent_tree, commit.tree, ours)
        step = self._steps.get(key)
        if step is None:
            step = self._revert(commit, ours) if is_revert else pick(self._space, commit, ours)
            self._steps[key] = step
        return step

    def _revert(self, commit: Commit, ours: str) -> Step:
        """Cherry-pick the inverse of a commit, with the merge that was done in advance and the user's resolution."""
        step = self._merged_step(commit, ours) or pick(self._space, commit, ours)
        resolution = self._resolutions.get(conflict_key(commit.id, step.merge)) if step.merge is not None else None
        if step.merge is None or resolution is None:
            return step
        return replace(step, tree=self._space.with_entries(step.merge.tree, resolution), is_resolved=True)

    def _merge_ahead(self, commits: Sequence[Commit]) -> None:
        """Merge all reverts of a plan onto the tip of the branch at once, if single merges are slow.

        If a commit only changes files that still exist, only the entries of those files affect its merge. So the merged
        entries are valid on every tree that has the same entries before the revert.
        """
        if not self._space.merger.is_slow:
            return
        tip, changed = self._branch.tip_tree, set[str]()
        wanted = []
        for commit in commits:
            is_new = (commit.id, commit.tree) not in self._merged_ahead and not any(
                (known[0], known[2]) == (commit.id, commit.tree) for known in self._steps
            )
            # Files that an earlier revert has changed are merged separately.
            is_apart = changed.isdisjoint(commit.paths) and self._only_changes_files(commit)
            if is_new and is_apart and pick_by_path(self._space, commit, tip) is None:
                wanted.append(commit)
            changed |= commit.paths
        if len(wanted) < 2 or any(map(_has_attributes, commits)):
            return
        merges = self._space.merger.merge_many_onto(tip, [(commit.parent_tree, commit.tree) for commit in wanted])
        for commit, merge in zip(wanted, merges, strict=True):
            self._merged_ahead[commit.id, commit.tree] = merge

    def _only_changes_files(self, commit: Commit) -> bool:
        """Return whether a commit only changes the content of files that the branch otherwise leaves unchanged."""
        return bool(commit.changes) and all(
            change.status == "M"
            and change.old_mode == change.new_mode
            and change.new_mode in FILE_MODES
            and (entry := self._space.entry(self._branch.tip_tree, change.path)) is not None
            and entry.mode == change.new_mode
            for change in commit.changes
        )

    def _merged_step(self, commit: Commit, ours: str) -> Step | None:
        """Return the revert that was merged in advance, if the entries of the commit's files are still the same."""
        merge = self._merged_ahead.get((commit.id, commit.tree))
        tip, entry = self._branch.tip_tree, self._space.entry
        if merge is None or pick_by_path(self._space, commit, ours) is not None:
            return None
        if ours == tip:
            return Step(commit, ours, merge.tree) if merge.is_clean else Step(commit, ours, ours, merge)
        if not merge.is_clean or any(entry(ours, path) != entry(tip, path) for path in commit.paths):
            return None
        return Step(commit, ours, self._space.with_entries(ours, {p: entry(merge.tree, p) for p in commit.paths}))

    # Previews

    def preview(self, plan: Collection[str]) -> Preview:
        """Return the resulting tree of a plan, or its conflicts."""
        wanted = frozenset(plan)
        with self._lock:
            if self._space.clear_if_full():
                self._forget()
            result = self._previews.get(wanted)
            if result is None:
                result = self._previews[wanted] = self._compute(wanted)
            return result

    def _compute(self, plan: frozenset[str]) -> Preview:
        if self._included(plan)[0]:
            return self._with_included(plan)
        # git reverts whole commits, so a plan that leaves out test changes is built by cherry-picks.
        parts = self._parts_left_out(plan)
        steps = self.with_only(plan) if parts else self.without(plan)
        conflicts = self._conflicts_of_picks(steps, plan) if parts else self._conflicts_of_reverts(steps, plan)
        tree = steps[-1].tree if steps else self._branch.base_tree if parts else self._branch.tip_tree
        removed = self._removed(plan)
        return Preview(
            reverted=self.hunks.reverted_commits(self._branch, removed),
            tree=None if conflicts else tree,
            conflicts=conflicts,
            unchanging=()
            if parts
            else tuple(each.commit.id for each in steps if each.tree == each.ours and not each.is_conflict),
            resolved=tuple(step.commit.id for step in steps if step.is_resolved),
            left_out=tuple(dict.fromkeys(each.id for each in self._parts.picks if each.id in parts)),
            hunks=self.hunks.reverted_hunks(self._branch, removed),
        )

    def _with_included(self, plan: frozenset[str]) -> Preview:
        """Return the preview of a plan with left-out fixes, based on the preview without them."""
        rest = self.preview(self.rest_of(plan))
        included, hunks = self._included(plan)
        steps = self.on_top(plan)
        conflicts = tuple(
            Conflict(step.commit.id, self._opponents_of_included(step, rest.reverted), step.merge.conflict_paths)
            for step in steps
            if step.merge is not None
        )
        tree = None if conflicts or rest.tree is None else steps[-1].tree
        taken = tuple(commit.id for commit in included)
        return replace(rest, tree=tree, conflicts=rest.conflicts or conflicts, taken=taken, hunks=(*rest.hunks, *hunks))

    # Conflicts

    def _conflicts_of_reverts(self, steps: Sequence[Step], plan: Collection[str]) -> tuple[Conflict, ...]:
        blocked = [(step.commit, step.merge) for step in steps if step.merge is not None and step.is_conflict]
        possible = [self._possible_opponents(commit, merge, plan) for commit, merge in blocked]
        pairs = [(later, commit) for (commit, _), others in zip(blocked, possible, strict=True) for later in others]
        unknown = [pair for pair in pairs if _pair_key(*pair) not in self._is_conflicting]
        found = zip(unknown, find_conflicts(self._space, unknown), strict=True)
        self._is_conflicting.update({_pair_key(*pair): is_conflict for pair, is_conflict in found})
        return tuple(
            Conflict(
                commit.id,
                _proven_or_all(others, [self._is_conflicting[_pair_key(later, commit)] for later in others]),
                merge.conflict_paths,
            )
            for (commit, merge), others in zip(blocked, possible, strict=True)
        )

    def _possible_opponents(self, commit: Commit, merge: MergeResult, plan: Collection[str]) -> tuple[Commit, ...]:
        """Return the later remaining commits that a revert may conflict with."""
        stay = later_commits_that_stay(self._branch, commit.id, plan)
        paths = frozenset(merge.conflict_paths)
        # A path outside of the commit was renamed later, so commits that change the old name may conflict too.
        return commits_changing(stay, paths if paths <= commit.paths else paths | commit.paths)

    def _opponents_of_included(self, step: Step, reverted: Collection[str]) -> tuple[str, ...]:
        """Return the fixes that conflict with a left-out fix when alone; if none does, all that change its files."""
        # If only some hunks are included, the commit has no list of changes.
        whole = next(fix.commit for fix in self._left_out if fix.id == step.commit.id)
        paths = whole.paths.union(step.merge.conflict_paths if step.merge is not None else ())
        possible = commits_changing((each for each in self._branch.commits if each.id not in reverted), paths)
        pairs = [(commit, replace(step.commit, changes=whole.changes)) for commit in possible]
        return _proven_or_all(possible, find_conflicts(self._space, pairs, if_first_fails=True))

    def _conflicts_of_picks(self, steps: Sequence[Step], plan: Collection[str]) -> tuple[Conflict, ...]:
        """Return the remaining commits that depend on each left-out commit or test change."""
        found: dict[str, dict[str, None]] = {}
        paths: dict[str, dict[str, None]] = {}
        for step in steps:
            for culprit in self._needed_by(step, self._removed(plan)) if step.merge is not None else ():
                found.setdefault(culprit, {})[step.commit.id] = None
                paths.setdefault(culprit, {}).update(dict.fromkeys(step.merge.conflict_paths if step.merge else ()))
        return tuple(Conflict(culprit, tuple(others), tuple(paths[culprit])) for culprit, others in found.items())

    def _needed_by(self, blocked: Step, removed: Collection[str]) -> list[str]:
        """Return the removed ids that a cherry-pick depends on: those that block it alone, else all earlier ones."""
        place = next(number for number, commit in enumerate(self._picks) if _is_same(commit, blocked.commit))
        before = [commit for commit in self._picks[:place] if self.hunks.kept_part(commit, removed) is not commit]
        missing = list(dict.fromkeys(commit.id for commit in before))
        alone = [name for name in missing if self._is_blocked_by(name, blocked.commit, removed)]
        return alone or missing

    def _is_blocked_by(self, name: str, blocked: Commit, removed: Collection[str]) -> bool:
        """Return whether a cherry-pick conflicts if only this commit or test change, or its hunks, are removed."""
        hunks = {hunk for hunk in removed if is_of(hunk, name)}
        steps = self.with_only({name} if name in removed else hunks)
        return any(step.merge is not None and _is_same(step.commit, blocked) for step in steps)


def _is_same(commit: Commit, other: Commit) -> bool:
    """Return whether two cherry-picks apply the same change, or hunks of it."""
    return (commit.id, commit.parent_tree) == (other.id, other.parent_tree)


def _pair_key(later: Commit, commit: Commit) -> tuple[str, str, str]:
    return later.id, commit.id, commit.tree


def _proven_or_all(possible: Sequence[Commit], are_conflicting: Iterable[bool]) -> tuple[str, ...]:
    """Return the ids of the commits that conflict when alone; if there is none, those of all possible ones."""
    proven = tuple(each.id for each, is_conflict in zip(possible, are_conflicting, strict=True) if is_conflict)
    return proven or tuple(each.id for each in possible)


def _has_attributes(commit: Commit) -> bool:
    """Return whether a commit changes how git merges files."""
    return any(path.rpartition("/")[2] == ATTRIBUTES_FILE for path in commit.paths)


def later_commits_that_stay(branch: IntegratedBranch, commit: str, reverted: Collection[str]) -> tuple[Commit, ...]:
    """Return the later commits that the plan does not revert, oldest first."""
    position = next(place for place, other in enumerate(branch.commits) if other.id == commit)
    return tuple(later for later in branch.commits[position + 1 :] if later.id not in reverted)


def commits_changing(commits: Iterable[Commit], paths: Collection[str]) -> tuple[Commit, ...]:
    path_set = frozenset(paths)
    return tuple(commit for commit in commits if not path_set.isdisjoint(commit.paths))


def conflict_key(commit: str, merge: MergeResult) -> str:
    """Return a key of a conflict: the commit, and the versions of each conflicting path."""
    lines = [f"{stage.number} {stage.entry.mode} {stage.entry.id} {stage.path}" for stage in merge.stages]
    if not lines:
        lines = [merge.tree, *merge.blocked_paths]
    return hashlib.sha256("\0".join([commit, *sorted(lines)]).encode("utf-8", "surrogateescape")).hexdigest()


def extend_until_clean(stack: Stack, reverted: Collection[str]) -> frozenset[str] | None:
    """Return the reverts extended by all later commits that conflict with them; None if no extension is known."""
    plan = frozenset(reverted)
    while True:
        preview = stack.preview(plan)
        if preview.is_clean:
            return plan
        more = {opponent for conflict in preview.conflicts for opponent in conflict.opponents} - plan
        if not more:
            return None
        plan |= more
