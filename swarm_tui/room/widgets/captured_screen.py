"""The live screen of an agent, by capture: it never attaches, resizes or starts anything."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip

from swarm_tui.room.colours import segments_strip
from swarm_tui.room.draw.parts import Line, Part
from swarm_tui.room.draw.terminal_text import read_terminal_text
from swarm_tui.room.widgets.lines import Lines


class CapturedScreenLines(Lines):
    """Shows the captured screen with its colours; the bottom of it is what is seen first."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, has_cursor=False)
        self._text: str | None = None
        self._rows: list[list[Segment]] = []
        self.note = ""

    def show(self, text: str | None, note: str = "") -> None:
        """Show a captured screen; None with a note when there is none to show."""
        if (text, note) == (self._text, self.note):
            return
        self._text, self.note = text, note
        was_at_end = self.first_visible + self.visible_rows >= len(self._rows)
        self._rows = read_terminal_text(text.rstrip("\n")) if text is not None else []
        self.redraw()
        if was_at_end:
            self.call_after_refresh(self.scroll_rows, len(self._rows))

    def line_count(self) -> int:
        return len(self._rows) if self._text is not None else 1

    def draw_line(self, index: int, width: int) -> Line:
        return [Part(self.note, "dim")]

    def render_line(self, y: int) -> Strip:
        index = y + self.first_visible
        if self._text is None:
            return super().render_line(y)
        return segments_strip(self, self._rows[index] if index < len(self._rows) else ())
