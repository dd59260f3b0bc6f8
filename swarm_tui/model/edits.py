"""What an agent has changed so far: lines of files, as they are numbered in the base commit."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from swarm_tui.model.text import plain

EDITS_KEPT: Final = 200
_PATH_LIMIT: Final = 300
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? ")


class FileEdit(NamedTuple):
    """Lines of a file that an agent has replaced, removed, or put something between; 0 to 0 for a new file."""

    path: str
    first: int
    last: int


def parse_edits(difference: str) -> tuple[FileEdit, ...]:
    """Return the edits in the headers of a diff without context; other lines are passed over.

    A line `?? PATH` names a new file. What stands in an agent's files may look like a header, so that a path is only
    believed right behind the line that begins a file.
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
            # What is put in behind a line collides with an edit of that line and of the next one.
            _add(edits, path, first, first + max(count - 1, 0) if count else first + 1)
        if len(edits) >= EDITS_KEPT:
            break
    return tuple(edits)


def _add(edits: dict[FileEdit, None], path: str, first: int, last: int) -> None:
    edits[FileEdit(plain(path.rstrip("\t"), _PATH_LIMIT), first, last)] = None
