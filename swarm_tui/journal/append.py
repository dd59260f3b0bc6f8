"""Append lines to the files of a sweep. Only the engine with the lock writes events; other files have many writers."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self, TypeVar

import msgspec
from msgspec import structs

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.files import appending_descriptor, read_from_holder, read_regular, regular_descriptor
from swarm_tui.model.event import Event

Appended = TypeVar("Appended", bound=Event)

_BLOCK: Final = 1 << 20
LOCK_GRACE: Final = 0.5
"""Seconds to wait for the lock of an engine that is exiting."""
SHARED_LOCK_GRACE: Final = 20.0
"""Seconds to wait for a check whether an engine runs, which also takes the lock. It can be slow on a busy machine."""


class EngineLock:
    """The lock that the engine of a sweep holds while it runs. The kernel releases it when the engine dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquire the lock. Raise UsageError if another engine holds it."""
        try:
            descriptor = regular_descriptor(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise JournalError(f"{self._path} cannot be opened: {error.strerror or error}") from error
        try:
            is_ours = _acquire_lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise _no_locks(self._path, error) from error
        if not is_ours:
            holder = os.pread(descriptor, 64, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise UsageError(
                f"an engine is already running for this sweep{f' (process {holder})' if holder else ''}",
                "view the sweep with `swarm-tui open`, or stop it with `swarm-tui stop`",
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _acquire_lock(descriptor: int) -> bool:
    """Acquire the lock. Return False if an engine holds it."""
    start = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            grace = LOCK_GRACE if _is_held_by_engine(descriptor) else SHARED_LOCK_GRACE
            if time.monotonic() >= start + grace:
                return False
            time.sleep(0.01)
        else:
            return True


def _is_held_by_engine(descriptor: int) -> bool:
    """Return whether the lock is exclusive."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def _no_locks(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"{path} cannot be locked: {error.strerror}",
        "some network file systems do not support locks; use a local disk",
    )


def engine_process_id(path: Path) -> int | None:
    """Return the process id of the engine that holds the lock (0 if unknown), or None if no engine is running."""
    # Without support for locks no engine can run, so None is correct.
    written = read_from_holder(path, 64)
    if written is None:
        return None
    words = written.split()
    return int(words[0]) if words and words[0].isdigit() else 0


def is_stopped(process_id: int) -> bool:
    """Return whether a process is stopped by a signal. Always False on systems without /proc."""
    try:
        return read_regular(f"/proc/{process_id}/stat").rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


class LineAppender:
    """Appends lines to one file. A failed write leaves the file unchanged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = appending_descriptor(path)
        except OSError as error:
            raise JournalError(f"{path} cannot be opened: {error.strerror or error}") from error
        self.size = os.fstat(self._descriptor).st_size
        """The size of the file after the last line from this appender."""
        self.foreign_lines = 0
        """The number of lines that other writers added before the last line from this appender."""

    def append(self, line: bytes) -> None:
        """Write the line and a newline. When this returns, they survive if this process is killed."""
        content = line + b"\n"
        # Without the lock, truncating after a failed write could remove the line of another writer.
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
                    f"{self.path} cannot be written", f"{error.strerror or error}; the existing content is intact"
                ) from error
            self.size = start + len(content)
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _count_foreign_lines(self, end: int) -> None:
        start = self.size if self.size < end else 0
        while start < end and (block := os.pread(self._descriptor, min(_BLOCK, end - start), start)):
            self.foreign_lines += block.count(b"\n")
            start += len(block)
        # An unfinished line is terminated before the next line is written.
        self.foreign_lines += os.pread(self._descriptor, 1, end - 1) != b"\n"

    def sync(self) -> None:
        """Wait until all lines are on the disk, so that they survive a power failure."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def append_line(path: Path, line: str) -> None:
    """Append one line to a file that may have other writers. Create its folder if it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"{path.parent} cannot be created: {error.strerror or error}") from error
    appender = LineAppender(path)
    try:
        appender.append(line.encode("utf-8", "surrogateescape"))
    finally:
        appender.close()


def encode_event(event: Event) -> bytes:
    """Return the line of an event."""
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:
        # A lone surrogate, which JSON from an agent can contain.
        return json.dumps(msgspec.to_builtins(event), ensure_ascii=False).encode("utf-8", "replace")


class JournalWriter:
    """Writes the engine's events with consecutive sequence numbers and times that never decrease."""

    def __init__(
        self,
        path: Path,
        *,
        last_seq: int = 0,
        last_at: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._lines = LineAppender(path)
        self._seq = last_seq
        self._at = last_at
        self._clock = clock

    @property
    def size(self) -> int:
        """The size of the journal after the last event."""
        return self._lines.size

    @property
    def foreign_lines(self) -> int:
        """The number of lines from other writers between the events."""
        return self._lines.foreign_lines

    def append(self, event: Appended) -> Appended:
        """Write one event, and return it with its sequence number and time."""
        at = max(self._at, self._clock())
        written = structs.replace(event, seq=self._seq + 1, at=at)
        self._lines.append(encode_event(written))
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
