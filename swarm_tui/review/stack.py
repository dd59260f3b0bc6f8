"""The two operations on a stack, one merge, one conflict test, the plan's preview."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.adapters.git import GitError, Repository
from swarm_tui.adapters.git.history import read_commits
from swarm_tui.adapters.git.merging import ATTRIBUTES_FILE, MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import FILE_MODES, TreeEntry
from swarm_tui.errors import SwarmError
from swarm_tui.model.commits import FIX_PREFIX, Commit
from swarm_tui.model.report import IntegratorReport, LeftOut
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Conflict, Fix, IntegratedBranch, Preview, TestChanges
from swarm_tui.review.hunks import CommitHunks, HunksOfFixes
from swarm_tui.review.rebuild import Rebuilder, without
from swarm_tui.review.test_changes import TestChangeSource

MOST_LEFT_OUT: Final = 50


@dataclass(frozen=True, slots=True)
class TakenStep:
    """One left-out fix, cherry-picked on one tree."""

    fix: Fix
    tree: str
    """The resulting tree; unchanged after a conflict."""
    merge: MergeResult | None = None
    """The merge that conflicted."""


def read_left_out(
    repository: Repository, branch: IntegratedBranch, outcome: IntegratorReport, sources: Mapping[str, TestChangeSource]
) -> tuple[Fix, ...]:
    """Return the fixes that the integrator left out, if their commits exist here.

    `sources` are the agents' branches by name.
    """
    found: dict[str, Fix] = {}
    on_branch = {commit.id for commit in branch.commits}
    for left in outcome.failed:
        source = sources.get(left.branch) or TestChangeSource(left.branch, left.branch.rpartition("/")[2], "", "")
        for commit in _fix_commits(repository, branch.base, left.commit, source.tip):
            known = found.get(commit.id)
            if commit.id in on_branch or (known is None and len(found) >= MOST_LEFT_OUT):
                continue
            branches = tuple(dict.fromkeys((*(known.branches if known else ()), plain(left.branch, 200))))
            number = len(found) + 1 if known is None else known.rank - len(branch.fixes)
            found[commit.id] = Fix(
                commit=commit,
                position=len(branch.commits) + number,
                rank=len(branch.fixes) + number,
                title=plain(commit.subject.removeprefix(FIX_PREFIX), 300).strip() or "(no title)",
                branch=branches[0],
                branches=branches,
                agents=tuple(dict.fromkeys((*(known.agents if known else ()), plain(source.agent, 200)))),
                tests=tuple(dict.fromkeys((*(known.tests if known else ()), *((source.test,) if source.test else ())))),
            )
    return tuple(found.values())


def _fix_commits(repository: Repository, base: str, named: str, tip: str) -> Iterable[Commit]:
    """Return the commit with this name; without a name, the fixes of the branch."""
    last = repository.find(named or tip) if named or tip else None
    if last is None:
        return ()
    first = f"{last}^" if named else base
    try:
        commits = read_commits(repository, repository.resolve(first), last)
    except (GitError, SwarmError):
        return ()
    return tuple(commit for commit in commits if commit.subject.lstrip().startswith(FIX_PREFIX))


def is_taken(left: LeftOut, taken: Iterable[Fix]) -> bool:
    """Return whether a left-out fix is among the fixes that the plan includes."""
    return any(fix.id == left.commit if left.commit else left.branch in fix.branches for fix in taken)


def take_in(space: ObjectSpace, tree: str, taken: Sequence[Fix]) -> list[TakenStep]:
    """Cherry-pick left-out fixes one after the other. A fix that conflicts is skipped."""
    steps = []
    for fix in taken:
        commit = fix.commit
        merge = space.merge(base=commit.parent_tree, ours=tree, theirs=commit.tree)
        tree = merge.tree if merge.is_clean else tree
        steps.append(TakenStep(fix, tree, None if merge.is_clean else merge))
    return steps


def with_taken(space: ObjectSpace, branch: IntegratedBranch, below: Preview, taken: Sequence[Fix]) -> Preview:
    """Return the preview of a plan with left-out fixes, based on the preview without them."""
    names = tuple(fix.id for fix in taken)
    if below.tree is None:
        return replace(below, taken=names)
    steps = take_in(space, below.tree, taken)
    blocked = [(step.fix, step.merge) for step in steps if step.merge is not None]
    conflicts = tuple(
        Conflict(fix.id, _opponents(space, branch, fix, merge, below.reverted), merge.conflict_paths)
        for fix, merge in blocked
    )
    return replace(below, tree=None if conflicts else steps[-1].tree, conflicts=conflicts, taken=names)


def _opponents(
    space: ObjectSpace, branch: IntegratedBranch, fix: Fix, merge: MergeResult, reverted: Collection[str]
) -> tuple[str, ...]:
    """Return the fixes that conflict with a left-out fix when alone; if there is none, all that change its files."""
    paths = fix.commit.paths | frozenset(merge.conflict_paths)
    possible = [commit for commit in branch.commits if commit.id not in reverted and commit.paths & paths]
    proven = tuple(commit.id for commit in possible if _do_conflict(space, commit, fix.commit))
    return proven or tuple(commit.id for commit in possible)


def _do_conflict(space: ObjectSpace, first: Commit, second: Commit) -> bool:
    """Return whether the second commit conflicts if only the first one is applied to its parent."""
    paths = first.paths | second.paths
    begin = space.flat_tree(second.parent_tree, paths)
    merge = space.merge(
        base=space.flat_tree(first.parent_tree, paths), ours=begin, theirs=space.flat_tree(first.tree, paths)
    )
    if not merge.is_clean:
        return True
    return not space.merge(base=begin, ours=merge.tree, theirs=space.flat_tree(second.tree, paths)).is_clean


def can_be_reverted_by_path(commit: Commit) -> bool:
    """Return whether restoring the commit's paths is an exact revert, if later commits do not change these paths.

    This is the case if the commit only changes and adds files. Restoring deleted files, or files with a changed type,
    requires a merge: git may see the deletion as half of a rename, or follow a folder that was moved later.
    """
    return bool(commit.changes) and all(change.status in ("A", "M") for change in commit.changes)


def later_commits_that_stay(branch: IntegratedBranch, commit: str, reverted: Collection[str]) -> tuple[Commit, ...]:
    """Return the later commits that the plan does not revert, oldest first."""
    position = next(place for place, other in enumerate(branch.commits) if other.id == commit)
    return tuple(later for later in branch.commits[position + 1 :] if later.id not in reverted)


def commits_changing(commits: Iterable[Commit], paths: Collection[str]) -> tuple[Commit, ...]:
    path_set = frozenset(paths)
    return tuple(commit for commit in commits if not path_set.isdisjoint(commit.paths))


def verdict_counts(verdicts: Mapping[str, str], fixes: Iterable[str]) -> tuple[int, int, int, int]:
    """Return how many of the fixes are kept, partly kept, reverted and open."""
    found = [verdicts.get(fix) for fix in fixes]
    kept, partly, reverted = (found.count(word) for word in ("keep", "partly", "revert"))
    return kept, partly, reverted, len(found) - kept - partly - reverted


def closing_line(verdicts: Mapping[str, str], fixes: Collection[str]) -> str:
    """Return the line for scripts that is printed at the end of a review."""
    kept, partly, reverted, still_open = verdict_counts(verdicts, fixes)
    in_part = f", {partly} partly" if partly else ""
    return f"reviewed {kept + partly + reverted} of {len(fixes)}, {reverted} reverted{in_part}, {still_open} open"


Resolution = Mapping[str, TreeEntry | None]
"""Resolution of a conflict: the paths whose entries differ from git's merge; None for a deleted path."""


