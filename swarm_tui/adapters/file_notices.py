"""Report changes of files at once, with inotify on Linux. Elsewhere, poll.

A notification is a hint, so poll from time to time as well. Changes by other machines on a network disk cause no
notification. If a limit of the system is reached, or the system is not Linux, `is_noticed` of a file is false.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncinotify import Event, Inotify, Mask, Watch

NETWORK_DISKS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "glusterfs", "beegfs", "gpfs", "vboxsf"}
)
_LOCAL_FUSE: Final = frozenset({"fuseblk", "fuse.fuse-overlayfs"})
_MOUNTS: Final = Path("/proc/self/mountinfo")


@dataclass(eq=False, slots=True)
class NoticedFile:
    """A followed file. It may not exist yet."""

    path: str
    call: Callable[[], object]
    pause: float
    _notices: FileNotices
    _folder: str = ""
    """The watched folder: the file's own, or the nearest existing folder above it."""
    _is_local: bool = True
    _called_at: float = float("-inf")
    _later: asyncio.TimerHandle | None = None

    @property
    def is_noticed(self) -> bool:
        """Whether all changes of the file are reported."""
        return bool(self._folder) and self._is_local

    def close(self) -> None:
        self._notices.forget(self)


@dataclass(slots=True)
class _WatchedFolder:
    watch: Watch
    is_local: bool
    files: dict[str, list[NoticedFile]] = field(default_factory=dict)
    """The files by the name in this folder that leads to them."""


