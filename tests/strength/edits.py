"""Reads edits.txt: sixty edits of tests as agents make them. Twenty weaken a test, forty do not.

All tests are about one small program, stock.py.txt, so that one branch has all edits. head.py.txt is the file header.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent
PROGRAM: Final = (FOLDER / "stock.py.txt").read_text()
FIXED: Final = ("    return left + 1\n", "    return left\n")
"""A line of the program, and the same line before it was fixed."""

_EDIT: Final = re.compile(
    r"=== (?P<kind>weakens|honest) (?P<name>\w+)(?P<measured> \(measured\))?\n"
    r"--- before\n(?P<before>.*?)--- after\n(?P<after>.*?)(?=^=== |\Z)",
    re.DOTALL | re.MULTILINE,
)


class Edit(NamedTuple):
    """One test before and after an edit; "" if it does not exist."""

    name: str
    before: str
    after: str
    is_weakening: bool
    is_only_measured: bool
    """The test is weaker, but its source does not show it."""


EDITS: Final = tuple(
    Edit(found["name"], found["before"], found["after"], found["kind"] == "weakens", bool(found["measured"]))
    for found in _EDIT.finditer((FOLDER / "edits.txt").read_text())
)


def file_of_tests(*, is_after: bool, edits: tuple[Edit, ...] = EDITS) -> str:
    """Return a file of tests, before or after the edits."""
    head = (FOLDER / "head.py.txt").read_text()
    return head + "\n\n".join(part for edit in edits if (part := edit.after if is_after else edit.before))
