"""The last lines of the screen of the agent under the cursor, looked at once a second while it is at work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from swarm_tui.errors import SwarmError
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.text import plain_lines
from swarm_tui.room.draw.parts import Line, Part, cut_text

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp

REST_AFTER_TROUBLE: Final = 30.0
"""Without a tmux server there is nothing to see for a while; the agent's own screen tells why."""
LINES_WORTH_IT: Final = 3


class Glimpse:
    """Looks, and keeps what was seen last."""

    def __init__(self, room: Callable[[], RoomApp], show: Callable[[], None]) -> None:
        self._room = room
        self._show = show
        self._test = ""
        self._lines: list[str] = []
        self._is_looking = False
        self._rests_until = 0.0

    def look(self, record: TestRecord | None) -> None:
        """Look at the screen of a test's agent, unless nothing can be seen there now."""
        if record is None or record.state not in (State.RUNNING, State.WAITING) or self._is_looking:
            return
        room = self._room()
        if not room.agents.is_local or time.monotonic() < self._rests_until:
            return
        self._is_looking = True
        room.run_worker(self._capture(room, record), group="glimpse", name="glimpse at a screen")

    async def _capture(self, room: RoomApp, record: TestRecord) -> None:
        try:
            screen = (await room.agents.capture([record])).get(record.test)
        except SwarmError:
            self._rests_until = time.monotonic() + REST_AFTER_TROUBLE
            screen = None
        finally:
            self._is_looking = False
        lines = plain_lines(screen or "").rstrip().split("\n")
        if (record.test, lines) != (self._test, self._lines):
            self._test, self._lines = record.test, lines
            self._show()

    def draw(self, record: TestRecord, width: int, height: int) -> list[Line]:
        """Return the last lines of the screen, as many as there is room for."""
        if record.test != self._test or record.is_finished or height < LINES_WORTH_IT + 2:
            return []
        lines = [line for line in self._lines if line.strip()][-(height - 2) :]
        if not lines:
            return []
        return [(), [Part("its screen", "heading")], *([Part(cut_text(line, width), "dim")] for line in lines)]
