"""Makes a branch anew without some parts of its commit of test and doc fixes: what picking the rest in order gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from swarm_tui.adapters.git.merging import MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.model.fixes import CommitParts, Conflict, IntegratedBranch, Pick, Preview
from swarm_tui.triage import plan


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

    def __init__(self, space: ObjectSpace, branch: IntegratedBranch, parts: CommitParts) -> None:
        self._space = space
        self._branch = branch
        self._picks = picks_of(branch, parts)
        self._steps: dict[tuple[str, str, str], PickStep] = {}

    def forget(self) -> None:
        self._steps.clear()

    def steps(self, left_out: Collection[str]) -> list[PickStep]:
        """Return what each pick that stays does. One that conflicts is skipped by the next one."""
        return pick_all(
            self._space,
            self._branch.base_tree,
            [pick for pick in self._picks if pick.owner not in left_out],
            self._steps,
        )

    def preview(self, left_out: frozenset[str]) -> Preview:
        """Return the tree of the branch without these parts and commits, or which of them the others build on."""
        steps = self.steps(left_out)
        blocked = [step for step in steps if step.merge is not None]
        reverted = tuple(commit.id for commit in plan.reverts_in_order(self._branch, left_out))
        commits = {commit.id for commit in self._branch.commits}
        tree = steps[-1].tree if steps else self._branch.base_tree
        return Preview(
            reverted=reverted,
            tree=None if blocked else tree,
            conflicts=self._conflicts(blocked, left_out),
            left_out=tuple(dict.fromkeys(pick.owner for pick in self._picks if pick.owner in left_out - commits)),
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
        before = self._picks[: self._picks.index(blocked.pick)]
        missing = list(dict.fromkeys(pick.owner for pick in before if pick.owner in left_out))
        alone = [
            owner
            for owner in missing
            if any(step.merge is not None and step.pick is blocked.pick for step in self.steps({owner}))
        ]
        return alone or missing


def pick_all(
    space: ObjectSpace, tree: str, picks: Sequence[Pick], known: dict[tuple[str, str, str], PickStep] | None = None
) -> list[PickStep]:
    """Do the picks one after the other, beginning with a tree; a pick that conflicts is skipped by the next one."""
    known = {} if known is None else known
    done = []
    for pick in picks:
        key = (pick.before, pick.after, tree)
        step = known.get(key)
        if step is None or step.pick is not pick:
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
