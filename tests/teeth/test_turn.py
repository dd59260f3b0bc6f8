"""Only one process measures the teeth of a review; others see how far it is, wait for it, and may stop it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from swarm_tui.model.progress import Progress
from swarm_tui.teeth.measure import OnProgress, measuring_progress
from swarm_tui.teeth.turn import LOCK_FILE, MeasuringStopped, TeethTurn
from tests.waiting import eventually

HALF = measuring_progress(20, 40, 12.0)


def work_until(end: asyncio.Event) -> Callable[[OnProgress], Awaitable[None]]:
    async def work(show: OnProgress) -> None:
        show(HALF)
        await end.wait()

    return work


async def test_who_comes_second_sees_how_far_the_first_is_and_waits(tmp_path: Path) -> None:
    first, second, end = TeethTurn(tmp_path), TeethTurn(tmp_path), asyncio.Event()
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


async def test_anybody_stops_it(tmp_path: Path) -> None:
    turn = TeethTurn(tmp_path)
    measuring = asyncio.ensure_future(turn.run(work_until(asyncio.Event()), lambda _: None))
    await eventually(lambda: TeethTurn(tmp_path).progress() == HALF, "its progress")
    assert await asyncio.to_thread(TeethTurn(tmp_path).stop_and_wait)
    with pytest.raises(MeasuringStopped, match="goes on from there"):
        await measuring
    # It stopped that one, and not the next.
    end = asyncio.Event()
    end.set()
    await turn.run(work_until(end), lambda _: None)


async def test_it_ends_where_the_folder_of_the_review_is_removed(tmp_path: Path) -> None:
    turn = TeethTurn(tmp_path / "review")
    measuring = asyncio.ensure_future(turn.run(work_until(asyncio.Event()), lambda _: None))
    await eventually(lambda: turn.progress() is not None, "its beginning")
    shutil.rmtree(tmp_path / "review")
    with pytest.raises(MeasuringStopped):
        await measuring
    assert not (tmp_path / "review").exists()


def test_a_lock_file_that_holds_anything_else_is_no_progress(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_bytes(b'{"done": [\xff' * 1000)
    assert TeethTurn(tmp_path).progress() is None
