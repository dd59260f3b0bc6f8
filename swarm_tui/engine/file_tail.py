"""Reads what is appended to a file in an agent's folders, line by line, as often as it is asked."""

from __future__ import annotations

from swarm_tui.engine.reach import AgentFiles, Place

LINE_LIMIT = 1 << 20


class Tail:
    """Returns the whole lines that were appended since the last call; a line longer than a megabyte is passed over."""

    def __init__(self, files: AgentFiles, place: Place, path: str) -> None:
        self._files = files
        self._place = place
        self._path = path
        self._offset = 0
        self._is_inside_long_line = False

    async def read(self) -> list[bytes]:
        """Return the next lines, at most a megabyte of them."""
        size = await self._files.size(self._place, self._path)
        if size is None or size == self._offset:
            return []
        if size < self._offset:
            self._offset = 0
        block = await self._files.read(self._place, self._path, offset=self._offset, limit=LINE_LIMIT)
        end = (block or b"").rfind(b"\n") + 1
        if not block or not end:
            if block and len(block) == LINE_LIMIT:
                self._offset += len(block)
                self._is_inside_long_line = True
            return []
        self._offset += end
        lines = block[:end].split(b"\n")[:-1]
        if self._is_inside_long_line:
            self._is_inside_long_line = False
            del lines[0]
        return lines
