"""Reads a call that edits a file as a small diff: the file, then the lines that go and those that come. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

_FILE_KEYS: Final = ("file_path", "notebook_path", "path", "file")
_OLD_KEYS: Final = ("old_string", "old_str", "old")
_NEW_KEYS: Final = ("new_string", "new_str", "new", "new_source")
_WHOLE_KEYS: Final = ("content", "file_text", "text")
LINES_LIMIT: Final = 400
"""Beyond so many lines texts are shown one after the other, and cut: to compare them would be felt."""


def edit_text(given: Mapping[str, Any]) -> str | None:
    """Return the file and its changed lines, each behind its sign; None when these are no arguments of an edit."""
    file = _first(given, _FILE_KEYS)
    if file is None:
        return None
    several = given.get("edits")
    if isinstance(several, list) and several and all(isinstance(edit, dict) for edit in several):
        changes = [_change(edit) for edit in several]
    elif (change := _change(given)) is not None:
        changes = [change]
    elif (whole := _first(given, _WHOLE_KEYS)) is not None:
        changes = [("", whole)]
    else:
        return None
    lines = [line for change in changes if change is not None for line in _changed_lines(*change)]
    return "\n".join([file.split("\n")[0], *lines]) if lines else None


def _first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := given.get(key), str)), None)


def _change(edit: Mapping[str, Any]) -> tuple[str, str] | None:
    old, new = _first(edit, _OLD_KEYS), _first(edit, _NEW_KEYS)
    return None if old is None and new is None else (old or "", new or "")


def _changed_lines(old: str, new: str) -> Iterator[str]:
    before, after = (text.split("\n") if text else [] for text in (old.removesuffix("\n"), new.removesuffix("\n")))
    if len(before) + len(after) > LINES_LIMIT:
        yield from (f"-{line}" for line in before[:LINES_LIMIT])
        yield from (f"+{line}" for line in after[:LINES_LIMIT])
        return
    for line in difflib.ndiff(before, after):
        if line[0] != "?":
            yield f"{line[0]}{line[2:]}"
