"""Fixes of agents that are not on the integrated branch: which there are, and the plan with some of them taken in.

The law: such a plan is the plan without them, and then `git cherry-pick` of each, in the order of the list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.adapters.git import GitError, Repository
from swarm_tui.adapters.git.history import read_commits
from swarm_tui.adapters.git.merging import MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import SwarmError
from swarm_tui.model.fixes import FIX_PREFIX, Commit, Conflict, Fix, IntegratedBranch, Preview
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.text import plain

MOST_LEFT_OUT: Final = 50


@dataclass(frozen=True, slots=True)
class TakenStep:
    """One left-out fix, picked on one tree."""

    fix: Fix
    tree: str
    """The resulting tree; as it was when there is a conflict."""
    merge: MergeResult | None = None
    """The merge that could not be done cleanly."""


def read_left_out(
    repository: Repository, branch: IntegratedBranch, outcome: IntegratorOutcome, tips: Mapping[str, tuple[str, str]]
) -> tuple[Fix, ...]:
    """Return the fixes that the integrator left out, as far as their commits are here.

    `tips` maps each agent's branch to its last commit and its test.
    """
    found: dict[str, Fix] = {}
    on_branch = {commit.id for commit in branch.commits}
    for left in outcome.failed:
        tip, test = tips.get(left.branch, ("", ""))
        for commit in _fix_commits(repository, branch.base, left.commit, tip):
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
                agents=tuple(name.rpartition("/")[2] for name in branches),
                tests=tuple(dict.fromkeys((*(known.tests if known else ()), *((test,) if test else ())))),
            )
    return tuple(found.values())


def _fix_commits(repository: Repository, base: str, named: str, tip: str) -> Iterable[Commit]:
    """Return the fixes among what is meant: the one commit that is named, else all of the branch."""
    last = repository.find(named or tip) if named or tip else None
    if last is None:
        return ()
    first = f"{last}^" if named else base
    try:
        commits = read_commits(repository, repository.resolve(first), last)
    except (GitError, SwarmError):
        return ()
    return tuple(commit for commit in commits if commit.subject.lstrip().startswith(FIX_PREFIX))


def take_in(space: ObjectSpace, tree: str, taken: Sequence[Fix]) -> list[TakenStep]:
    """Pick left-out fixes one after the other on a tree. One that conflicts is skipped by the next one."""
    steps = []
    for fix in taken:
        commit = fix.commit
        merge = space.merge(base=commit.parent_tree, ours=tree, theirs=commit.tree)
        tree = merge.tree if merge.is_clean else tree
        steps.append(TakenStep(fix, tree, None if merge.is_clean else merge))
    return steps


def with_taken(space: ObjectSpace, branch: IntegratedBranch, below: Preview, taken: Sequence[Fix]) -> Preview:
    """Return the preview of a plan with left-out fixes taken in, from the one without them."""
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
    """Return what stays and conflicts with a left-out fix by itself; where nothing does, all that touch its files."""
    paths = fix.commit.paths | frozenset(merge.conflict_paths)
    possible = [commit for commit in branch.commits if commit.id not in reverted and commit.paths & paths]
    proven = tuple(commit.id for commit in possible if _do_fight(space, commit, fix.commit))
    return proven or tuple(commit.id for commit in possible)


def _do_fight(space: ObjectSpace, first: Commit, second: Commit) -> bool:
    """Return whether the second commit conflicts when only the first was made where it began."""
    paths = first.paths | second.paths
    begin = space.flat_tree(second.parent_tree, paths)
    made = space.merge(
        base=space.flat_tree(first.parent_tree, paths), ours=begin, theirs=space.flat_tree(first.tree, paths)
    )
    if not made.is_clean:
        return True
    return not space.merge(base=begin, ours=made.tree, theirs=space.flat_tree(second.tree, paths)).is_clean
