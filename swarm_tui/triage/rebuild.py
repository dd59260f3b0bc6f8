"""Makes a branch anew without some parts of its commit of test and doc fixes: what picking the rest in order gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from swarm_tui.adapters.git.merging import MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.model.fixes import CommitParts, Conflict, IntegratedBranch, Pick, Preview
from swarm_tui.triage.hunks import HunksOfFixes, is_of


@dataclass(frozen=True, slots=True)
class PickStep:
    """One pick on one tree."""

    pick: Pick
    ours: str
    tree: str
    """The resulting tree; the same as `ours` when there is a conflict."""
    merge: MergeResult | None = None
    """The merge that could not be done cleanly."""


def picks_of(branch: IntegratedBranch, parts: CommitParts) -> tuple[Pick, ...]:
    """Return all picks that make the branch: its commits in order, those of the parts in place of their commit."""
    picks: list[Pick] = []
    for commit in branch.commits:
        if commit.id == branch.squashed and parts.picks:
            picks += parts.picks
        else:
            picks.append(Pick(commit.id, commit.parent_tree, commit.tree, commit.changes))
    return tuple(picks)


def without(branch: IntegratedBranch, parts: CommitParts, reverted: Collection[str]) -> frozenset[str]:
    """Return the parts that are left out, if the plan leaves out any: all of them when it is without their commit."""
    if branch.squashed in reverted:
        return frozenset(part.id for part in parts.parts)
    return frozenset(part.id for part in parts.parts if part.id in reverted)


class Rebuilder:
    """Picks what stays of a branch, and remembers every step. It has no lock of its own."""

    def __init__(self, space: ObjectSpace, branch: IntegratedBranch, parts: CommitParts, hunks: HunksOfFixes) -> None:
        self._space = space
        self._branch = branch
        self._picks = picks_of(branch, parts)
        self._commits = {commit.id: commit for commit in branch.commits}
        self._hunks = hunks
        self._steps: dict[tuple[str, str, str], PickStep] = {}

    def forget(self) -> None:
        self._steps.clear()

    def steps(self, left_out: Collection[str]) -> list[PickStep]:
        """Return what each pick that stays does. One that conflicts is skipped by the next one."""
        picks = (self._what_stays(pick, left_out) for pick in self._picks)
        return pick_all(self._space, self._branch.base_tree, [pick for pick in picks if pick is not None], self._steps)

    def _what_stays(self, pick: Pick, left_out: Collection[str]) -> Pick | None:
        """Return what is left of a pick: of a fix perhaps only some hunks."""
        if pick.owner in left_out:
            return None
        commit = self._commits.get(pick.owner)
        kept = self._hunks.kept_part(commit, left_out) if commit is not None else None
        if commit is None or kept is commit:
            return pick
        return Pick(kept.id, kept.parent_tree, kept.tree, kept.changes) if kept is not None else None

    def preview(self, left_out: frozenset[str]) -> Preview:
        """Return the tree of the branch without these parts and commits, or which of them the others build on."""
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
        """Return for each part or commit that is left out what stays and builds on it."""
        found: dict[str, dict[str, None]] = {}
        paths: dict[str, dict[str, None]] = {}
        for step in blocked:
            assert step.merge is not None, "it is blocked"
            for culprit in self._needed_by(step, left_out):
                found.setdefault(culprit, {})[step.pick.owner] = None
                paths.setdefault(culprit, {}).update(dict.fromkeys(step.merge.conflict_paths))
        return tuple(Conflict(culprit, tuple(others), tuple(paths[culprit])) for culprit, others in found.items())

    def _needed_by(self, blocked: PickStep, left_out: Collection[str]) -> list[str]:
        """Return what is left out and is needed by a pick: each that is by itself, else all that were before it."""
        place = next(n for n, pick in enumerate(self._picks) if _is_same(pick, blocked.pick))
        before = [pick for pick in self._picks[:place] if self._what_stays(pick, left_out) is not pick]
        missing = list(dict.fromkeys(pick.owner for pick in before))
        alone = [owner for owner in missing if self._is_blocked_by(owner, blocked.pick, left_out)]
        return alone or missing

    def _is_blocked_by(self, owner: str, blocked: Pick, left_out: Collection[str]) -> bool:
        """Return whether a pick conflicts when nothing is left out but this part or commit, or its hunks that are."""
        hunks = {name for name in left_out if is_of(name, owner)}
        steps = self.steps({owner} if owner in left_out else hunks)
        return any(step.merge is not None and _is_same(step.pick, blocked) for step in steps)


def _is_same(pick: Pick, other: Pick) -> bool:
    """Return whether two picks are of the same change, or of hunks of it."""
    return (pick.owner, pick.before) == (other.owner, other.before)


def pick_all(
    space: ObjectSpace, tree: str, picks: Sequence[Pick], known: dict[tuple[str, str, str], PickStep] | None = None
) -> list[PickStep]:
    """Do the picks one after the other, beginning with a tree; a pick that conflicts is skipped by the next one."""
    known = {} if known is None else known
    done = []
    for pick in picks:
        key = (pick.before, pick.after, tree)
        step = known.get(key)
        if step is None or step.pick != pick:
            step = known[key] = _pick(space, pick, tree)
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
    """Return the tree with the paths of a pick as they are after it, or None where only a merge is exact.

    It is exact where files are only changed that are as they were before: a file that is added may belong into a folder
    that has moved.
    """
    if not pick.changes or any(change.status != "M" for change in pick.changes):
        return None
    changes: dict[str, TreeEntry | None] = {}
    for change in pick.changes:
        if space.entry(ours, change.path) != TreeEntry(change.old_mode, change.old_id):
            return None
        changes[change.path] = TreeEntry(change.new_mode, change.new_id)
    return space.with_entries(ours, changes)
