"""Follows what is appended to a file of an agent, line by line."""

from __future__ import annotations

from typing import Final

from swarm_tui.places.place import AgentFile, FileSlice, ReadRequest

LINE_LIMIT: Final = 1 << 20


class FileTail:
    """Turns the slices of a growing file into whole lines; a line longer than a megabyte is left out."""

    def __init__(self, file: AgentFile) -> None:
        self._file = file
        self._offset = 0
        self._is_inside_long_line = False

    @property
    def request(self) -> ReadRequest:
        """Return what is to be read next: at most a megabyte."""
        return ReadRequest(self._file, self._offset, LINE_LIMIT)

    def read_lines(self, piece: FileSlice | None) -> list[bytes]:
        """Return the whole lines in the answer to `request`."""
        if piece is None:
            return []
        self._offset = piece.offset
        end = piece.content.rfind(b"\n") + 1
        if not end:
            if len(piece.content) == LINE_LIMIT:
                self._offset += LINE_LIMIT
                self._is_inside_long_line = True
            return []
        self._offset += end
        lines = piece.content[:end].split(b"\n")[:-1]
        if self._is_inside_long_line:
            self._is_inside_long_line = False
            del lines[0]
        return lines
