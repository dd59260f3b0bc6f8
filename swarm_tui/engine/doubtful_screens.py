"""Reads the terminals of agents whose files do not say what they do; waits for no slow host."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.places.place import AgentAddress, Place

PATIENCE: Final = 0.2


class DoubtfulScreens:
    """The screens that were read last."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._reading: asyncio.Task[dict[str, str | None]] | None = None

    async def read(self, agents: Sequence[AgentAddress]) -> Mapping[str, str | None]:
        """Return screens by session; what takes longer is returned the next time."""
        if self._reading is None:
            if not agents:
                return {}
            self._reading = asyncio.ensure_future(self._place.capture_screens(agents))
        done, _ = await asyncio.wait({self._reading}, timeout=PATIENCE)
        if not done:
            return {}
        reading, self._reading = self._reading, None
        try:
            return reading.result()
        except SwarmError:
            return {}
