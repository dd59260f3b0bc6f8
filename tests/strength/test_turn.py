"""One process at a time measures the tests of a review; others see its progress, wait for it, or stop it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from swarm_tui.model.formatting import Progress
from swarm_tui.strength.measure import OnProgress, measuring_progress
from swarm_tui.strength.review import LOCK_FILE, MeasureLock, MeasuringStopped
from tests.waiting import eventually

HALF = measuring_progress(20, 40, 12.0)


def work_until(end: asyncio.Event) -> Callable[[OnProgress], Awaitable[None]]:
    async def work(show: OnProgress) -> None:
        show(HALF)
        await end.wait()

    return work


async def test_second_process_sees_progress_and_waits(tmp_path: Path) -> None:
    first, second, end = MeasureLock(tmp_path), MeasureLock(tmp_path), asyncio.Event()
    assert second.progress() is None
    measuring = asyncio.ensure_future(first.run(work_until(end), lambda _: None))
    await eventually(lambda: second.progress() == HALF, "the progress of the first")
    seen: list[Progress] = []
    waiting = asyncio.ensure_future(second.run(work_until(end), seen.append))
    await eventually(lambda: HALF in seen, "the second to wait")
    end.set()
    await asyncio.gather(measuring, waiting)
    assert second.progress() is None
    assert not second.stop()


async def test_other_process_stops_measuring(tmp_path: Path) -> None:
    turn = MeasureLock(tmp_path)
    measuring = asyncio.ensure_future(turn.run(work_until(asyncio.Event()), lambda _: None))
    await eventually(lambda: MeasureLock(tmp_path).progress() == HALF, "its progress")
    assert await asyncio.to_thread(MeasureLock(tmp_path).stop_and_wait)
    with pytest.raises(MeasuringStopped, match="start it again to continue"):
        await measuring
    # Only the current process was stopped, not the next one.
    end = asyncio.Event()
    end.set()
    await turn.run(work_until(end), lambda _: None)


async def test_measuring_stops_if_review_folder_is_removed(tmp_path: Path) -> None:
    turn = MeasureLock(tmp_path / "review")
    measuring = asyncio.ensure_future(turn.run(work_until(asyncio.Event()), lambda _: None))
    await eventually(lambda: turn.progress() is not None, "its beginning")
    shutil.rmtree(tmp_path / "review")
    with pytest.raises(MeasuringStopped):
        await measuring
    assert not (tmp_path / "review").exists()


def test_invalid_lock_file_has_no_progress(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_bytes(b'{"done": [\xff' * 1000)
    assert MeasureLock(tmp_path).progress() is None
