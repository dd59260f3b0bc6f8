"""Read lines that are appended to a file such as the journal. Never writes or blocks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from swarm_tui.errors import JournalError
from swarm_tui.files import open_regular
from swarm_tui.journal.decode import parse_event
from swarm_tui.model.event import Event

_COMPARED: Final = 64
LINE_LIMIT: Final = 1 << 26
"""swarm-tui does not write longer lines. They are split, so that they do not exhaust the memory."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of the journal that is not an event."""

    offset: int
    text: bytes
    reason: str


@dataclass(slots=True)
class NewEvents:
    """The events that were appended since the last call."""

    events: list[Event] = field(default_factory=list)
    bad_lines: list[BadLine] = field(default_factory=list)
    is_restarted: bool = False
    """Whether the file was replaced or truncated. If so, these are the first events of the new file."""


class LineFollower:
    """Returns the complete lines that were appended to a file since the last call, with their offsets."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self._identity: tuple[int, int] | None = None
        self._last_bytes = b""

    def read(self, limit: int = LINE_LIMIT) -> tuple[list[tuple[int, bytes]], bool]:
        """Return (offset, line) pairs, and whether the file was replaced. An incomplete last line is read later."""
        try:
            with open_regular(self.path) as file:
                status = os.fstat(file.fileno())
                identity = (status.st_dev, status.st_ino)
                is_restarted = self._identity is not None and (
                    identity != self._identity or self._read_last_bytes(file) != self._last_bytes
                )
                is_restarted = is_restarted or status.st_size < self.offset
                self._identity = identity
                if is_restarted:
                    self.offset = 0
                file.seek(self.offset)
                block = file.read(min(limit, status.st_size - self.offset))
                end = block.rfind(b"\n") + 1 or (len(block) if len(block) >= LINE_LIMIT else 0)
                start, self.offset = self.offset, self.offset + end
                self._last_bytes = self._read_last_bytes(file)
        except FileNotFoundError:
            return [], False
        except OSError as error:
            raise JournalError(f"{self.path} cannot be read: {error.strerror or error}") from error
        lines = []
        for line in block[:end].removesuffix(b"\n").split(b"\n") if end else ():
            lines.append((start, line))
            start += len(line) + 1
        return lines, is_restarted

    def _read_last_bytes(self, file: BinaryIO) -> bytes:
        # A new file may get the inode number of a deleted one, so that only the content differs.
        return os.pread(file.fileno(), _COMPARED, max(0, self.offset - _COMPARED))[: min(_COMPARED, self.offset)]


class EventFollower:
    """Returns the events that were appended since the last call."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._lines = LineFollower(path, offset)

    @property
    def path(self) -> Path:
        return self._lines.path

    @property
    def offset(self) -> int:
        return self._lines.offset

    def read(self, limit: int = LINE_LIMIT) -> NewEvents:
        """Return the events in the next `limit` bytes. Other lines are in `bad_lines`."""
        lines, is_restarted = self._lines.read(limit)
        new = NewEvents(is_restarted=is_restarted)
        for offset, line in lines:
            if len(line) >= LINE_LIMIT:
                new.bad_lines.append(BadLine(offset, line[:500], "line too long"))
                continue
            if not line.strip():
                continue
            try:
                new.events.append(parse_event(line))
            except ValueError as error:
                new.bad_lines.append(BadLine(offset, line[:500], str(error).split("\n")[0][:200]))
        return new
