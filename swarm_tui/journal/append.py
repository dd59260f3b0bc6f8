"""Appends lines to the files of a sweep. Events have one writer, the engine with the lock; other files have many."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self, TypeVar

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.journal.seal import Sealer
from swarm_tui.model.events import EventBase
from swarm_tui.regular_file import appending_descriptor, read_from_holder, read_regular, regular_descriptor

Appended = TypeVar("Appended", bound=EventBase)

_BLOCK: Final = 1 << 20
LOCK_GRACE: Final = 0.5
"""An engine that has ended may hold its lock for a moment."""
SHARED_LOCK_GRACE: Final = 20.0
"""A check whether an engine runs also holds the lock for a moment, which on a busy machine may be long."""


class EngineLock:
    """The lock that the engine of a sweep holds while it runs; the kernel releases it when the engine dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquire the lock; raise UsageError when another engine holds it."""
        try:
            descriptor = regular_descriptor(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise JournalError(f"{self._path} cannot be opened", error.strerror or str(error)) from error
        try:
            is_ours = _acquire_lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise _no_locks(self._path, error) from error
        if not is_ours:
            holder = os.pread(descriptor, 64, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise UsageError(
                f"an engine already works on this sweep{f' (process {holder})' if holder else ''}",
                "`swarm-tui open` shows it, `swarm-tui stop` stops it",
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _acquire_lock(descriptor: int) -> bool:
    """Acquire the lock and return True, or False when an engine holds it."""
    began = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            grace = LOCK_GRACE if _is_held_by_engine(descriptor) else SHARED_LOCK_GRACE
            if time.monotonic() >= began + grace:
                return False
            time.sleep(0.01)
        else:
            return True


def _is_held_by_engine(descriptor: int) -> bool:
    """Return whether nobody but its holder may have the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def _no_locks(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"{path} cannot be locked: {error.strerror}", "some network disks have no locks; use another one"
    )


def engine_process_id(path: Path) -> int | None:
    """Return the process id of the engine that holds the lock (0 if unknown), or None when no engine runs."""
    # Where there are no locks no engine can work.
    written = read_from_holder(path, 64)
    if written is None:
        return None
    words = written.split()
    return int(words[0]) if words and words[0].isdigit() else 0


def is_stopped(process_id: int) -> bool:
    """Return whether a process was stopped by a signal, as far as /proc tells."""
    try:
        return read_regular(f"/proc/{process_id}/stat").rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


class LineAppender:
    """Appends lines to one file. After a failed write the file is as it was before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = appending_descriptor(path)
        except OSError as error:
            raise JournalError(f"{path} cannot be opened", error.strerror or str(error)) from error
        self.size = os.fstat(self._descriptor).st_size
        """How many bytes the file had after our last line."""
        self.foreign_lines = 0
        """How many lines others have written since it was opened, as far as they ended before one of ours."""

    def append(self, line: bytes) -> None:
        """Write the line and a newline. When this returns, they survive a kill of this process."""
        content = line + b"\n"
        # Files with many writers: without the lock, truncating after a failed write could cut another's line.
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise _no_locks(self.path, error) from error
        try:
            start = os.fstat(self._descriptor).st_size
            if start != self.size:
                self._count_foreign_lines(start)
            if start and os.pread(self._descriptor, 1, start - 1) != b"\n":
                content = b"\n" + content
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError as error:
                os.ftruncate(self._descriptor, start)
                raise JournalError(
                    f"{self.path} cannot be written", f"{error.strerror or error}; nothing that was there is damaged"
                ) from error
            self.size = start + len(content)
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _count_foreign_lines(self, end: int) -> None:
        start = self.size if self.size < end else 0
        while start < end and (block := os.pread(self._descriptor, min(_BLOCK, end - start), start)):
            self.foreign_lines += block.count(b"\n")
            start += len(block)
        # A line without an end gets one before ours.
        self.foreign_lines += os.pread(self._descriptor, 1, end - 1) != b"\n"

    def sync(self) -> None:
        """Wait until all lines are on the disk, so that they also survive a power cut."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def append_line(path: Path, line: str) -> None:
    """Append one line to a file that may have other writers; create its folder if it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"{path.parent} cannot be made", error.strerror or str(error)) from error
    appender = LineAppender(path)
    try:
        appender.append(line.encode("utf-8", "surrogateescape"))
    finally:
        appender.close()


class JournalWriter:
    """Writes the engine's events, each with the next sequence number and a time that is never before the last one."""

    def __init__(
        self,
        path: Path,
        *,
        last_seq: int = 0,
        last_at: float = 0.0,
        clock: Callable[[], float] = time.time,
        sealer: Sealer | None = None,
    ) -> None:
        self._lines = LineAppender(path)
        self._seq = last_seq
        self._at = last_at
        self._clock = clock
        self._sealer = sealer

    @property
    def is_sealing(self) -> bool:
        return self._sealer is not None

    @property
    def size(self) -> int:
        """How many bytes the journal has after the last event."""
        return self._lines.size

    @property
    def foreign_lines(self) -> int:
        """How many lines something else has written in between."""
        return self._lines.foreign_lines

    def append(self, event: Appended) -> Appended:
        """Write one event and return it as it was written."""
        at = max(self._at, self._clock())
        written = event.model_copy(update={"seq": self._seq + 1, "at": at})
        line = written.model_dump_json(exclude_defaults=False).encode()
        self._lines.append(line if self._sealer is None else self._sealer.seal(line))
        self._seq += 1
        self._at = at
        return written

    def sync(self) -> None:
        self._lines.sync()

    def close(self) -> None:
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
