"""Watches a number that a running program makes grow, such as the tests that it has run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

LOOKED_EVERY: Final = 0.3

Tell = Callable[[int], object]


@contextlib.asynccontextmanager
async def told_while_it_grows(read: Callable[[], int], tell: Tell | None) -> AsyncIterator[None]:
    """Call `tell` with the number whenever it has grown, while this is open; what cannot be read is a zero."""
    if tell is None:
        yield
        return
    looking = asyncio.create_task(_look(read, tell))
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _look(read: Callable[[], int], tell: Tell) -> None:
    known = 0
    while True:
        await asyncio.sleep(LOOKED_EVERY)
        number = 0
        with contextlib.suppress(OSError, ValueError):
            number = read()
        if number > known:
            known = number
            tell(number)
