"""Applies a plan: builds the commits beside the repository, then sets one branch to them by compare-and-swap.

The checkout, the index and every other ref stay as they are; no hook runs, nothing is pushed.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.adapters.git import Identity, Repository, branch_ref
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.append import append_line
from swarm_tui.journal.follow import LineFollower
from swarm_tui.model.fixes import Commit, Fix, Preview
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.model.verdicts import VerdictLine
from swarm_tui.triage.leaving_out import (
    hunk_lines,
    hunks_left_out,
    leaving_message,
    leaving_subject,
    message_without,
    message_without_hunks,
    rebuilt_trees,
    subject_without,
)
from swarm_tui.triage.review import Review
from swarm_tui.triage.review_text import conflict_summary
from swarm_tui.triage.store import APPLIED_FILE, ReviewFolder

Tell = Callable[[int], object]
"""Is called after each commit with how many there are."""

_SHORT: Final = 12


def _tell_nobody(made: int) -> None:
    return


@dataclass(frozen=True, slots=True)
class Proposal:
    """What applying would do; shown to the person before anything is made."""

    branch: str
    replaces: str | None
    """The commit that the branch holds now, or None when it is new."""
    is_drop: bool
    """A clean branch without the reverted fixes, instead of revert commits on top."""
    preview: Preview
    subjects: tuple[str, ...]
    """The first lines of the commits that will be made, oldest first; harmless to show."""
    author: Identity
    is_signed: bool


@dataclass(frozen=True, slots=True)
class Applied:
    """What was made."""

    branch: str
    commit: str
    commits: int
    """How many commits were made."""


def reviewed_branch(review: Review, sweep: str = "") -> str:
    """Return the name of the branch that a plan is applied to when the person names none."""
    return f"swarm/{sweep or review.branch.tip[:_SHORT]}/reviewed"


def applied_branch(review: Review, preview: Preview, sweep: str = "") -> str:
    """Return the branch that already has the tree of a plan, or ""."""
    branch = reviewed_branch(review, sweep)
    tip = review.repository.ref(branch_ref(branch)) if preview.changes_something and preview.tree is not None else None
    return branch if tip is not None and review.repository.tree_of(tip) == preview.tree else ""


def propose(review: Review, branch: str, *, reverted: Collection[str] | None = None, is_drop: bool = False) -> Proposal:
    """Return what applying would do, or raise the reason why it cannot be done; nothing is made."""
    preview = review.preview() if reverted is None else review.preview_of(reverted)
    if not preview.changes_something:
        raise UsageError("nothing is reverted, so there is nothing to apply", f"{plain(review.tip_name)} is the result")
    if not preview.is_clean:
        raise SwarmError(
            conflict_summary(review.branch, preview, review.known_parts),
            "revert those too, keep this one, or resolve it by hand",
        )
    if review.is_rewritten():
        raise SwarmError(
            f"{plain(review.tip_name)} has been rewritten since this review was opened",
            "open it again: verdicts of unchanged fixes are kept",
        )
    replaces = _commit_to_replace(review, branch)
    rest = review.previewer.rest_of(preview)
    if is_drop and rest.changes_something:
        made = tuple(commit for commit, _ in _check_drop(review, rest))
        subjects = tuple(
            subject_without(commit, rest) if _loses_parts(review, rest, commit) else plain(commit.subject)
            for commit in made
        )
    else:
        _check_reverts(review, rest)
        subjects = tuple(
            _revert_subject(commit, _part_reverted(review, rest, commit)) for commit in _changing_reverts(review, rest)
        )
        subjects += (leaving_subject(review, rest),) if rest.left_out else ()
    subjects += tuple(plain(step.fix.commit.subject) for step in review.previewer.taken_steps(preview))
    return Proposal(
        branch=branch,
        replaces=replaces,
        is_drop=is_drop,
        preview=preview,
        subjects=subjects,
        author=review.repository.identity(),
        is_signed=review.repository.signs_commits(),
    )


def apply_proposal(review: Review, proposal: Proposal, *, sweep: str = "", tell: Tell = _tell_nobody) -> Applied:
    """Make the commits and set the branch, if it still holds what the proposal says; else raise RefMoved."""
    if review.is_rewritten():
        raise SwarmError(f"{plain(review.tip_name)} has been rewritten meanwhile", "open the review again")
    with review.space.retained():
        if proposal.is_drop:
            commit, made = build_clean_branch(review, proposal.preview, is_signed=proposal.is_signed, tell=tell)
        else:
            rest = replace(proposal, preview=review.previewer.rest_of(proposal.preview))
            commit, made = _build_reverts(review, rest, sweep, tell)
            commit, made = _take_in(review, proposal.preview, commit, made, proposal.is_signed, tell)
        review.space.copy_to_repository(commit, known=[review.branch.tip])
    entry = {"at": time.time(), "by": review.by, "branch": proposal.branch, "commit": commit}
    # Before the branch is set: were we killed between the two, the branch would count as somebody else's.
    append_line(review.store.folder.root / APPLIED_FILE, json.dumps(entry))
    # Somebody may have checked the branch out while its commits were made.
    _refuse_checked_out(review, proposal.branch)
    review.repository.update_ref(
        branch_ref(proposal.branch), commit, old=proposal.replaces, reason=f"swarm-tui: {review.closing_line()}"
    )
    return Applied(proposal.branch, commit, made)


def _commit_to_replace(review: Review, branch: str) -> str | None:
    """Return what the branch holds now, None when it is new; refuse any that this review did not make under that name.

    A branch of somebody else is left alone even if no commit would be lost: it stands for something, like `release`.
    """
    repository = review.repository
    if repository.is_symbolic(branch_ref(branch)):
        raise UsageError(f"{branch} is another name of another branch", "name a new one: --apply BRANCH")
    now = repository.ref(branch_ref(branch))
    if now is None:
        return None
    _refuse_checked_out(review, branch)
    if (branch, now) in _earlier_results(review.store.folder) and now != review.branch.tip:
        return now
    raise UsageError(
        f"the branch {branch} exists and holds {now[:_SHORT]}, which this review did not make",
        "name another one: --apply BRANCH",
    )


def _refuse_checked_out(review: Review, branch: str) -> None:
    folder = review.repository.checked_out_branches().get(branch)
    if folder is not None:
        raise UsageError(
            f"the branch {branch} is checked out in {folder}", "name another one: --apply BRANCH, or switch away there"
        )


def _earlier_results(folder: ReviewFolder) -> set[tuple[str, str]]:
    """Return the branches that were applied to, each with what it was set to."""
    found = set()
    for root in folder.roots:
        for _, line in LineFollower(root / APPLIED_FILE).read()[0]:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                found.add((str(entry["branch"]), str(entry["commit"])))
    return found


# Reverts on top


def _changing_reverts(review: Review, preview: Preview) -> list[Commit]:
    return [commit for commit in review.previewer.reverts(preview.chosen) if commit.id not in preview.unchanging]


def _build_reverts(review: Review, proposal: Proposal, sweep: str, tell: Tell) -> tuple[str, int]:
    parent, made = review.branch.tip, 0
    for commit, step in review.previewer.steps(proposal.preview.chosen):
        if step.tree == step.ours:
            continue
        fix = review.branch.find(commit.id)
        line = review.verdict_line(fix) if fix else None
        message = revert_message(
            commit,
            fix,
            line,
            by=review.by,
            sweep=sweep,
            total=len(review.fixes),
            is_resolved=step.is_resolved,
            part=_part_reverted(review, proposal.preview, commit),
            hunks=hunk_lines(review, hunks_left_out(review, proposal.preview, commit)[0]),
        )
        parent = review.space.commit(step.tree, [parent], message, is_signed=proposal.is_signed)
        made += 1
        tell(made)
    if proposal.preview.left_out:
        assert proposal.preview.tree is not None, "the plan builds"
        message = leaving_message(review, proposal.preview)
        parent = review.space.commit(proposal.preview.tree, [parent], message, is_signed=proposal.is_signed)
        made += 1
        tell(made)
    return parent, made


def _check_reverts(review: Review, preview: Preview) -> None:
    """Refuse reverts that only go where parts were never there."""
    steps = review.previewer.steps(preview.chosen) if preview.left_out else []
    blocked = next((commit for commit, step in steps if step.is_conflict), None)
    if blocked is not None:
        raise SwarmError(
            f"{plain(blocked.subject, 60)!r} cannot be reverted on top of the branch", "apply it as a clean branch"
        )


def _revert_subject(commit: Commit, part: str = "") -> str:
    return f'Revert {part}"{plain(commit.subject, 200)}"'


def _part_reverted(review: Review, preview: Preview, commit: Commit) -> str:
    """Return of which part of a commit a revert is: "2 of 5 hunks of ", or "" for all of it."""
    hunks, total = hunks_left_out(review, preview, commit)
    return f"{len(hunks)} of {counted(total, 'hunk')} of " if hunks else ""


def revert_message(
    commit: Commit,
    fix: Fix | None,
    line: VerdictLine | None,
    *,
    by: str,
    sweep: str,
    total: int,
    is_resolved: bool,
    part: str = "",
    hunks: str = "",
) -> bytes:
    """Return the message of a revert: which fix, or which hunks of it, why, by whom."""
    rank = f"Fix {fix.rank} of {total}" if fix else "A commit"
    where = f" of sweep {plain(sweep, 100)}" if sweep else ""
    when = time.strftime(" on %Y-%m-%d", time.gmtime(line.at)) if line and line.at else ""
    paragraphs = [
        _revert_subject(commit, part),
        f"This reverts {part}commit {commit.id}" + (f":\n\n{hunks}" if hunks else "."),
        f"{rank}{where}, reverted by {plain(line.by if line else by, 100) or 'a reviewer'}{when}.",
    ]
    if fix and fix.agents:
        paragraphs.append(f"It was made by {', '.join(fix.agents[:5])}{' and others' if len(fix.agents) > 5 else ''}.")
    if line and line.why.strip():
        paragraphs.append(f"Why: {plain_lines(line.why).strip()[:2_000]}")
    if is_resolved:
        paragraphs.append("A conflict with a later commit was resolved by hand.")
    return ("\n\n".join(paragraphs) + "\n").encode("utf-8", "replace")


def _take_in(review: Review, preview: Preview, parent: str, made: int, is_signed: bool, tell: Tell) -> tuple[str, int]:
    """Make the commits of left-out fixes anew, as `git cherry-pick -x` would; return the last and the number of all."""
    for step in review.previewer.taken_steps(preview):
        commit = step.fix.commit
        hunks = review.known_hunks(step.fix)
        without = "".join(f"Without {hunk.title}.\n" for hunk in hunks if hunk.id in preview.hunks)
        picked = f"(cherry picked {'in part ' if without else ''}from commit {commit.id})"
        message = "\n\n".join(filter(None, (commit.message.rstrip(), without.rstrip(), picked))) + "\n"
        parent = review.space.commit(
            step.tree,
            [parent],
            message.encode("utf-8", "replace"),
            author=Identity(commit.author_name, commit.author_email),
            authored=f"@{commit.authored}",
            is_signed=is_signed,
        )
        made += 1
        tell(made)
    return parent, made


# A clean branch without them


def _after_first_dropped(review: Review, preview: Preview) -> tuple[Commit, ...]:
    commits = review.branch.commits
    first = next(
        place
        for place, commit in enumerate(commits)
        if review.previewer.hunks.kept_part(commit, preview.chosen) is not commit
        or _loses_parts(review, preview, commit)
    )
    return commits[first:]


def _loses_parts(review: Review, preview: Preview, commit: Commit) -> bool:
    return bool(preview.left_out) and commit.id == review.branch.squashed


def _first_parent_of_drop(review: Review, preview: Preview) -> str:
    return _after_first_dropped(review, preview)[0].parent


def _trees_without(review: Review, preview: Preview) -> list[tuple[Commit, str]]:
    """Return each commit that stays, with its tree once the dropped ones have never been."""
    rest = _after_first_dropped(review, preview)
    if preview.left_out:
        trees = rebuilt_trees(review, preview)
        return [(commit, trees[commit.id]) for commit in rest if commit.id in trees]
    tree = rest[0].parent_tree
    built = []
    for commit in rest:
        kept = review.previewer.hunks.kept_part(commit, preview.chosen)
        if kept is None:
            continue
        merge = review.space.merge(base=kept.parent_tree, ours=tree, theirs=kept.tree)
        if not merge.is_clean:
            raise SwarmError(
                f"{plain(commit.subject, 60)!r} builds on a reverted fix, in {plain(merge.conflict_paths[0], 80)}",
                "apply it as reverts on top: that works",
            )
        tree = merge.tree
        built.append((commit, tree))
    return built


def _check_drop(review: Review, preview: Preview) -> list[tuple[Commit, str]]:
    built = _trees_without(review, preview)
    first = _after_first_dropped(review, preview)[0]
    result = built[-1][1] if built else first.parent_tree
    if result != preview.tree:
        raise SwarmError(
            "a branch without the reverted fixes would not hold the previewed content",
            "apply it as reverts on top: that does",
        )
    return built


def build_clean_branch(
    review: Review, preview: Preview, *, is_signed: bool = False, tell: Tell = _tell_nobody
) -> tuple[str, int]:
    """Make the commits of a plan whose history never had what it drops; return the last one, and how many they are."""
    rest = review.previewer.rest_of(preview)
    built = _check_drop(review, rest) if rest.changes_something else []
    parent = _first_parent_of_drop(review, rest) if rest.changes_something else review.branch.tip
    for number, (commit, tree) in enumerate(built, 1):
        is_less = _loses_parts(review, rest, commit)
        message = message_without(review, commit, rest) if is_less else message_without_hunks(review, commit, rest)
        parent = review.space.commit(
            tree,
            [parent],
            message.encode("utf-8", "replace"),
            author=Identity(commit.author_name, commit.author_email),
            authored=f"@{commit.authored}",
            is_signed=is_signed,
        )
        tell(number)
    return _take_in(review, preview, parent, len(built), is_signed, tell)


def checkout_hint(repository: Repository, applied: Applied) -> str:
    """Return the command that checks the result out, after what to do with changes that are not committed."""
    dirty = repository.dirty_paths(has_untracked=False)
    files = "1 changed file" if len(dirty) == 1 else f"{len(dirty)} changed files"
    first = f"commit or stash {files}, then " if dirty else ""
    return f"{first}git switch {applied.branch}"
