"""A few lines that are drawn whole and never scroll: header, strips, footer. Its spots can be clicked."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from swarm_tui.room.colours import styles_of
from swarm_tui.room.draw.parts import Line, spot_at


class Band(Widget, can_focus=False):
    """Shows the lines it was given last."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "Band { height: auto; width: 1fr; }"

    class Clicked(Message):
        """A spot was clicked."""

        def __init__(self, spot: str) -> None:
            self.spot = spot
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []
        self.display = False

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines; none makes the band take no room."""
        shown = list(lines)
        if shown == self._lines:
            return
        is_other_height = len(shown) != len(self._lines)
        self._lines = shown
        if is_other_height:
            self.styles.height = len(shown)
            self.display = bool(shown)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else ()
        return styles_of(self).strip(line, self.size.width)

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None or at.y >= len(self._lines):
            return
        if spot := spot_at(self._lines[at.y], at.x):
            event.stop()
            self.post_message(self.Clicked(spot))