class FileNotices:
    """Follows files for one event loop, with one descriptor and no thread."""

    def __init__(self, *, is_off: bool = False) -> None:
        """Turn notifications off with `is_off`, so that files must be polled."""
        self._inotify: Inotify | None = None
        self._masks: type[Mask]
        self._reading: asyncio.Task[None] | None = None
        self._folders: dict[str, _WatchedFolder] = {}
        self._paths: dict[int, str] = {}
        """The watched folders by the numbers of their watches."""
        self._devices: dict[int, bool] = {}
        self._is_refused = is_off or not sys.platform.startswith("linux")

    def follow(self, path: str | Path, call: Callable[[], object], *, pause: float = 0.0) -> NoticedFile:
        """Call `call` when a file may have changed: at once, and then at most once in `pause` seconds.

        A path that ends in `/*` follows all files of a folder.
        """
        file = NoticedFile(str(path), call, pause, self)
        self._place(file)
        return file

    def forget(self, file: NoticedFile) -> None:
        """Stop following a file."""
        if file._later is not None:
            file._later.cancel()
            file._later = None
        self._take_out(file)

    def close(self) -> None:
        """Stop following all files."""
        for folder in list(self._folders.values()):
            for file in [file for files in folder.files.values() for file in files]:
                self.forget(file)
        if self._reading is not None:
            self._reading.cancel()
        if self._inotify is not None:
            self._inotify.close()
        self._inotify = self._reading = None

    # Folders of the followed files.

    def _place(self, file: NoticedFile) -> None:
        """Watch the folder of a file, or the nearest existing folder above it."""
        while True:
            folder, name = os.path.split(os.path.abspath(file.path))
            is_own = os.path.isdir(folder)
            while not os.path.isdir(folder) and folder != os.path.dirname(folder):
                folder, name = os.path.split(folder)
            real = os.path.realpath(folder)
            watched = self._watched(real)
            if watched is None:
                return
            watched.files.setdefault(name, []).append(file)
            file._folder, file._is_local = real, watched.is_local
            # The folder may have been created before the watch began.
            if is_own or not os.path.isdir(os.path.join(folder, name)):
                return
            self._take_out(file)

    def _take_out(self, file: NoticedFile) -> None:
        path, file._folder = file._folder, ""
        folder = self._folders.get(path)
        if folder is None:
            return
        for name, files in list(folder.files.items()):
            if file in files:
                files.remove(file)
                if not files:
                    del folder.files[name]
        if not folder.files:
            self._end_watch(path)

    def _watched(self, path: str) -> _WatchedFolder | None:
        folder = self._folders.get(path)
        if folder is None and (inotify := self._opened()) is not None:
            mask = self._masks
            wanted = mask.MODIFY | mask.CREATE | mask.MOVE | mask.DELETE | mask.DELETE_SELF | mask.MOVE_SELF
            try:
                is_local = self._is_local(os.stat(path).st_dev)
                watch = inotify.add_watch(path, wanted | mask.ONLYDIR)
            except OSError:
                return None
            if watch.wd in self._paths:
                # The same folder is mounted in two places and watched already.
                return None
            folder = self._folders[path] = _WatchedFolder(watch, is_local)
            self._paths[watch.wd] = path
        return folder

    def _end_watch(self, path: str) -> None:
        folder = self._folders.pop(path)
        if self._paths.get(folder.watch.wd) == path:
            del self._paths[folder.watch.wd]
            if self._inotify is not None:
                with contextlib.suppress(OSError):
                    self._inotify.rm_watch(folder.watch)

    def _opened(self) -> Inotify | None:
        if self._inotify is None and not self._is_refused:
            try:
                from asyncinotify import Inotify, Mask

                # The C library may lack inotify, and a user can usually have 128 instances.
                self._inotify, self._masks = Inotify(cache_size=64), Mask
            except (ImportError, RuntimeError, OSError):
                self._is_refused = True
                return None
            self._reading = asyncio.get_running_loop().create_task(self._read(self._inotify))
        return self._inotify

    def _is_local(self, device: int) -> bool:
        if device not in self._devices:
            self._devices[device] = not is_on_network(device, _mount_lines())
        return self._devices[device]

    # Events from the system.

    async def _read(self, inotify: Inotify) -> None:
        async for event in inotify:
            self._take(event)

    def _take(self, event: Event) -> None:
        if self._masks.Q_OVERFLOW in event.mask:
            self._call_all(file for folder in self._folders.values() for file in _files(folder))
            return
        watch = event.watch
        if watch is None or (path := self._paths.get(watch.wd)) is None:
            return
        if event.name is None or self._masks.IGNORED in event.mask:
            # The folder was removed or renamed.
            self._place_again(_files(self._folders[path]))
            return
        names = self._folders[path].files
        files = [*names.get(str(event.name), ()), *names.get("*", ())]
        if self._masks.ISDIR in event.mask:
            self._place_again(files)
        else:
            self._call_all(files)

    def _place_again(self, files: Iterable[NoticedFile]) -> None:
        files = list(files)
        for file in files:
            self._take_out(file)
        for file in files:
            self._place(file)
        self._call_all(files)

    def _call_all(self, files: Iterable[NoticedFile]) -> None:
        loop = asyncio.get_running_loop()
        for file in list(files):
            if file._later is not None:
                continue
            due = file._called_at + file.pause
            if due <= loop.time():
                self._call(file)
            else:
                file._later = loop.call_at(due, self._call, file)

    def _call(self, file: NoticedFile) -> None:
        file._later = None
        file._called_at = asyncio.get_running_loop().time()
        file.call()


def _files(folder: _WatchedFolder) -> list[NoticedFile]:
    return [file for files in folder.files.values() for file in files]


def _mount_lines() -> list[str]:
    try:
        return _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return []


def is_on_network(device: int, mounts: Iterable[str]) -> bool:
    """Return whether a device is a network file system, according to the lines of `mountinfo`.

    File systems in user space, such as sshfs, count as network file systems.
    """
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts:
        before, _, after = line.partition(" - ")
        if before.split()[2:3] == [wanted] and after:
            kind = after.split()[0]
            return kind in NETWORK_DISKS or (kind.startswith("fuse") and kind not in _LOCAL_FUSE)
    return False
