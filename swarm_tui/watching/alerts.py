"""Says what an observer has to look at next: all agents, some of them, or none."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Set
from pathlib import Path
from typing import Final

from swarm_tui.adapters.file_notices import FileNotices
from swarm_tui.places.local import LocalPlace

LOOK_SECONDS: Final = 5.0
"""All agents are looked at so often where changes are told: that another program was started in a terminal is not."""
READ_AGAIN_SECONDS: Final = 2.5
"""So long the files of an agent that has written are read again: not all that they say is recorded at once."""
REST: Final = 1.0
"""So long is waited at most for something to be told."""


class Alerts:
    """What was told by this machine, for one event loop."""

    def __init__(self, place: LocalPlace, requests: Path) -> None:
        """`requests` is the file in which people ask for something."""
        self._place = place
        self._has_come = asyncio.Event()
        self._notices = FileNotices()
        self._requests = self._notices.follow(requests, self._has_come.set)
        self._is_changed = True
        self._look_due = 0.0
        self._written: dict[str, float] = {}
        """When each agent has written last, by its id."""
        place.on_changes(self.look_at_all)
        place.on_news(self._note_writing)

    @property
    def is_complete(self) -> bool:
        """Whether all that can be told is."""
        return self._requests.is_noticed and self._place.tells_all_changes() and self._place.tells_all_news()

    def look_at_all(self) -> None:
        """Have all agents looked at next."""
        self._is_changed = True
        self._has_come.set()

    def _note_writing(self, agent: str) -> None:
        self._written[agent] = time.monotonic()
        self._has_come.set()

    def take(self, now: float) -> Set[str] | None:
        """Return the ids of the agents whose files are to be read; None when all is to be looked at."""
        self._has_come.clear()
        if self._is_changed or now >= self._look_due or not self.is_complete:
            self._is_changed, self._look_due = False, now + LOOK_SECONDS
            return None
        self._written = {agent: at for agent, at in self._written.items() if now < at + READ_AGAIN_SECONDS}
        return self._written.keys()

    async def come(self) -> None:
        """Wait until something is told, but not long; not at all where not everything is."""
        if self.is_complete and not self._written:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REST):
                    await self._has_come.wait()

    def close(self) -> None:
        self._notices.close()