@dataclass(frozen=True, slots=True)
class RevertStep:
    """One revert on one tree."""

    ours: str
    tree: str
    """The resulting tree; equal to `ours` after a conflict."""
    merge: MergeResult | None = None
    """The merge that conflicted."""
    is_resolved: bool = False

    @property
    def is_conflict(self) -> bool:
        return self.merge is not None and not self.is_resolved


class Previewer:
    """Computes previews of one branch, and caches every step, so that one more verdict costs one more merge.

    Thread-safe: calls from several threads run one after the other.
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
        self._parts = TestChanges()
        self._rebuilder: Rebuilder | None = None
        self._left_out: tuple[Fix, ...] = ()
        self._lock = threading.RLock()

    def use_parts(self, parts: TestChanges) -> None:
        """Let plans leave out these test changes. Such a plan cherry-picks all remaining changes."""
        with self._lock:
            self._parts = parts
            self._rebuilder = Rebuilder(self._space, self._branch, parts, self.hunks) if parts.parts else None
            self._previews.clear()

    def use_hunks(self, hunks: CommitHunks) -> None:
        """Let plans revert these hunks separately."""
        with self._lock:
            self.hunks.add(hunks)
            self._previews.clear()

    def use_left_out(self, fixes: tuple[Fix, ...]) -> None:
        """Let plans include these fixes, which are not on the branch."""
        with self._lock:
            self._left_out = fixes
            self._previews.clear()

    def rest_of(self, preview: Preview) -> Preview:
        """Return the preview of a plan without the left-out fixes that it includes."""
        return self.preview(preview.chosen.difference(preview.taken)) if preview.taken else preview

    def taken_steps(self, preview: Preview) -> list[TakenStep]:
        """Return the step of each left-out fix that a plan includes."""
        rest = self.rest_of(preview)
        return take_in(self._space, rest.tree, self._included(preview.chosen)[0]) if rest.tree is not None else []

    def _included(self, chosen: Collection[str]) -> tuple[list[Fix], tuple[str, ...]]:
        """Return the included left-out fixes, reduced to their included hunks, and the hunks that are not included."""
        taken, left = list[Fix](), list[str]()
        for fix in self._left_out:
            if fix.id in chosen:
                commit, hunks = self.hunks.taken_part(fix.commit, chosen)
                taken += [replace(fix, commit=commit)] if commit is not None else []
                left += hunks
        return taken, tuple(left)

    def rebuilder(self, reverted: Collection[str]) -> Rebuilder | None:
        """Return a rebuilder for a plan that leaves out test changes; None for a plan that only reverts."""
        return self._rebuilder if without(self._branch, self._parts, reverted) else None

    def preview(self, reverted: Collection[str]) -> Preview:
        """Return the preview of reverting these commits and hunks and leaving out these test changes."""
        plan = frozenset(reverted)
        with self._lock:
            if self._space.clear_if_full():
                self._forget()
            result = self._previews.get(plan)
            if result is None:
                taken, left = self._included(plan)
                if taken:
                    rest = self.preview(plan - {fix.id for fix in taken})
                    with_them = with_taken(self._space, self._branch, rest, taken)
                    result = replace(with_them, hunks=(*rest.hunks, *left))
                else:
                    rebuilder = self.rebuilder(plan)
                    result = rebuilder.preview(self.left_out(plan)) if rebuilder else self._compute(plan)
                self._previews[plan] = result
            return result

    def left_out(self, reverted: Collection[str]) -> frozenset[str]:
        """Return the ids that are not cherry-picked when the branch is rebuilt: fixes and test changes."""
        parts = without(self._branch, self._parts, reverted)
        return (frozenset(reverted) - {self._branch.squashed or ""}) | parts if parts else frozenset(reverted)

    def steps(self, reverted: Collection[str]) -> list[tuple[Commit, RevertStep]]:
        """Return the step of each revert, newest first. A revert that conflicts is skipped.

        For a partly reverted fix, the commit contains only the reverted hunks, on top of a commit with the kept hunks.
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
        """Return the reverted commits, newest first, because later fixes may build on earlier ones."""
        parts = (self.hunks.reverted_part(commit, reverted) for commit in reversed(self._branch.commits))
        return [commit for commit in parts if commit is not None]

    def add_resolution(self, key: str, resolution: Resolution) -> None:
        """Use the user's resolution for all later conflicts with the same key."""
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
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._revert(commit, ours)
        return step

    def _revert(self, commit: Commit, ours: str) -> RevertStep:
        reverted = self._revert_by_path(commit, ours) or self._revert_as_merged(commit, ours)
        if reverted is not None:
            return RevertStep(ours, reverted)
        # A revert is a merge of the current tree with the change from the commit to its parent.
        ahead = self._merged_ahead.get((commit.id, commit.parent_tree)) if ours == self._branch.tip_tree else None
        merge = ahead or self._space.merge(base=commit.tree, ours=ours, theirs=commit.parent_tree)
        if merge.is_clean:
            return RevertStep(ours, merge.tree)
        resolution = self._resolutions.get(conflict_key(commit.id, merge))
        if resolution is None:
            return RevertStep(ours, ours, merge)
        return RevertStep(ours, self._space.with_entries(merge.tree, resolution), merge, is_resolved=True)

    def _revert_by_path(self, commit: Commit, ours: str) -> str | None:
        """Return the tree with the commit's paths restored, or None if only a merge is exact."""
        if not can_be_reverted_by_path(commit):
            return None
        changes: dict[str, TreeEntry | None] = {}
        for change in commit.changes:
            if self._space.entry(ours, change.path) != TreeEntry(change.new_mode, change.new_id):
                return None
            changes[change.path] = None if change.status == "A" else TreeEntry(change.old_mode, change.old_id)
        return self._space.with_entries(ours, changes)

    def _merge_ahead(self, commits: Sequence[Commit]) -> None:
        """Merge all reverts of a plan onto the tip of the branch at once, if single merges are slow.

        If a commit only changes files that still exist, only the entries of those files affect its merge. So the merged
        entries are valid on every tree that has the same entries before the revert.
        """
        tip, changed = self._branch.tip_tree, set[str]()
        wanted = []
        for commit in commits:
            is_new = not any(
                known[:2] == (commit.id, commit.parent_tree) for known in (*self._steps, *self._merged_ahead)
            )
            # Files that an earlier revert has changed are merged separately.
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
        """Return whether a commit only changes the content of files that the branch otherwise leaves unchanged."""
        return bool(commit.changes) and all(
            change.status == "M"
            and change.old_mode == change.new_mode
            and change.new_mode in FILE_MODES
            and (entry := self._space.entry(self._branch.tip_tree, change.path)) is not None
            and entry.mode == change.new_mode
            for change in commit.changes
        )

    def _revert_as_merged(self, commit: Commit, ours: str) -> str | None:
        """Return the tree with a commit's files as merged in advance, if their entries are still the same."""
        merge = self._merged_ahead.get((commit.id, commit.parent_tree))
        tip, entry = self._branch.tip_tree, self._space.entry
        if merge is None or not merge.is_clean or any(entry(ours, path) != entry(tip, path) for path in commit.paths):
            return None
        return self._space.with_entries(ours, {path: entry(merge.tree, path) for path in commit.paths})

    def _possible_opponents(self, commit: Commit, merge: MergeResult, reverted: frozenset[str]) -> tuple[Commit, ...]:
        """Return the later remaining commits that a revert may conflict with."""
        stay = later_commits_that_stay(self._branch, commit.id, reverted)
        paths = frozenset(merge.conflict_paths)
        # A path outside of the commit was renamed later, so commits that change the old name may conflict too.
        return commits_changing(stay, paths if paths <= commit.paths else paths | commit.paths)

    def _opponents(self, commit: Commit, possible: Sequence[Commit]) -> tuple[str, ...]:
        """Return the commits that the revert conflicts with when alone; if there are none, all possible ones."""
        proven = tuple(later.id for later in possible if self._is_conflicting[_pair(commit, later)])
        return proven or tuple(later.id for later in possible)

    def _find_pair_conflicts(self, pairs: Sequence[tuple[Commit, Commit]]) -> None:
        """Compute for each pair whether a revert of the first commit conflicts if only the second one came later.

        All merges are done at once, on trees with only the paths of the two commits.
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
        clean_merges = [(*pair, merge.tree) for pair, merge in zip(unknown, onto, strict=True) if merge.is_clean]
        back = self._space.merger.merge_many(
            [
                (only(commit.tree, paths), tree, only(commit.parent_tree, paths))
                for commit, _, paths, tree in clean_merges
            ]
        )
        self._is_conflicting.update({_pair(commit, later): False for commit, later, _ in unknown})
        for (commit, later, _, _), merge in zip(clean_merges, back, strict=True):
            self._is_conflicting[_pair(commit, later)] = not merge.is_clean


def _has_attributes(commit: Commit) -> bool:
    """Return whether a commit changes how git merges files."""
    return any(path.rpartition("/")[2] == ATTRIBUTES_FILE for path in commit.paths)


def _pair(commit: Commit, later: Commit) -> tuple[str, str, str]:
    return commit.id, commit.parent_tree, later.id


def conflict_key(commit: str, merge: MergeResult) -> str:
    """Return a key of a conflict: the commit, and the versions of each conflicting path."""
    lines = [f"{stage.number} {stage.entry.mode} {stage.entry.id} {stage.path}" for stage in merge.stages]
    if not lines:
        lines = [merge.tree, *merge.blocked_paths]
    return hashlib.sha256("\0".join([commit, *sorted(lines)]).encode("utf-8", "surrogateescape")).hexdigest()


def extend_until_clean(previewer: Previewer, reverted: Collection[str]) -> frozenset[str] | None:
    """Return the reverts extended by all later commits that conflict with them; None if no extension is known."""
    plan = frozenset(reverted)
    while True:
        preview = previewer.preview(plan)
        if preview.is_clean:
            return plan
        more = {opponent for conflict in preview.conflicts for opponent in conflict.opponents} - plan
        if not more:
            return None
        plan |= more
