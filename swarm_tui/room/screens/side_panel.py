"""The panel about the test under the cursor, with the last lines of its agent's screen."""

from __future__ import annotations

from swarm_tui.model.state import TestRecord
from swarm_tui.room.draw.side import draw_side, side_title
from swarm_tui.room.screens.screen_tail import ScreenTail
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.widgets.lines import TextLines


class SidePanel:
    """Shows one test; whether it is there at all is the person's choice."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self._record: TestRecord | None = None
        self.lines = TextLines(id="side")
        self._tail = ScreenTail(screen, self._draw)

    @property
    def is_wanted(self) -> bool:
        return self._screen.room.settings.remembered.has_side

    def show(self, record: TestRecord | None) -> None:
        self._record = record
        self._draw()

    def _draw(self) -> None:
        record = self._record
        if record is None:
            self.lines.title("", "")
            self.lines.show([])
        elif self.is_wanted:
            self.lines.title(side_title(record))
            width = max(10, self.lines.text_width)
            store = self._screen.store
            lines = draw_side(record, width, store.clock(), store.pending_for(record.test))
            self.lines.show([*lines, *self._tail.draw(record, width, self.lines.visible_rows - len(lines))])

    def capture_screen(self) -> None:
        """Read the screen of the test's agent, while the panel is there."""
        if self.is_wanted and self.lines.display and self._record is not None:
            self._tail.capture(self._record)
