"""A window on a growing file with one record per line, read by byte offset, without an index.

The cost of a step does not depend on the size of the file. Blocks are read with `pread`, because truncating a
memory-mapped file would kill this process with SIGBUS.
"""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, Protocol

BLOCK: Final = 1 << 16
BLOCKS_KEPT: Final = 8
CHUNK: Final = 1 << 25
"""A record ends after an aligned chunk without a newline, so that endless lines can be paged."""
RECORD_LIMIT: Final = 1 << 16
"""The maximum number of bytes read from a record."""
SETTLED_AFTER: Final = 1.0
"""A last line without a newline is complete if unchanged for this many seconds."""
_SEAL: Final = 48


class RecordSpan(NamedTuple):
    """The range of a record, including its newline."""

    start: int
    end: int


class WindowChange(StrEnum):
    """The change of the file since the last poll."""

    SAME = "same"
    GREW = "grew"
    RESTARTED = "restarted"
    """Truncated or replaced; earlier offsets are invalid."""
    GONE = "gone"
    """Missing; an open file stays readable."""


class Status(NamedTuple):
    """The identity and the size of a file."""

    identity: tuple[int, int]
    size: int


class ByteSource(Protocol):
    """Bytes that can be read from any offset and can grow."""

    def status(self) -> Status | None:
        """Return identity and size, or None if it is missing."""

    def reopen(self) -> None: ...

    def pread(self, length: int, offset: int) -> bytes: ...

    def close(self) -> None: ...


class FileSource:
    """A file on this machine, which may appear later or be replaced; symbolic links are not followed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def status(self) -> Status | None:
        try:
            found = os.lstat(self.path)
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return Status((found.st_dev, found.st_ino), found.st_size)

    def reopen(self) -> None:
        self.close()
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            self._descriptor = None

    def pread(self, length: int, offset: int) -> bytes:
        if self._descriptor is None:
            return b""
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError:
            return b""

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class MemorySource:
    """Bytes in memory: a composed transcript, or data of a remote host."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self._generation = 0

    def append(self, content: bytes) -> None:
        self.content += content

    def replace(self, content: bytes) -> None:
        """Replace the content; an extension of the old content counts as growth."""
        if not content.startswith(self.content):
            self._generation += 1
        self.content = bytearray(content)

    def status(self) -> Status | None:
        return Status((0, self._generation), len(self.content))

    def reopen(self) -> None:
        """Do nothing."""

    def pread(self, length: int, offset: int) -> bytes:
        return bytes(self.content[offset : offset + length])

    def close(self) -> None:
        """Do nothing."""


