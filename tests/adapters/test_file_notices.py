"""Notices of changed files: what is told, what is not, and what says that one has to look."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from swarm_tui.adapters.file_notices import FileNotices, is_on_network
from tests.adapters.descriptors import open_descriptors
from tests.waiting import eventually

MOUNTS = [
    "22 27 0:20 / /sys rw shared:7 - sysfs sysfs rw",
    "30 22 0:45 /export /data rw,relatime shared:9 master:1 - nfs4 server:/export rw,vers=4.2",
    "31 22 0:46 / /far rw - fuse.sshfs me@far:/ rw",
    "32 22 0:47 / / rw - fuse.fuse-overlayfs fuse-overlayfs rw",
]


@pytest.fixture
async def notices() -> AsyncIterator[FileNotices]:
    notices = FileNotices()
    yield notices
    notices.close()


class Calls:
    """Counts how often each file was told of."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def of(self, name: str) -> Callable[[], None]:
        def call() -> None:
            self.counts[name] = self.counts.get(name, 0) + 1

        return call


def append(path: Path, text: str = "x\n") -> None:
    with path.open("a") as file:
        file.write(text)


async def test_only_followed_file_is_reported(notices: FileNotices, tmp_path: Path) -> None:
    calls = Calls()
    for name in ("one", "two", "three"):
        append(tmp_path / name)
        file = notices.follow(tmp_path / name, calls.of(name))
        assert file.is_noticed
    append(tmp_path / "two")
    append(tmp_path / "other")
    append(tmp_path / "three")
    await eventually(lambda: "three" in calls.counts, "a notice of the last file")
    assert set(calls.counts) == {"two", "three"}


async def test_file_in_later_folder_is_reported(notices: FileNotices, tmp_path: Path) -> None:
    calls = Calls()
    path = tmp_path / "agents/one/plugin/tries"
    file = notices.follow(path, calls.of("tries"))
    assert file.is_noticed
    for _ in range(2):
        calls.counts.clear()
        path.parent.mkdir(parents=True)
        await eventually(lambda: calls.counts, "a notice of the folders")
        path.write_text("")
        calls.counts.clear()
        append(path)
        await eventually(lambda: calls.counts, "a notice of the file")
        # The same place, another folder: what was watched is gone.
        shutil.rmtree(tmp_path / "agents")


async def test_replaced_file_is_reported(notices: FileNotices, tmp_path: Path) -> None:
    calls = Calls()
    path, draft = tmp_path / "outcome", tmp_path / "draft"
    notices.follow(path, calls.of("outcome"))
    draft.write_text("{}")
    draft.replace(path)
    await eventually(lambda: calls.counts, "a notice of the new file")
    calls.counts.clear()
    path.unlink()
    await eventually(lambda: calls.counts, "a notice that it is gone")


async def test_new_file_in_folder_is_reported(notices: FileNotices, tmp_path: Path) -> None:
    calls = Calls()
    notices.follow(tmp_path / "asks/*", calls.of("asks"))
    (tmp_path / "asks").mkdir()
    await eventually(lambda: calls.counts, "a notice of the folder")
    calls.counts.clear()
    append(tmp_path / "asks/1.json")
    await eventually(lambda: calls.counts, "a notice of what came into it")


async def test_busy_file_is_reported_once_per_pause(notices: FileNotices, tmp_path: Path) -> None:
    calls, end = Calls(), tmp_path / "end"
    busy = notices.follow(tmp_path / "busy", calls.of("busy"), pause=1000.0)
    notices.follow(end, calls.of("end"))
    for _ in range(50):
        append(tmp_path / "busy")
        append(tmp_path / "elsewhere")
    append(end)
    await eventually(lambda: calls.counts.get("end"), "a notice of the last file")
    assert calls.counts["busy"] == 1
    busy.close()


async def test_forgotten_file_is_not_watched(notices: FileNotices, tmp_path: Path) -> None:
    calls = Calls()
    (tmp_path / "a").mkdir()
    first, second = (notices.follow(tmp_path / "a" / name, calls.of(name)) for name in ("first", "second"))
    first.close()
    append(tmp_path / "a/first")
    append(tmp_path / "a/second")
    await eventually(lambda: calls.counts, "a notice")
    assert set(calls.counts) == {"second"}
    second.close()
    assert not second.is_noticed
    assert not notices._folders


async def test_exhausted_notifications_require_polls(tmp_path: Path) -> None:
    """The limit of open files stands for that of watches, which only a root user may set."""
    notices, limits = FileNotices(), resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, limits[1]))
    held = []
    try:
        while True:
            try:
                held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        file = notices.follow(tmp_path / "tries", lambda: None)
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not file.is_noticed
    file.close()
    notices.close()


async def test_hundred_folders_use_one_descriptor(notices: FileNotices, tmp_path: Path) -> None:
    import threading

    before, threads = open_descriptors(), threading.active_count()
    calls = Calls()
    files = []
    for number in range(100):
        (tmp_path / str(number)).mkdir()
        files.append(notices.follow(tmp_path / str(number) / "tries", calls.of(str(number))))
    assert all(file.is_noticed for file in files)
    assert open_descriptors() <= before + 2
    assert threading.active_count() == threads
    append(tmp_path / "77/tries")
    await eventually(lambda: calls.counts, "a notice")
    assert set(calls.counts) == {"77"}


async def test_notices_end_with_their_loop(tmp_path: Path) -> None:
    notices = FileNotices()
    notices.follow(tmp_path / "tries", lambda: None)
    reading = notices._reading
    notices.close()
    assert reading is not None
    await asyncio.wait([reading])
    assert reading.cancelled()


@pytest.mark.parametrize(("minor", "expected"), [(20, False), (45, True), (46, True), (47, False), (99, False)])
def test_network_disks_are_recognized(minor: int, expected: bool) -> None:
    assert is_on_network(os.makedev(0, minor), MOUNTS) is expected
