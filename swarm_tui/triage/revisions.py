"""Fixes that came back from their authors: the commit of before, what was said of it, and the difference."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from swarm_tui.adapters.git import GitError
from swarm_tui.model.diff import Diff
from swarm_tui.model.fixes import Fix
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.triage.parts import commit_fields
from swarm_tui.triage.review import Review


class ReturnedFix(BaseModel):
    """One fix that was sent back, and the commit that took its place."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    old: str
    new: str
    comment: Annotated[str, AfterValidator(plain_lines)] = ""
    by: Annotated[str, AfterValidator(lambda name: plain(name, 80))] = ""
    agent: Annotated[str, AfterValidator(lambda name: plain(name, 200))] = ""


_HUNK_LIMIT: Final = 8_000
_RETURNED = TypeAdapter(tuple[ReturnedFix, ...])


def returned_fixes(outcome: IntegratorOutcome) -> dict[str, ReturnedFix]:
    """Return the fixes that came back by their present commits; of one that was sent back twice, the last time."""
    try:
        found = _RETURNED.validate_python((outcome.model_extra or {}).get("revisions") or ())
    except ValidationError:
        return {}
    return {returned.new: returned for returned in found}


def hunk_text(review: Review, hunk: Fix) -> str:
    """Return a hunk as its author is shown it: the file, the header and the lines; "" of a whole fix."""
    if not hunk.hunk_of:
        return ""
    diff = review.diff(hunk)
    shown = []
    for file in diff.files:
        body = diff.lines[file.hunks[0] : file.end] if file.hunks else diff.lines[file.start : file.end]
        shown += [file.path, *body]
    return "\n".join(shown)[:_HUNK_LIMIT]


def difference_of(review: Review, fix: Fix, returned: ReturnedFix) -> Diff | None:
    """Return what the author changed since the fix was sent back; None when the commit of before is gone."""
    space, commit = review.space, fix.commit
    try:
        old, _ = commit_fields(space, returned.old)
        old_tree = old["tree"]
        parent_tree = commit_fields(space, old["parent"])[0]["tree"]
    except (GitError, KeyError):
        return None
    if parent_tree != commit.parent_tree:
        # What comes before it is not as it was: the old fix is put where the new one is.
        merge = space.merge(base=parent_tree, ours=commit.parent_tree, theirs=old_tree)
        old_tree = merge.tree if merge.is_clean else old_tree
    return review.diff_of(old_tree, commit.tree)