class Window:
    """Finds records by offset in a source that may grow, be truncated, or be replaced."""

    def __init__(self, source: ByteSource, chunk: int = CHUNK) -> None:
        self.source = source
        self._chunk = chunk
        self.size = 0
        self.end = 0
        """The end of the last complete record."""
        self._identity: tuple[int, int] | None = None
        self._seal = b""
        self._torn_since = 0.0
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def poll(self, now: float) -> WindowChange:
        """Return the change of the file; `now` is the time of a monotonic clock."""
        status = self.source.status()
        if status is None:
            return WindowChange.GONE
        if status.identity != self._identity or status.size < self.size or not self._is_same_content(status.size):
            is_first = self._identity is None
            self._restart(status, now)
            return WindowChange.GREW if is_first else WindowChange.RESTARTED
        if status.size != self.size:
            self._grow(status.size, now)
            return WindowChange.GREW
        if self.end < self.size and now - self._torn_since >= SETTLED_AFTER:
            self.end = self.size
            return WindowChange.GREW
        return WindowChange.SAME

    def after(self, offset: int) -> RecordSpan | None:
        """Return the record that starts at a record boundary, or None at the end."""
        if offset >= self.end:
            return None
        return RecordSpan(offset, self._boundary_after(offset))

    def before(self, offset: int) -> RecordSpan | None:
        """Return the record that ends at a record boundary, or None at the beginning."""
        if offset <= 0:
            return None
        return RecordSpan(self._boundary_before(offset), offset)

    def containing(self, offset: int) -> RecordSpan | None:
        """Return the record that contains the byte at `offset`, or None if the window is empty."""
        if self.end == 0:
            return None
        offset = max(0, min(offset, self.end - 1))
        start = self._boundary_before(offset + 1) if offset else 0
        return RecordSpan(start, self._boundary_after(start))

    def read(self, span: RecordSpan, limit: int = RECORD_LIMIT) -> bytes:
        """Return up to `limit` bytes of a record, without its newline."""
        parts = []
        offset, stop = span.start, min(span.end, span.start + limit)
        while offset < stop:
            block = self._block(offset // BLOCK)
            low = offset % BLOCK
            part = block[low : low + stop - offset]
            if not part:
                break
            parts.append(part)
            offset += len(part)
        return b"".join(parts).rstrip(b"\r\n")

    def spans_after(self, offset: int) -> Iterator[RecordSpan]:
        """Return the records from `offset` on, forwards."""
        span = self.after(offset)
        while span is not None:
            yield span
            span = self.after(span.end)

    def spans_before(self, offset: int) -> Iterator[RecordSpan]:
        """Return the records that end at or before `offset`, backwards."""
        span = self.before(offset)
        while span is not None:
            yield span
            span = self.before(span.start)

    def slab_after(self, start: int, size: int) -> RecordSpan:
        """Return a range of complete records from `start`, of about this size."""
        last = self.containing(start + size)
        return RecordSpan(start, last.end if last is not None else start)

    def slab_before(self, end: int, size: int) -> RecordSpan:
        """Return a range of complete records up to `end`, of about this size."""
        first = self.containing(min(end - 1, max(0, end - size)))
        return RecordSpan(first.start if first is not None else end, end)

    def close(self) -> None:
        self.source.close()

    def _restart(self, status: Status, now: float) -> None:
        self.source.reopen()
        self._identity = status.identity
        self._blocks.clear()
        self.size = self.end = 0
        self._grow(status.size, now)

    def _grow(self, size: int, now: float) -> None:
        old_end = self.end
        # The block at the old end is incomplete.
        self._blocks.pop(self.size // BLOCK, None)
        self.size = size
        self._torn_since = now
        self._seal = self.source.pread(_SEAL, max(0, size - _SEAL))
        whole = size if self._seal[-1:] == b"\n" or size == 0 else self._boundary_before(size)
        # Keep showing an incomplete line while it grows.
        self.end = size if old_end > whole else whole

    def _is_same_content(self, size: int) -> bool:
        """Return whether the bytes at the old end are unchanged; otherwise the file was rewritten in place."""
        if size == self.size:
            return True
        return self.source.pread(len(self._seal), max(0, self.size - _SEAL)) == self._seal

    def _boundary_after(self, start: int) -> int:
        """Return the end of the record that starts at `start`."""
        forced = (start + 2 * self._chunk - 1) // self._chunk * self._chunk
        found = self._find(start, min(forced, self.end))
        if found >= 0:
            return found + 1
        return min(forced, self.end)

    def _boundary_before(self, end: int) -> int:
        """Return the start of the record that contains the byte at `end - 1`."""
        high = end - 1
        aligned = high // self._chunk * self._chunk
        found = self._rfind(aligned, high)
        if found >= 0:
            return found + 1
        if aligned == 0:
            return 0
        found = self._rfind(aligned - self._chunk, aligned)
        return found + 1 if found >= 0 else aligned

    def _find(self, low: int, high: int) -> int:
        while low < high:
            index = low // BLOCK
            base = index * BLOCK
            found = self._block(index).find(b"\n", low - base, high - base)
            if found >= 0:
                return base + found
            low = base + BLOCK
        return -1

    def _rfind(self, low: int, high: int) -> int:
        while high > low:
            index = (high - 1) // BLOCK
            base = index * BLOCK
            found = self._block(index).rfind(b"\n", max(0, low - base), high - base)
            if found >= 0:
                return base + found
            high = base
        return -1

    def _block(self, index: int) -> bytes:
        block = self._blocks.get(index)
        if block is None:
            block = self.source.pread(BLOCK, index * BLOCK)
            if len(block) == BLOCK:
                self._blocks[index] = block
                if len(self._blocks) > BLOCKS_KEPT:
                    self._blocks.popitem(last=False)
        return block
