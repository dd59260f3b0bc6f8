"""Blocking work in threads, which cannot be stopped: whoever is cancelled waits for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")


async def finish_in_thread(work: Callable[[], Made]) -> Made:
    """Do something in a thread; when cancelled meanwhile, wait for its end."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
