"""Reads the journal while it grows; never writes, never waits."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from swarm_tui.errors import JournalError
from swarm_tui.model.events import Event, parse_event

_COMPARED: Final = 64


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of the journal that is no event."""

    offset: int
    text: bytes
    reason: str


@dataclass(slots=True)
class NewEvents:
    """What was appended since the last reading."""

    events: list[Event] = field(default_factory=list)
    bad_lines: list[BadLine] = field(default_factory=list)
    is_restarted: bool = False
    """The file was replaced or cut: forget everything, these events begin at the beginning."""


class LineFollower:
    """Returns the whole lines that were appended to a file since the last call, with their offsets."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self._identity: tuple[int, int] | None = None
        self._last_bytes = b""

    def read(self, limit: int = 1 << 26) -> tuple[list[tuple[int, bytes]], bool]:
        """Return (offset, line) pairs and whether the file began anew; a torn last line waits for its end."""
        try:
            with open(self.path, "rb") as file:
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
                end = block.rfind(b"\n") + 1
                start, self.offset = self.offset, self.offset + end
                self._last_bytes = self._read_last_bytes(file)
        except FileNotFoundError:
            return [], False
        except OSError as error:
            raise JournalError(f"{self.path} cannot be read", error.strerror or str(error)) from error
        lines = []
        for line in block[:end].split(b"\n")[:-1]:
            lines.append((start, line))
            start += len(line) + 1
        return lines, is_restarted

    def _read_last_bytes(self, file: BinaryIO) -> bytes:
        # A new file may get the number of the one that was deleted: only its content tells that it is another.
        return os.pread(file.fileno(), _COMPARED, max(0, self.offset - _COMPARED))[: min(_COMPARED, self.offset)]


class EventFollower:
    """Returns the events that were appended since the last call."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._lines = LineFollower(path, offset)

    @property
    def offset(self) -> int:
        return self._lines.offset

    def read(self, limit: int = 1 << 26) -> NewEvents:
        """Return what is new within the next `limit` bytes; a line that is no event is reported and passed over."""
        lines, is_restarted = self._lines.read(limit)
        new = NewEvents(is_restarted=is_restarted)
        for offset, line in lines:
            if not line.strip():
                continue
            try:
                new.events.append(parse_event(line))
            except ValueError as error:
                new.bad_lines.append(BadLine(offset, line[:500], str(error).split("\n")[0][:200]))
        return new
