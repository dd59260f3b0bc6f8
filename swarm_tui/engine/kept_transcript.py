"""Keeps what is read of a transcript that lies on another host, or in several files: the room shows it from here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from swarm_tui.regular_file import appending_descriptor

SIZE_LIMIT: Final = 500_000_000


class KeptTranscript:
    """A file of the sweep that grows with the transcript; the harvest replaces it by the whole one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = -1

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines; the first ones begin the file anew, for an earlier attempt may have left one."""
        content = b"".join(line + b"\n" for line in lines)
        if not content or self._size + len(content) > SIZE_LIMIT:
            return
        is_first = self._size < 0
        # Without room for it the sweep goes on: the harvest brings the whole one.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(appending_descriptor(self._path), "ab") as file:
                if is_first:
                    file.truncate(0)
                file.write(content)
        self._size = max(self._size, 0) + len(content)
