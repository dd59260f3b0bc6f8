"""Temporary folders. Folders of a killed process are removed by the next process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

_LOCK_FILE: Final = "in-use"
_MEMORY_FOLDER: Final = Path("/dev/shm")
_SPACE_NEEDED: Final = 512 * 1024 * 1024
# The programs that use a folder need most of the 107 bytes of a socket's path.
_LONGEST_PARENT: Final = 30
_PLAIN_PATH: Final = re.compile(r"/[\w./@+-]*")


class ScratchFolder:
    """A folder that is removed by `close`, or by the next process with the same `prefix` if we are killed."""

    _lock = -1

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        within = parent or Path(tempfile.gettempdir())
        remove_abandoned(within, prefix)
        self.path, self._lock = _make_locked(within, prefix)

    def close(self) -> None:
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def __del__(self) -> None:
        self.close()


def _make_locked(parent: Path, prefix: str) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        lock = os.open(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another process may have removed the folder before it was locked.
        if (path / _LOCK_FILE).exists():
            return path, lock
        os.close(lock)


def short_folder(preferred: str | None = None) -> Path:
    """Return a folder with a short path that needs no quotes, for sockets: by default the temporary one, or /tmp."""
    folder = preferred or tempfile.gettempdir()
    return Path(folder if len(folder) <= _LONGEST_PARENT and _PLAIN_PATH.fullmatch(folder) else "/tmp")


def memory_folder() -> Path:
    """Return a folder in memory if it has space. A new file there takes 0.01 ms instead of 0.5 ms."""
    try:
        status = os.statvfs(_MEMORY_FOLDER)
    except OSError:
        return Path(tempfile.gettempdir())
    has_space = status.f_bavail * status.f_frsize >= _SPACE_NEEDED
    return _MEMORY_FOLDER if has_space and os.access(_MEMORY_FOLDER, os.W_OK) else Path(tempfile.gettempdir())


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the folders of killed processes, whose locks the kernel has released."""
    with os.scandir(parent) as found:
        folders = [Path(entry.path) for entry in found if entry.name.startswith(prefix)]
    for folder in folders:
        # The folder belongs to another user, or is just being created or removed.
        with contextlib.suppress(OSError):
            descriptor = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
