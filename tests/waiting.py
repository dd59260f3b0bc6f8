"""Waits until something is so: the one place where tests pause. A deadline ends only what would hang for ever."""

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
    condition: Callable[[], Found], what: str, seconds: float = PATIENCE, told: Callable[[], str] = lambda: ""
) -> Found:
    """Wait until a condition gives something true, and give it; in vain, say for what, and what is there instead."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}\n{told()}")
        time.sleep(PAUSE)
    return found


async def eventually(condition: Callable[[], object | Awaitable[object]], what: str, seconds: float = PATIENCE) -> None:
    """Wait for the same while the event loop goes on; the condition may itself be waited for."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}")
        await asyncio.sleep(PAUSE)
