"""The commits of a plan that leaves out parts of the commit of all test and doc fixes."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.model.fixes import Commit, Fix, Preview
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.triage.review import Review

_REASONS_LIMIT = 2_000


def rebuilt_trees(review: Review, preview: Preview) -> dict[str, str]:
    """Return the tree of each commit that stays once the parts and the reverted fixes have never been."""
    everything = preview.chosen
    rebuilder = review.previewer.rebuilder(everything)
    assert rebuilder is not None, "the plan leaves out parts"
    trees: dict[str, str] = {}
    commits = {commit.id for commit in review.branch.commits}
    for step in rebuilder.steps(everything):
        owner = step.pick.owner
        trees[owner if owner in commits else review.branch.squashed or ""] = step.tree
    return trees


def subject_without(commit: Commit, preview: Preview) -> str:
    """Return the first line of the commit of test and doc fixes once parts of it are left out."""
    return f"{plain(commit.subject, 200)}, without {len(preview.left_out)} of them"


def message_without(review: Review, commit: Commit, preview: Preview) -> str:
    """Return the message of the commit of test and doc fixes once parts of it are left out."""
    _, _, rest = commit.message.partition("\n")
    return f"{subject_without(commit, preview)}\n\n{_what_is_left_out(review, preview)}\n{rest}"


def hunks_left_out(review: Review, preview: Preview, commit: Commit) -> tuple[tuple[Fix, ...], int]:
    """Return the hunks of a commit that a plan reverts without the rest of it, and the number of all its hunks."""
    fix = review.branch.find(commit.id)
    rows = review.known_hunks(fix) if fix is not None else ()
    return tuple(row for row in rows if row.id in preview.hunks), len(rows)


def hunk_lines(review: Review, hunks: Sequence[Fix]) -> str:
    """Return a line for each hunk, and why it was reverted."""
    lines = []
    for hunk in hunks:
        line = review.verdict_line(hunk)
        lines.append(f"* {hunk.title}")
        if line is not None and line.why.strip():
            lines += [f"  {row}" for row in plain_lines(line.why).strip()[:_REASONS_LIMIT].split("\n")]
    return "\n".join(lines)


def message_without_hunks(review: Review, commit: Commit, preview: Preview) -> str:
    """Return the message of a fix of which some hunks are left out: as it was, and which."""
    hunks, total = hunks_left_out(review, preview, commit)
    if not hunks:
        return commit.message
    left = f"Without {len(hunks)} of its {total} hunks, left out in review by {plain(review.by, 100) or 'a reviewer'}:"
    return f"{commit.message.rstrip()}\n\n{left}\n\n{hunk_lines(review, hunks)}\n"


def leaving_subject(review: Review, preview: Preview) -> str:
    """Return the first line of a commit that takes parts out again."""
    row = review.branch.tests
    return f'Leave out {counted(len(preview.left_out), "part")} of "{plain(row.commit.subject, 200) if row else ""}"'


def leaving_message(review: Review, preview: Preview) -> bytes:
    """Return the message of a commit that takes parts out again: which, why, by whom."""
    return f"{leaving_subject(review, preview)}\n\n{_what_is_left_out(review, preview)}".encode("utf-8", "replace")


def _what_is_left_out(review: Review, preview: Preview) -> str:
    lines = [f"Left out in review by {plain(review.by, 100) or 'a reviewer'}:", ""]
    for part in (part for part in review.known_parts if part.id in preview.left_out):
        lines.append(f"* {part.title}" + (f" ({', '.join(part.agents[:3])})" if part.agents else ""))
        line = review.verdict_line(part)
        if line is not None and line.why.strip():
            lines += [f"  {row}" for row in plain_lines(line.why).strip()[:_REASONS_LIMIT].split("\n")]
    return "\n".join(lines) + "\n"
