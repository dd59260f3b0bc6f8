"""Waits for conditions: the only module of the tests that sleeps. A deadline ends a wait that would last for ever."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

Found = TypeVar("Found")

PATIENCE: Final = 180.0
"""Seconds after which a wait is given up. It is long: on a busy machine everything takes ten times as long."""
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


async def eventually(
    condition: Callable[[], object | Awaitable[object]],
    what: str,
    seconds: float = PATIENCE,
    describe: Callable[[], str] = lambda: "",
) -> None:
    """Wait in the event loop until a condition, which may be a coroutine function, returns something true."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}\n{describe()}")
        await asyncio.sleep(PAUSE)
