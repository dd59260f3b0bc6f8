"""Lines that an agent has changed so far, numbered as in the base commit."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from swarm_tui.model.text import plain

EDITS_KEPT: Final = 200
_PATH_LIMIT: Final = 300
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? ")


class FileEdit(NamedTuple):
    """A range of lines that an agent replaced, removed or inserted text between; 0 to 0 for a new file."""

    path: str
    first: int
    last: int


def parse_edits(difference: str) -> tuple[FileEdit, ...]:
    """Return the edits in the headers of a diff without context. Other lines are ignored.

    A line `?? PATH` names a new file. The content of an agent's file may look like a header, so a path is accepted
    only directly after the first line of a file's diff.
    """
    edits: dict[FileEdit, None] = {}
    path, lines_since_begin = "", 9
    for line in difference.split("\n"):
        lines_since_begin += 1
        if line.startswith("diff --git "):
            path, lines_since_begin = "", 0
        elif line.startswith("--- a/") and lines_since_begin <= 1:
            path = line[6:]
        elif line.startswith("+++ b/") and lines_since_begin <= 2 and not path:
            _add(edits, line[6:], 0, 0)
        elif line.startswith("?? "):
            _add(edits, line[3:], 0, 0)
        elif path and (hunk := _HUNK.match(line)):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            # Text inserted after a line conflicts with edits of that line and of the next one.
            _add(edits, path, first, first + max(count - 1, 0) if count else first + 1)
        if len(edits) >= EDITS_KEPT:
            break
    return tuple(edits)


def _add(edits: dict[FileEdit, None], path: str, first: int, last: int) -> None:
    edits[FileEdit(plain(path.rstrip("\t"), _PATH_LIMIT), first, last)] = None
