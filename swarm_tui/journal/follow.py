"""Reads the lines that are appended to a file, such as the journal; never writes, never waits."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from swarm_tui.errors import JournalError
from swarm_tui.journal.seal import SealWatch, split_seal
from swarm_tui.model.events import Event, parse_event
from swarm_tui.regular_file import open_regular

_COMPARED: Final = 64
LINE_LIMIT: Final = 1 << 26
"""A longer line is none of ours: it is handed on in pieces, so that it does not fill the memory."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of the journal that is no event, or not from the engine."""

    offset: int
    text: bytes
    reason: str
    is_foreign: bool = False
    """It is an event, and the engine did not write it."""


@dataclass(slots=True)
class NewEvents:
    """The events that were appended since the last call."""

    events: list[Event] = field(default_factory=list)
    bad_lines: list[BadLine] = field(default_factory=list)
    is_restarted: bool = False
    """The file was replaced or truncated: these events are the first ones of the new file."""


class LineFollower:
    """Returns the whole lines that were appended to a file since the last call, with their offsets."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self._identity: tuple[int, int] | None = None
        self._last_bytes = b""

    def read(self, limit: int = LINE_LIMIT) -> tuple[list[tuple[int, bytes]], bool]:
        """Return (offset, line) pairs, and whether the file was replaced; an incomplete last line is read later."""
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
            raise JournalError(f"{self.path} cannot be read", error.strerror or str(error)) from error
        lines = []
        for line in block[:end].removesuffix(b"\n").split(b"\n") if end else ():
            lines.append((start, line))
            start += len(line) + 1
        return lines, is_restarted

    def _read_last_bytes(self, file: BinaryIO) -> bytes:
        # A new file may get the inode number of a deleted one: then only the content differs.
        return os.pread(file.fileno(), _COMPARED, max(0, self.offset - _COMPARED))[: min(_COMPARED, self.offset)]


class EventFollower:
    """Returns the events that were appended since the last call."""

    def __init__(self, path: Path, offset: int = 0, seals: SealWatch | None = None) -> None:
        self._lines = LineFollower(path, offset)
        self.seals = seals or SealWatch(None)

    @property
    def path(self) -> Path:
        return self._lines.path

    @property
    def offset(self) -> int:
        return self._lines.offset

    def read(self, limit: int = LINE_LIMIT) -> NewEvents:
        """Return the events in the next `limit` bytes; lines that are none of the engine's are in `bad_lines`."""
        lines, is_restarted = self._lines.read(limit)
        new = NewEvents(is_restarted=is_restarted)
        if is_restarted:
            self.seals.is_sealed = False
        for offset, line in lines:
            if len(line) >= LINE_LIMIT:
                new.bad_lines.append(BadLine(offset, line[:500], "it is too long for a line"))
                continue
            if not line.strip():
                continue
            try:
                event = parse_event(split_seal(line)[0])
            except ValueError as error:
                new.bad_lines.append(BadLine(offset, line[:500], str(error).split("\n")[0][:200]))
                continue
            reason = self.seals.reason_against(line)
            if reason:
                new.bad_lines.append(BadLine(offset, line[:500], reason, is_foreign=True))
            else:
                new.events.append(event)
        return new
