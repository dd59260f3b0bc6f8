"""Work in threads that outlives a cancellation, and the temporary folders it uses."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

import pytest

from swarm_tui.adapters.processes.run import finish_in_thread
from tests.waiting import PATIENCE


async def test_cancelled_thread_ends_before_its_folder_is_removed() -> None:
    started, is_released = asyncio.Event(), threading.Event()
    loop, folders, written = asyncio.get_running_loop(), list[Path](), list[bool]()

    def write(folder: Path) -> None:
        loop.call_soon_threadsafe(started.set)
        if not is_released.wait(PATIENCE):
            raise AssertionError(f"waited {PATIENCE:g} s in vain for the cancellation")
        (folder / "late").write_text("written after the cancellation")
        written.append(True)

    async def use_folder() -> None:
        with tempfile.TemporaryDirectory() as name:
            folders.append(Path(name))
            await finish_in_thread(lambda: write(folders[0]))

    task = asyncio.create_task(use_folder())
    await started.wait()
    task.cancel()
    # A task that did not wait for its thread would end in this turn of the event loop.
    await asyncio.wait([task], timeout=0)
    is_waiting = not task.done()
    is_released.set()
    assert is_waiting
    with pytest.raises(asyncio.CancelledError):
        await task
    assert written == [True]
    assert not folders[0].exists()


async def test_thread_returns_its_result_or_error() -> None:
    assert await finish_in_thread(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        await finish_in_thread(lambda: 1 // 0)
