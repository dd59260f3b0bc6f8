"""Opens files: a pipe, a device or a folder in the place of one is refused, and nothing ever waits for it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

READ_LIMIT: Final = 1 << 28
"""More than any file has that is read as a whole: what is larger was not written by us."""

_KINDS: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_APPENDING: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT


class NoRegularFile(OSError):
    """Something else lies in the place of a file."""


def regular_descriptor(path: Path | str, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a file; raise NoRegularFile when it is none, OSError when it cannot be opened.

    What is written goes into that very file: a link to another one is none.
    """
    if flags & (os.O_WRONLY | os.O_RDWR):
        if os.path.islink(path):
            raise NoRegularFile(errno.EINVAL, "it is a link, not a file", str(path))
        flags |= os.O_NOFOLLOW
    # Without O_NONBLOCK the opening of a pipe waits for whoever is at its other end.
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o644)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "something")
    raise NoRegularFile(errno.EINVAL, f"it is {kind}, not a file", str(path))


def open_regular(path: Path | str) -> BinaryIO:
    """Return a file that is open for reading, as `regular_descriptor` does."""
    return os.fdopen(regular_descriptor(path), "rb")


def appending_descriptor(path: Path | str) -> int:
    """Return a descriptor that appends to a file, which is made when missing."""
    return regular_descriptor(path, _APPENDING)


def read_regular(path: Path | str, limit: int = READ_LIMIT) -> bytes:
    """Return the content of a file; OSError also for what has more bytes than the limit."""
    with open_regular(path) as file:
        # The size is asked for first, and the file may grow while it is read.
        content = file.read(limit + 1) if os.fstat(file.fileno()).st_size <= limit else None
    if content is None or len(content) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit // 1_000_000} MB", str(path))
    return content


def read_from_holder(path: Path | str, limit: int) -> bytes | None:
    """Return the first bytes of a file that a process has locked; None where none has, or where there are no locks."""
    try:
        descriptor = regular_descriptor(path)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, limit, 0)
    except OSError:
        # As on some network disks.
        return None
    else:
        return None
    finally:
        os.close(descriptor)
