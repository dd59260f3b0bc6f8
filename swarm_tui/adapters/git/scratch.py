"""Throw-away folders; what a killed process has left is removed by the next one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_LOCK_FILE: Final = "in-use"
_MEMORY_FOLDER: Final = Path("/dev/shm")
_SPACE_NEEDED: Final = 512 * 1024 * 1024


class ScratchFolder:
    """A folder that is ours until we close it, or die; `prefix` says what it is for."""

    _lock = -1

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        place = parent or Path(tempfile.gettempdir())
        remove_abandoned(place, prefix)
        self.path, self._lock = _make_locked(place, prefix)

    def close(self) -> None:
        """Remove the folder and all that lies in it."""
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
        # Before it was locked, another process may have taken it for abandoned.
        if (path / _LOCK_FILE).exists():
            return path, lock
        os.close(lock)


def quick_folder() -> Path:
    """Return the folder that lies in memory, where there is one with room: a new file costs 0.01 ms there, not 0.5."""
    try:
        status = os.statvfs(_MEMORY_FOLDER)
    except OSError:
        return Path(tempfile.gettempdir())
    has_space = status.f_bavail * status.f_frsize >= _SPACE_NEEDED
    return _MEMORY_FOLDER if has_space and os.access(_MEMORY_FOLDER, os.W_OK) else Path(tempfile.gettempdir())


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the folders of processes that died without closing them: the kernel has let go of their locks."""
    with os.scandir(parent) as found:
        folders = [Path(entry.path) for entry in found if entry.name.startswith(prefix)]
    for folder in folders:
        # Somebody else's folder, or one that is being made or removed at this moment: not ours to touch.
        with contextlib.suppress(OSError):
            descriptor = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
