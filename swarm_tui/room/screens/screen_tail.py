"""The last lines of the screen of the agent under the cursor, captured once a second while it is at work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.text import plain_lines
from swarm_tui.room.draw.parts import Line, Part, cut_text
from swarm_tui.room.screens.services import ScreenServices

REST_AFTER_TROUBLE: Final = 30.0
"""Without a tmux server there is nothing to see for a while; the agent's own screen shows the reason."""
LINES_WORTH_IT: Final = 3


class ScreenTail:
    """Captures the screen, and calls back when it is another than before."""

    def __init__(self, screen: ScreenServices, on_change: Callable[[], None]) -> None:
        self._screen = screen
        self._on_change = on_change
        self._test = ""
        self._lines: list[str] = []
        self._is_capturing = False
        self._rests_until = 0.0

    def capture(self, record: TestRecord) -> None:
        """Capture the screen of a test's agent, unless there is none to see now."""
        if record.state not in (State.RUNNING, State.WAITING) or self._is_capturing:
            return
        room = self._screen.room
        if time.monotonic() < self._rests_until:
            return
        self._is_capturing = True
        room.run_worker(self._capture(record), group="screen tail", name="capture a screen")

    async def _capture(self, record: TestRecord) -> None:
        try:
            screen = (await self._screen.room.agents.capture([record])).get(record.test)
        except SwarmError:
            self._rests_until = time.monotonic() + REST_AFTER_TROUBLE
            screen = None
        finally:
            self._is_capturing = False
        lines = plain_lines(screen or "").rstrip().split("\n")
        if (record.test, lines) != (self._test, self._lines):
            self._test, self._lines = record.test, lines
            self._on_change()

    def draw(self, record: TestRecord, width: int, height: int) -> list[Line]:
        """Return the last lines of the screen, as many as there is room for."""
        if record.test != self._test or record.is_finished or height < LINES_WORTH_IT + 2:
            return []
        lines = [line for line in self._lines if line.strip()][-(height - 2) :]
        if not lines:
            return []
        return [(), [Part("its screen", "heading")], *([Part(cut_text(line, width), "dim")] for line in lines)]
