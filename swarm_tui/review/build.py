"""Builds the commits of a plan that leaves out some of the test changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from swarm_tui.model.commit_messages import (
    SQUASH_PREFIX,
    squash_message,
    squash_subject,
    trailer_of,
    with_origin,
    with_paragraph,
)
from swarm_tui.model.commits import Commit
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.review.changes import Change, Preview, TestChanges
from swarm_tui.review.review import Review

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


def hunk_lines(review: Review, hunks: Sequence[Change]) -> str:
    """Return a line for each hunk, with the reason for reverting it."""
    lines = []
    for hunk in hunks:
        line = review.verdict_line(hunk)
        lines.append(f"* {hunk.title}")
        if line is not None and line.why.strip():
            lines += [f"  {row}" for row in plain_lines(line.why).strip()[:_REASONS_LIMIT].split("\n")]
    return "\n".join(lines)


def message_without_hunks(review: Review, commit: Commit, preview: Preview) -> str:
    """Return the message of a partly reverted fix, with a list of its reverted hunks."""
    hunks, total = hunks_left_out(review, preview, commit)
    if not hunks:
        return commit.message
    left = f"Without {len(hunks)} of its {total} hunks, left out in review by {plain(review.by, 100) or 'a reviewer'}:"
    return with_paragraph(commit.message, f"{left}\n\n{hunk_lines(review, hunks)}")


def leaving_subject(review: Review, preview: Preview) -> str:
    """Return the subject of a commit that removes test changes."""
    row = review.branch.tests
    subject = plain(row.commit.subject, 200) if row else ""
    return f'Leave out {counted(len(preview.left_out), "test change")} of "{subject}"'


def leaving_message(review: Review, preview: Preview) -> str:
    """Return the message of a commit that removes test changes: their list, the reasons and the reviewer."""
    return f"{leaving_subject(review, preview)}\n\n{_left_out_list(review, preview)}"


def _left_out_list(review: Review, preview: Preview) -> str:
    lines = [f"Left out in review by {plain(review.by, 100) or 'a reviewer'}:", ""]
    for part in (part for part in review.known_parts if part.id in preview.left_out):
        lines.append(f"* {part.title}" + (f" ({', '.join(part.agents[:3])})" if part.agents else ""))
        line = review.verdict_line(part)
        if line is not None and line.why.strip():
            lines += [f"  {row}" for row in plain_lines(line.why).strip()[:_REASONS_LIMIT].split("\n")]
    return "\n".join(lines) + "\n"
