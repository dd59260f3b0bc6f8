"""Wakes the engine when something has happened: an agent has written, a person has asked, a slot has become free."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

from swarm_tui.adapters.file_notices import FileNotices, NoticedFile
from swarm_tui.engine.context import EngineContext

TICKS_OF_ROUND: Final = 5
"""A round comes after so many ticks where whatever happens is told, for it has only clocks to look at."""
TICKS_OF_LOOK: Final = 20
"""All files are looked at after so many ticks all the same."""
PAUSE: Final = 0.005
"""What many agents write within so many seconds is read at once."""


class News:
    """What has happened since the runner looked last. Where not everything is told, every tick is a look at all."""

    def __init__(self, context: EngineContext, tick: float) -> None:
        self._context = context
        self._tick = tick
        self._notices = FileNotices()
        self._requests: NoticedFile | None = None
        self._agents: set[str] = set()
        self._is_round_due = False
        self._has_come = asyncio.Event()
        self._look_due = 0.0

    def begin(self) -> None:
        """Have the place and the system tell what happens."""
        self._context.place.on_news(self._note)
        self._requests = self._notices.follow(self._context.folder.requests, self.wake)

    def close(self) -> None:
        self._notices.close()

    def wake(self) -> None:
        """Begin the next round now."""
        self._is_round_due = True
        self._has_come.set()

    def _note(self, agent: str) -> None:
        self._agents.add(agent)
        self._has_come.set()

    @property
    def _is_complete(self) -> bool:
        is_request_told = self._requests is not None and self._requests.is_noticed
        return is_request_told and self._context.place.tells_all_news()

    def next_round(self) -> float:
        """Return when the next round is due, by the monotonic clock."""
        return time.monotonic() + self._tick * (TICKS_OF_ROUND if self._is_complete else 1)

    async def come_before(self, next_round: float) -> bool:
        """Wait until agents have written something, and return True; False when a round is due."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(next_round - time.monotonic()):
                await self._has_come.wait()
                while not self._is_round_due and not self._is_complete:
                    self._has_come.clear()
                    await self._has_come.wait()
                await asyncio.sleep(PAUSE)
        is_due = self._is_round_due or time.monotonic() >= next_round
        self._is_round_due = False
        self._has_come.clear()
        return not is_due

    def take(self, now: float) -> set[str] | None:
        """Return the ids of the agents that have written; None when all are to be looked at."""
        agents, self._agents = self._agents, set()
        if now < self._look_due and self._is_complete:
            return agents
        self._look_due = now + self._tick * TICKS_OF_LOOK
        return None
