"""Waits for conditions: the only module of the tests that sleeps. A deadline ends a wait that would last for ever."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

Found = TypeVar("Found")

PATIENCE: Final = 60.0
PAUSE: Final = 0.02


def until(
    condition: Callable[[], Found], what: str, seconds: float = PATIENCE, describe: Callable[[], str] = lambda: ""
) -> Found:
    """Wait until a condition returns something true, and return that; fail with `what` and the text of `describe`."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}\n{describe()}")
        time.sleep(PAUSE)
    return found


async def eventually(condition: Callable[[], object | Awaitable[object]], what: str, seconds: float = PATIENCE) -> None:
    """Wait in the event loop until a condition, which may be a coroutine function, returns something true."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}")
        await asyncio.sleep(PAUSE)
