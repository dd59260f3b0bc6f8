"""Check names from users and agents before git gets them: revisions, branches, paths."""

from __future__ import annotations

import re
from typing import Final

from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain

_COMMIT_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
# The rules of git-check-ref-format(1), including those for `@{` and leading dashes.
_NOT_IN_BRANCH: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/]|(?:^|/)\.|\.(?:lock)?(?:/|$)|/$|^@$")


def is_commit_id(text: str) -> bool:
    """Return whether this is a full object id, of SHA-1 or SHA-256."""
    return _COMMIT_ID.fullmatch(text) is not None


def checked_revision(revision: str) -> str:
    """Return the revision unchanged; raise UsageError if git could read it as an option or as several words."""
    if not revision or revision.startswith("-") or _CONTROL.search(revision):
        raise UsageError(f"invalid revision: {plain(revision, 80)!r}", "use a branch, a tag or a commit id")
    return revision


def checked_branch(name: str) -> str:
    """Return the short branch name unchanged; raise UsageError if it is invalid."""
    if not name or len(name) > 200 or _NOT_IN_BRANCH.search(name) or name == "HEAD":
        raise UsageError(f"invalid branch name: {plain(name, 80)!r}", "use letters, digits, and - _ . / inside")
    return name


def checked_ref(name: str) -> str:
    """Return the full ref name (refs/...) unchanged; raise UsageError if it is invalid."""
    if not name.startswith("refs/"):
        raise UsageError(f"invalid ref name: {plain(name, 80)!r}", "full names begin with refs/")
    checked_branch(name.removeprefix("refs/"))
    return name


def branch_ref(name: str) -> str:
    return f"refs/heads/{checked_branch(name)}"
