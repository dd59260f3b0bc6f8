"""Applies a plan: composes the messages, creates the commits in a separate object directory, sets one branch.

The checkout, the index and all other refs are unchanged. No hook runs, and nothing is pushed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from swarm_tui.adapters.git import Identity, Repository, branch_ref
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.append import append_line
from swarm_tui.model.commit_messages import (
    SQUASH_PREFIX,
    fix_message,
    squash_message,
    squash_subject,
    trailer_of,
    with_origin,
    with_paragraph,
)
from swarm_tui.model.commits import Commit
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.review.changes import Change, Kind, Preview, TestChanges
from swarm_tui.review.picking import CommitBuilder
from swarm_tui.review.review import Review
from swarm_tui.review.shapes import conflict_summary
from swarm_tui.review.verdicts import APPLIED_FILE, VerdictLine

_REASONS_LIMIT = 2_000


def subject_without(parts: TestChanges, left_out: Collection[str]) -> str:
    """Return the subject of the commit of test and doc fixes without the left-out test changes."""
    kept = [part for part in parts.parts if part.id not in left_out]
    if parts.are_hunks:
        return f"{SQUASH_PREFIX} {len(kept)} of {counted(len(parts.parts), 'hunk')} of test and doc changes"
    return squash_subject(work for part in kept for work in parts.works.get(part.id, ()))


def message_without(review: Review, commit: Commit, preview: Preview) -> str:
    """Return the message of the commit of test and doc fixes without the left-out test changes."""
    parts, sweep = review.load_parts(), trailer_of(commit.message, "Sweep")
    kept = [part for part in parts.parts if part.id not in preview.left_out]
    message = squash_message([work for part in kept for work in parts.works.get(part.id, ())], sweep)
    if parts.are_hunks:
        listed = "\n".join(f"* {part.title}" for part in kept)
        agents = [agent for part in kept for agent in part.agents]
        message = with_origin(f"{subject_without(parts, preview.left_out)}\n\n{listed}", agents, (), sweep)
    left = counted(len(parts.parts) - len(kept), "test change")
    return with_paragraph(message, f"Without {left}, left out in review by {plain(review.by, 100) or 'a reviewer'}.")


def hunks_left_out(review: Review, preview: Preview, commit: Commit) -> tuple[tuple[Change, ...], int]:
    """Return the reverted hunks of a partly reverted commit, and the total number of its hunks."""
    fix = review.branch.find(commit.id)
    rows = review.known_hunks(fix) if fix is not None else ()
    return tuple(row for row in rows if row.id in preview.hunks), len(rows)


def lines_of(review: Review, changes: Sequence[Change]) -> str:
    """Return a line for each hunk or test change, with the reason for its verdict."""
    lines = []
    for change in changes:
        line = review.verdict_line(change)
        agents = change.agents[:3] if change.kind is Kind.TEST_CHANGE else ()
        lines.append(f"* {change.title}" + (f" ({', '.join(agents)})" if agents else ""))
        if line is not None and line.why.strip():
            lines += [f"  {row}" for row in plain_lines(line.why).strip()[:_REASONS_LIMIT].split("\n")]
    return "\n".join(lines)


def message_without_hunks(review: Review, commit: Commit, preview: Preview) -> str:
    """Return the message of a partly reverted fix, with a list of its reverted hunks."""
    hunks, total = hunks_left_out(review, preview, commit)
    if not hunks:
        return commit.message
    left = f"Without {len(hunks)} of its {total} hunks, left out in review by {plain(review.by, 100) or 'a reviewer'}:"
    return with_paragraph(commit.message, f"{left}\n\n{lines_of(review, hunks)}")


def leaving_subject(review: Review, preview: Preview) -> str:
    """Return the subject of a commit that removes test changes."""
    row = review.branch.tests
    subject = plain(row.commit.subject, 200) if row else ""
    return f'Leave out {counted(len(preview.left_out), "test change")} of "{subject}"'


def leaving_message(review: Review, preview: Preview) -> str:
    """Return the message of a commit that removes test changes: their list, the reasons and the reviewer."""
    opening = f"Left out in review by {plain(review.by, 100) or 'a reviewer'}:"
    parts = [part for part in review.known_parts if part.id in preview.left_out]
    return f"{leaving_subject(review, preview)}\n\n{opening}\n\n{lines_of(review, parts)}\n"


_SHORT: Final = 12


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """The result of applying a plan, for the user to confirm before anything is created."""

    branch: str
    replaces: str | None
    """The current commit of the branch, or None if the branch is new."""
    is_drop: bool
    """Create a clean branch without the reverted fixes instead of adding revert commits."""
    preview: Preview
    subjects: tuple[str, ...]
    """The subjects of the commits to create, oldest first, sanitized for display."""
    author: Identity
    is_signed: bool


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """The result of an applied plan."""

    branch: str
    commit: str
    commits: int
    """The number of new commits."""


def reviewed_branch(review: Review, sweep: str = "") -> str:
    """Return the default name of the branch that a plan is applied to."""
    return f"swarm/{sweep or review.branch.tip[:_SHORT]}/reviewed"


def applied_branch(review: Review, preview: Preview, sweep: str = "") -> str:
    """Return the branch that already has the tree of a plan, or ""."""
    branch = reviewed_branch(review, sweep)
    tip = review.repository.ref(branch_ref(branch)) if preview.changes_something and preview.tree is not None else None
    return branch if tip is not None and review.repository.tree_of(tip) == preview.tree else ""


def plan_apply(
    review: Review, branch: str, *, reverted: Collection[str] | None = None, is_drop: bool = False
) -> ApplyPlan:
    """Return the result of applying a plan, without creating anything. Raise an error if it cannot be applied."""
    preview = review.preview() if reverted is None else review.preview_of(reverted)
    if not preview.changes_something:
        raise UsageError("nothing is reverted, so there is nothing to apply", f"use {plain(review.tip_name)} unchanged")
    if not preview.is_clean:
        raise SwarmError(
            conflict_summary(review.branch, preview, review.known_parts),
            "revert those too, keep this fix, or resolve the conflict by hand",
        )
    if review.is_rewritten():
        raise SwarmError(
            f"{plain(review.tip_name)} was rewritten since this review was opened",
            "open the review again; verdicts on unchanged fixes are kept",
        )
    replaces = _commit_to_replace(review, branch)
    rest = _rest_of(review, preview)
    if is_drop and rest.changes_something:
        shorter = subject_without(review.load_parts(), rest.left_out) if rest.left_out else ""
        subjects = tuple(
            shorter if _loses_parts(review, rest, commit) else plain(commit.subject)
            for commit, _ in _without_dropped(review, rest)[1]
        )
    else:
        _check_reverts(review, rest)
        subjects = tuple(
            _revert_subject(commit, _part_reverted(review, rest, commit))
            for commit in review.stack.reverts(rest.chosen)
            if commit.id not in rest.unchanging
        )
        subjects += (leaving_subject(review, rest),) if rest.left_out else ()
    subjects += tuple(plain(step.commit.subject) for step in review.stack.on_top(preview.chosen))
    return ApplyPlan(
        branch=branch,
        replaces=replaces,
        is_drop=is_drop,
        preview=preview,
        subjects=subjects,
        author=review.repository.identity(),
        is_signed=review.repository.signs_commits(),
    )


def apply_plan(
    review: Review, proposal: ApplyPlan, *, sweep: str = "", on_commit: Callable[[int], object] = lambda count: None
) -> AppliedPlan:
    """Create the commits and set the branch. Raise RefMoved if the branch differs from the proposal."""
    if review.is_rewritten():
        raise SwarmError(f"{plain(review.tip_name)} was rewritten during this review", "open the review again")
    with review.space.retained():
        builder = CommitBuilder(review.space, review.branch.tip, is_signed=proposal.is_signed, on_commit=on_commit)
        if proposal.is_drop:
            build_clean_branch(review, proposal.preview, builder)
        else:
            _add_reverts(review, _rest_of(review, proposal.preview), builder, sweep)
            _add_included(review, proposal.preview, builder)
        commit = builder.tip
        review.space.copy_to_repository(commit, known=[review.branch.tip])
    entry = {"at": time.time(), "by": review.by, "branch": proposal.branch, "commit": commit}
    # The branch may have been checked out while its commits were created.
    _refuse_checked_out(review, proposal.branch)
    reason = f"{_reflog_prefix(review)}{review.closing_line()}"
    name = branch_ref(proposal.branch)
    review.repository.update_ref(name, commit, old=proposal.replaces, reason=reason, is_logged=True)
    append_line(review.store.folder.root / APPLIED_FILE, json.dumps(entry))
    return AppliedPlan(proposal.branch, commit, builder.count)


def _commit_to_replace(review: Review, branch: str) -> str | None:
    """Return the commit of the branch, or None if it is new. Raise UsageError if this review did not create the branch.

    A user's branch is never moved, even if no commit would be lost, because its name has a meaning, like `release`.
    """
    repository = review.repository
    if repository.is_symbolic(branch_ref(branch)):
        raise UsageError(f"{branch} is an alias of another branch", "choose a new name: --apply BRANCH")
    now = repository.ref(branch_ref(branch))
    if now is None:
        return None
    _refuse_checked_out(review, branch)
    if _is_result_of(review, branch, now):
        return now
    raise UsageError(
        f"the branch {branch} already exists at {now[:_SHORT]}, which this review did not create",
        "choose another name: --apply BRANCH",
    )


def _refuse_checked_out(review: Review, branch: str) -> None:
    folder = review.repository.checked_out_branches().get(branch)
    if folder is not None:
        raise UsageError(f"the branch {branch} is checked out in {folder}", "choose another name: --apply BRANCH")


def _is_result_of(review: Review, branch: str, tip: str) -> bool:
    """Return whether applying this review created a branch and last set it to this tip, according to its reflog.

    The list of applied plans is not used, because agents on this machine can write to that file.
    """
    log = review.repository.reflog(branch_ref(branch))
    ours = _reflog_prefix(review)
    return bool(log) and log[0][0] == tip and all(reason.startswith(ours) for _, reason in (log[0], log[-1]))


def _reflog_prefix(review: Review) -> str:
    return f"swarm-tui: apply {plain(review.tip_name, 200)}: "


# Revert commits


def _rest_of(review: Review, preview: Preview) -> Preview:
    """Return the preview of a plan without the left-out fixes that it includes."""
    return review.stack.preview(review.stack.rest_of(preview.chosen)) if preview.taken else preview


def _add_reverts(review: Review, preview: Preview, builder: CommitBuilder, sweep: str) -> None:
    """Add a commit for each revert, and one for the left-out test changes."""
    for step in review.stack.without(preview.chosen):
        if step.tree == step.ours:
            continue
        fix = review.branch.find(step.commit.id)
        message = revert_message(
            step.commit,
            fix,
            review.verdict_line(fix) if fix else None,
            by=review.by,
            sweep=sweep,
            total=len(review.fixes),
            is_resolved=step.is_resolved,
            part=_part_reverted(review, preview, step.commit),
            hunks=lines_of(review, hunks_left_out(review, preview, step.commit)[0]),
        )
        builder.add(step.tree, message)
    if preview.left_out:
        assert preview.tree is not None, "the plan builds"
        builder.add(preview.tree, leaving_message(review, preview))


def _check_reverts(review: Review, preview: Preview) -> None:
    """Raise UsageError for reverts that only apply if the left-out test changes were never on the branch."""
    steps = review.stack.without(preview.chosen) if preview.left_out else []
    blocked = next((step.commit for step in steps if step.is_conflict), None)
    if blocked is not None:
        raise SwarmError(
            f"{plain(blocked.subject, 60)!r} cannot be reverted on top of the branch", "apply it as a clean branch"
        )


def _revert_subject(commit: Commit, part: str = "") -> str:
    return f'Revert {part}"{plain(commit.subject, 200)}"'


def _part_reverted(review: Review, preview: Preview, commit: Commit) -> str:
    """Return the reverted share of a commit: "2 of 5 hunks of ", or "" for all of it."""
    hunks, total = hunks_left_out(review, preview, commit)
    return f"{len(hunks)} of {counted(total, 'hunk')} of " if hunks else ""


def revert_message(
    commit: Commit,
    fix: Change | None,
    line: VerdictLine | None,
    *,
    by: str,
    sweep: str,
    total: int,
    is_resolved: bool,
    part: str = "",
    hunks: str = "",
) -> str:
    """Return the message of a revert: the fix or its hunks, the reason, and the reviewer."""
    rank = f"Fix {fix.rank} of {total}" if fix else "A commit"
    where = f" of sweep {plain(sweep, 100)}" if sweep else ""
    when = time.strftime(" on %Y-%m-%d", time.gmtime(line.at)) if line and line.at else ""
    paragraphs = [
        _revert_subject(commit, part),
        f"This reverts {part}commit {commit.id}" + (f":\n\n{hunks}" if hunks else "."),
        f"{rank}{where}, reverted by {plain(line.by if line else by, 100) or 'a reviewer'}{when}.",
    ]
    if fix and fix.agents:
        paragraphs.append(f"Created by {', '.join(fix.agents[:5])}{' and others' if len(fix.agents) > 5 else ''}.")
    if line and line.why.strip():
        paragraphs.append(f"Why: {plain_lines(line.why).strip()[:2_000]}")
    if is_resolved:
        paragraphs.append("A conflict with a later commit was resolved by hand.")
    return "\n\n".join(paragraphs) + "\n"


def _add_included(review: Review, preview: Preview, builder: CommitBuilder) -> None:
    """Add a commit for each included left-out fix, with trailers as on the integrated branch.

    The messages do not mention the agents' own commits, because `swarm-tui clean` removes the refs to them.
    """
    sweep = next(filter(None, (trailer_of(commit.message, "Sweep") for commit in review.branch.commits)), "")
    fixes = {fix.id: fix for fix in review.left_out}
    for step in review.stack.on_top(preview.chosen):
        fix = fixes[step.commit.id]
        without = "".join(f"Without {hunk.title}.\n" for hunk in review.known_hunks(fix) if hunk.id in preview.hunks)
        message = fix_message(step.commit.message, fix.agents, fix.tests, sweep)
        builder.add(step.tree, with_paragraph(message, without), like=step.commit)


# Clean branches


def _loses_parts(review: Review, preview: Preview, commit: Commit) -> bool:
    return bool(preview.left_out) and commit.id == review.branch.squashed


def _without_dropped(review: Review, preview: Preview) -> tuple[str, list[tuple[Commit, str]]]:
    """Return the commit before the first dropped one, and each remaining commit after it with its new tree."""
    if not preview.changes_something:
        return review.branch.tip, []
    commits, kept_part = review.branch.commits, review.stack.hunks.kept_part
    first = next(
        place
        for place, commit in enumerate(commits)
        if kept_part(commit, preview.chosen) is not commit or _loses_parts(review, preview, commit)
    )
    steps = review.stack.with_only(preview.chosen)
    blocked = next((step for step in steps if step.merge is not None), None)
    if blocked is not None and blocked.merge is not None:
        raise SwarmError(
            f"{plain(blocked.commit.subject, 60)!r} builds on a reverted fix, in"
            f" {plain(blocked.merge.conflict_paths[0], 80)}",
            "apply the plan with revert commits instead",
        )
    names = {commit.id for commit in commits}
    trees = {step.commit.id if step.commit.id in names else review.branch.squashed: step.tree for step in steps}
    if (steps[-1].tree if steps else review.branch.base_tree) != preview.tree:
        raise SwarmError(
            "a branch without the reverted fixes would not match the preview",
            "apply the plan with revert commits instead",
        )
    return commits[first].parent, [(commit, trees[commit.id]) for commit in commits[first:] if commit.id in trees]


def build_clean_branch(review: Review, preview: Preview, builder: CommitBuilder) -> None:
    """Create the commits of a plan without the dropped commits in its history."""
    rest = _rest_of(review, preview)
    builder.tip, built = _without_dropped(review, rest)
    for commit, tree in built:
        is_less = _loses_parts(review, rest, commit)
        message = message_without(review, commit, rest) if is_less else message_without_hunks(review, commit, rest)
        builder.add(tree, message, like=commit)
    _add_included(review, preview, builder)


def checkout_hint(repository: Repository, applied: AppliedPlan) -> str:
    """Return the command that checks out the result, preceded by advice about uncommitted changes."""
    dirty = repository.dirty_paths(has_untracked=False)
    first = f"commit or stash {counted(len(dirty), 'changed file')}, then " if dirty else ""
    return f"{first}git switch {applied.branch}"
