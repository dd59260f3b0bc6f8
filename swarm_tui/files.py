"""Open regular files only; reject pipes, devices and folders, and never block on them. Replace files atomically."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

READ_LIMIT: Final = 1 << 28
"""The largest file that is read as a whole; larger ones were not written by swarm-tui."""

_KINDS: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_APPENDING: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT


class NoRegularFile(OSError):
    """The path is not a regular file."""


def regular_descriptor(path: Path | str, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file; raise NoRegularFile for anything else.

    Symbolic links are rejected when opening for writing.
    """
    if flags & (os.O_WRONLY | os.O_RDWR):
        if os.path.islink(path):
            raise NoRegularFile(errno.EINVAL, "it is a link, not a file", str(path))
        flags |= os.O_NOFOLLOW
    # Without O_NONBLOCK, opening a pipe blocks until its other end is opened.
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "something")
    raise NoRegularFile(errno.EINVAL, f"it is {kind}, not a file", str(path))


def open_regular(path: Path | str) -> BinaryIO:
    """Open a regular file for reading."""
    return os.fdopen(regular_descriptor(path), "rb")


def appending_descriptor(path: Path | str) -> int:
    """Return a descriptor that appends to a file; create the file if it is missing."""
    return regular_descriptor(path, _APPENDING)


def read_regular(path: Path | str, limit: int = READ_LIMIT) -> bytes:
    """Return the content of a file; raise OSError if it exceeds the limit."""
    with open_regular(path) as file:
        # The file may grow while it is read.
        content = file.read(limit + 1) if os.fstat(file.fileno()).st_size <= limit else None
    if content is None or len(content) > limit:
        raise OSError(errno.EOVERFLOW, f"it has more than {limit // 1_000_000} MB", str(path))
    return content


def new_file(path: Path, mode: int = 0o600) -> BinaryIO:
    """Create a file and open it for writing; raise FileExistsError if there is anything at its path."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, mode), "wb")


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o600, *, is_new: bool = False, is_synced: bool = True) -> Iterator[BinaryIO]:
    """Open a new file in the same folder. It replaces `path` if no error occurs.

    Its name is unpredictable, so that no other process can put a file or a link in its place. With `is_new`, an
    existing file is not replaced: raise FileExistsError.
    """
    draft = path.with_name(f".{path.name[:50]}.{os.urandom(8).hex()}.draft")
    try:
        with new_file(draft, mode) as file:
            yield file
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        if is_new:
            os.link(draft, path)
        else:
            os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def read_from_holder(path: Path | str, limit: int) -> bytes | None:
    """Return the first bytes of a file that a process has locked; None if it is not locked."""
    try:
        descriptor = regular_descriptor(path)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, limit, 0)
    except OSError:
        # Some network file systems do not support locks.
        return None
    else:
        return None
    finally:
        os.close(descriptor)
