"""Whose turn it is to measure the teeth of a review: one process at a time, which all others see and may stop."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.model.progress import Progress
from swarm_tui.regular_file import read_from_holder, regular_descriptor
from swarm_tui.teeth.measure import OnProgress, measuring_progress

LOCK_FILE: Final = "teeth.lock"
STOP_FILE: Final = "teeth.stop"
STOPPED_MEASURING: Final = "the measuring of changed tests is stopped; `swarm-tui fixes --teeth` goes on with it"
_POLL: Final = 0.3
_LONGEST: Final = 200
"""Of the line in the lock file, in bytes."""


class MeasuringStopped(SwarmError):
    """Somebody has asked whoever measures to stop."""


class TeethTurn:
    """The turn of one review. The kernel ends it with the process that has it."""

    def __init__(self, folder: Path) -> None:
        self._lock = folder / LOCK_FILE
        self._stop = folder / STOP_FILE

    def progress(self) -> Progress | None:
        """Return how far the process is that measures now; None when none does."""
        line = read_from_holder(self._lock, _LONGEST)
        return None if line is None else _parse(line)

    def stop(self) -> bool:
        """Ask the process that measures now to stop; return False when none does."""
        if self.progress() is None:
            return False
        self._stop.touch()
        return True

    def stop_and_wait(self, seconds: float = 15.0) -> bool:
        """Stop the process that measures now, and wait until it has; return False when none did."""
        if not self.stop():
            return False
        end = time.monotonic() + seconds
        while self.progress() is not None and time.monotonic() < end:
            time.sleep(0.05)
        return True

    async def run(self, work: Callable[[OnProgress], Awaitable[None]], on_progress: OnProgress) -> None:
        """Wait for the turn and do the work; raise MeasuringStopped when somebody asks for that meanwhile."""
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = regular_descriptor(self._lock, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise SwarmError(f"{self._lock} cannot be opened", error.strerror or str(error)) from error
        try:
            while not _is_ours(descriptor):
                on_progress(_parse(os.pread(descriptor, _LONGEST, 0)))
                await asyncio.sleep(_POLL)
            os.ftruncate(descriptor, 0)
            self._stop.unlink(missing_ok=True)

            def show(progress: Progress) -> None:
                _write(descriptor, progress)
                on_progress(progress)

            await self._until_stopped(asyncio.ensure_future(work(show)))
        finally:
            os.close(descriptor)

    async def _until_stopped(self, task: asyncio.Future[None]) -> None:
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_POLL)
                # Where the folder is gone, nothing may be written that would make it again.
                if self._stop.exists() or not self._lock.exists():
                    self._stop.unlink(missing_ok=True)
                    raise MeasuringStopped("it was stopped", "what was run is kept: the next time goes on from there")
            task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _is_ours(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # Some network disks have no locks: then the same is measured twice at the worst.
    return True


def _write(descriptor: int, progress: Progress) -> None:
    line = json.dumps([progress.done, progress.total, progress.seconds_left]).encode()
    os.pwrite(descriptor, line.ljust(_LONGEST), 0)


def _parse(line: bytes) -> Progress:
    try:
        done, total, left = json.loads(line)
        return measuring_progress(int(done), int(total), None if left is None else float(left))
    except (ValueError, TypeError):
        return measuring_progress()
