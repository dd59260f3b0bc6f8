"""Waits for conditions, and the time limit of a test. This is the only module of the tests that sleeps."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import inspect
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

import pytest

Found = TypeVar("Found")

PATIENCE: Final = 120.0
"""Time limit of a wait in seconds. On a busy machine everything takes ten times as long."""
LONGEST_PHASE: Final = 600.0
"""Time limit in seconds for the setup, the call and the teardown of a test, three times as long on a busy machine."""
BUSY: Final = 3.0
"""Load of each processor from which a machine is busy."""
PAUSE: Final = 0.02
"""Seconds between two checks of a condition. A check that takes longer is followed by a pause of the same length."""
STILL: Final = 20.0
"""Seconds after which a screen in memory that has not changed is final."""


@contextlib.contextmanager
def time_limit(seconds: float = LONGEST_PHASE) -> Iterator[None]:
    """Fail after a number of seconds and print the stacks of all threads, so that a hang costs one test, not the run.

    A limit that is already set, such as an outer one, stays in force instead.
    """
    begun = time.monotonic()

    def fail(_number: int, _frame: object) -> None:
        is_busy = os.getloadavg()[0] > BUSY * (os.cpu_count() or 1)
        elapsed = time.monotonic() - begun
        if is_busy and elapsed < 2.5 * seconds:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return
        faulthandler.dump_traceback(file=2)
        pytest.fail(f"not finished after {elapsed:.1f} s; the stacks of all threads are on standard error")

    if signal.getsignal(signal.SIGALRM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def until(
    condition: Callable[[], Found], what: str, seconds: float = PATIENCE, describe: Callable[[], str] = lambda: ""
) -> Found:
    """Wait until a condition returns something true, and return that; fail with `what` and the text of `describe`."""
    deadline = time.monotonic() + seconds
    checked_at = time.monotonic()
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}\n{describe()}")
        time.sleep(_pause_after(checked_at))
        checked_at = time.monotonic()
    return found


def _pause_after(checked_at: float) -> float:
    """Return the pause before the next check: on a busy machine, checks must not slow down what they wait for."""
    return max(PAUSE, time.monotonic() - checked_at)


async def eventually(
    condition: Callable[[], object | Awaitable[object]],
    what: str,
    seconds: float = PATIENCE,
    describe: Callable[[], str] = lambda: "",
) -> None:
    """Wait in the event loop until a condition, which may be a coroutine function, returns something true."""
    deadline = time.monotonic() + seconds
    while True:
        checked_at = time.monotonic()
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}\n{describe()}")
        await asyncio.sleep(_pause_after(checked_at))


async def finally_shown(show: Callable[[], str], expected: str, still: float = STILL) -> str:
    """Wait until `show` returns the expected text, or has not changed for `still` seconds, and return its text.

    A wrong screen therefore fails long before PATIENCE.
    """
    begun = since = time.monotonic()
    shown = show()
    while shown != expected and time.monotonic() < min(since + still, begun + PATIENCE):
        await asyncio.sleep(5 * PAUSE)
        if (now := show()) != shown:
            shown, since = now, time.monotonic()
    return shown
