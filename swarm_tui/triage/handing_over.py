"""Hands a plan over to other programs: as patches in the order of `git am`, or as one branch for each fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from swarm_tui.adapters.git import Identity, branch_ref
from swarm_tui.adapters.git.history import read_tree_changes
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.fixes import Commit, Fix, Pick, Preview
from swarm_tui.model.text import plain
from swarm_tui.triage.apply import build_clean_branch, reviewed_branch
from swarm_tui.triage.leaving_out import message_without_hunks
from swarm_tui.triage.rebuild import pick_all
from swarm_tui.triage.review import Review
from swarm_tui.triage.review_text import conflict_summary


@dataclass(frozen=True, slots=True)
class FixBranch:
    """The branch of one fix."""

    fix: Fix
    name: str
    needed: tuple[Fix, ...] = ()
    """The fixes that it builds on, which are on the branch too."""
    problem: str = ""
    """Why there is none."""


def plan_tip(review: Review, preview: Preview) -> str:
    """Return a commit of the plan whose history never had what was left out; it is in the review's space only."""
    if not preview.is_clean:
        raise SwarmError(f"the plan does not build: {conflict_summary(review.branch, preview, review.known_parts)}")
    if not preview.changes_something:
        return review.branch.tip
    return build_clean_branch(review, preview)[0]


def write_patches(review: Review, preview: Preview, folder: Path) -> list[str]:
    """Write the plan's commits as patches into a new or empty folder; return their names, in the order of `git am`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty", "give a folder that does not exist yet")
    with review.space.retained():
        tip = plan_tip(review, preview)
        folder.mkdir(parents=True, exist_ok=True)
        # Nothing that the person has set changes what they hold: `git am` has to give the previewed tree.
        words = ("--quiet", "--no-signature", "--no-attach", "--no-signoff", "--full-index", "--binary")
        views = ("--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "--no-relative")
        commits = f"{review.branch.base}..{tip}"
        review.space.repository.run("format-patch", *words, *views, "-o", str(folder.absolute()), commits, timeout=300)
    return sorted(path.name for path in folder.iterdir())


def branches_of_fixes(review: Review, preview: Preview, sweep: str = "") -> list[FixBranch]:
    """Make a branch on the base for each fix that is kept; one that builds on others has those too."""
    kept = [fix for each in review.fixes if (fix := _what_stays(review, preview, each)) is not None]
    made = []
    with review.space.retained():
        for fix in kept:
            earlier = [other for other in kept if other.position < fix.position]
            name = f"{reviewed_branch(review, sweep).removesuffix('reviewed')}fix-{fix.rank}"
            made.append(_make_branch(review, fix, earlier, name))
    return made


def _what_stays(review: Review, preview: Preview, fix: Fix) -> Fix | None:
    """Return a fix with the hunks that a plan keeps of it, or None where it keeps none."""
    commit = review.previewer.hunks.kept_part(fix.commit, preview.chosen)
    if commit is None or commit is fix.commit:
        return fix if commit is not None else None
    changes = tuple(read_tree_changes(review.space.repository, commit.parent_tree, commit.tree))
    message = message_without_hunks(review, fix.commit, preview)
    return replace(fix, commit=replace(commit, changes=changes, message=message))


def _make_branch(review: Review, fix: Fix, earlier: Sequence[Fix], name: str) -> FixBranch:
    needed = _needed(review, fix, sorted(earlier, key=lambda other: other.position))
    if needed is None:
        return FixBranch(fix, name, problem="it builds on what is no fix: on the tests, or on what was reverted")
    parent, tree = review.branch.base, review.branch.base_tree
    for commit in (*(other.commit for other in needed), fix.commit):
        tree = pick_all(review.space, tree, [_pick(commit)])[0].tree
        parent = review.space.commit(
            tree,
            [parent],
            commit.message.encode("utf-8", "replace"),
            author=Identity(commit.author_name, commit.author_email),
            authored=f"@{commit.authored}",
        )
    there = review.repository.ref(branch_ref(name))
    if there is not None and review.repository.tree_of(there) == tree:
        return FixBranch(fix, name, needed)
    if there is not None:
        return FixBranch(fix, name, needed, f"the branch {plain(name, 100)} is there already, and is another")
    review.space.copy_to_repository(parent, known=[review.branch.base, review.branch.tip])
    review.repository.update_ref(branch_ref(name), parent, old=None, reason="swarm-tui: one fix")
    return FixBranch(fix, name, needed)


def _needed(review: Review, fix: Fix, earlier: Sequence[Fix]) -> tuple[Fix, ...] | None:
    """Return the fewest earlier fixes that are known to let it apply on the base; None when all do not."""
    if _applies(review, [fix]):
        return ()
    same_paths = [other for other in earlier if other.commit.paths & fix.commit.paths]
    for start in range(len(same_paths) - 1, -1, -1):
        if _applies(review, [*same_paths[start:], fix]):
            return tuple(same_paths[start:])
    return tuple(earlier) if _applies(review, [*earlier, fix]) else None


def _applies(review: Review, fixes: Sequence[Fix]) -> bool:
    steps = pick_all(review.space, review.branch.base_tree, [_pick(fix.commit) for fix in fixes])
    return all(step.merge is None for step in steps)


def _pick(commit: Commit) -> Pick:
    return Pick(commit.id, commit.parent_tree, commit.tree, commit.changes)
