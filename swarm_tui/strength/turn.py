"""Lock for measuring test strength: one process per review at a time. Other processes see its progress or stop it."""

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
from swarm_tui.files import read_from_holder, regular_descriptor
from swarm_tui.model.formatting import Progress
from swarm_tui.strength.measure import OnProgress, measuring_progress

LOCK_FILE: Final = "strength.lock"
STOP_FILE: Final = "strength.stop"
STOPPED_MEASURING: Final = "measuring test strength is stopped; run `swarm-tui fixes --strength` to continue"
_POLL: Final = 0.3
_LONGEST: Final = 200
"""Maximum size of the line in the lock file, in bytes."""


class MeasuringStopped(SwarmError):
    """Another process requested the measuring process to stop."""


class MeasureLock:
    """The lock of one review. The kernel releases it when its process exits."""

    def __init__(self, folder: Path) -> None:
        self._lock = folder / LOCK_FILE
        self._stop = folder / STOP_FILE

    def progress(self) -> Progress | None:
        """Return the progress of the measuring process; None if there is none."""
        line = read_from_holder(self._lock, _LONGEST)
        return None if line is None else _parse(line)

    def stop(self) -> bool:
        """Request the measuring process to stop; return False if there is none."""
        if self.progress() is None:
            return False
        self._stop.touch()
        return True

    def stop_and_wait(self, seconds: float = 15.0) -> bool:
        """Stop the measuring process and wait until it has stopped; return False if there was none."""
        if not self.stop():
            return False
        end = time.monotonic() + seconds
        while self.progress() is not None and time.monotonic() < end:
            time.sleep(0.05)
        return True

    async def run(self, work: Callable[[OnProgress], Awaitable[None]], on_progress: OnProgress) -> None:
        """Wait for the lock and do the work. Raise MeasuringStopped if another process requests it meanwhile."""
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = regular_descriptor(self._lock, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise SwarmError(f"cannot open {self._lock}: {error.strerror or error}") from error
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
                # If the folder was removed, writing would create it again.
                if self._stop.exists() or not self._lock.exists():
                    self._stop.unlink(missing_ok=True)
                    raise MeasuringStopped("stopped", "finished runs are kept: start it again to continue")
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
        pass  # Some network file systems have no locks. At worst, two processes measure the same tests.
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
