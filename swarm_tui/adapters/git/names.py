"""Checks names that come from people and agents before git sees them: revisions, branches, paths."""

from __future__ import annotations

import re
from typing import Final

from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain

_COMMIT_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
# The rules of git-check-ref-format(1), with `@{` and leading dashes among them.
_NOT_IN_BRANCH: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/]|(?:^|/)\.|\.(?:lock)?(?:/|$)|/$|^@$")


def is_commit_id(text: str) -> bool:
    """Return whether this is a full object name, of SHA-1 or SHA-256."""
    return _COMMIT_ID.fullmatch(text) is not None


def is_inside(path: str) -> bool:
    """Return whether a path of a tree stays in the folder it is written to, and out of any `.git`."""
    parts = path.split("/")
    return all(part not in ("", ".", "..") and part.lower() != ".git" for part in parts) and "\0" not in path


def checked_revision(revision: str) -> str:
    """Return the revision unchanged; raise UsageError when git could read it as an option or as several words."""
    if not revision or revision.startswith("-") or _CONTROL.search(revision):
        raise UsageError(f"{plain(revision, 80)!r} is no revision", "give a branch, a tag or a commit id")
    return revision


def checked_branch(name: str) -> str:
    """Return the short branch name unchanged; raise UsageError when git does not allow it."""
    if not name or len(name) > 200 or _NOT_IN_BRANCH.search(name) or name == "HEAD":
        raise UsageError(f"{plain(name, 80)!r} is no name for a branch", "letters, digits, - _ . and / between them")
    return name


def checked_ref(name: str) -> str:
    """Return the full ref name (refs/...) unchanged; raise UsageError when git does not allow it."""
    if not name.startswith("refs/"):
        raise UsageError(f"{plain(name, 80)!r} is no full ref name", "full names begin with refs/")
    checked_branch(name.removeprefix("refs/"))
    return name


def branch_ref(name: str) -> str:
    return f"refs/heads/{checked_branch(name)}"
