"""The panel with the live screen of an agent, by capture: it never attaches, resizes or starts anything."""

from __future__ import annotations

from swarm_tui.errors import SwarmError
from swarm_tui.model.state import TestRecord
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.widgets.captured_screen import CapturedScreenLines


class AgentScreenPanel:
    """Captures the screen of one agent, one capture at a time."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self.lines = CapturedScreenLines(id="peek")
        self._record: TestRecord | None = None
        self._is_capturing = False
        self._problem = ""

    def show_record(self, record: TestRecord) -> None:
        if self._record is None or record.test != self._record.test:
            self._problem = ""
            self.lines.show(None, "looking …")
        self._record = record

    def capture(self) -> None:
        """Capture the screen, unless a capture is under way."""
        if self._record is not None and not self._is_capturing:
            self._is_capturing = True
            self.lines.run_worker(self._capture(self._record), group="peek", name="capture the screen")

    async def _capture(self, record: TestRecord) -> None:
        screen, problem = None, ""
        try:
            screen = (await self._screen.room.agents.capture([record])).get(record.test)
        except SwarmError as error:
            problem = str(error)
        finally:
            self._is_capturing = False
        if self._record is None or self._record.test != record.test:
            return
        if problem != self._problem:
            self._problem = problem
            if problem:
                self._screen.store.note("warning", f"the screen cannot be looked at: {problem}", record.test)
        kept = self._screen.room.agents.kept_screen(record) if screen is None else None
        if screen is not None:
            self.lines.show(screen)
            self.lines.title("Screen", "live · i works in it · a attaches")
        elif kept is not None:
            self.lines.show(kept)
            self.lines.title("Screen", "as it was at its end")
        else:
            self.lines.show(None, problem or "it has no terminal" + ("" if record.launched_at else " yet"))
            self.lines.title("Screen", "")
