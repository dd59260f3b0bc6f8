"""The line in which a filter is typed; it stands in the footer's place and filters at every key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.widgets import Input

if TYPE_CHECKING:
    from swarm_tui.room.screens.base import RoomScreen


class FilterLine(Input):
    """Enter keeps the filter, Escape clears it and returns to the old place."""

    def __init__(self, screen: RoomScreen) -> None:
        # Without an id: Textual takes a widget away later, and the next filter may be begun before.
        super().__init__(value=screen.filter_words, placeholder="filter; !word: without it; Enter keeps, Esc clears")
        self.compact = True
        self.cursor_blink = False
        self.select_on_focus = False
        self._owner = screen
        self._restore = screen.bookmark()
        self._is_closed = False

    def on_mount(self) -> None:
        self._owner.footer.visible = False

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._owner.set_filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close()

    async def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self._owner.set_filter("")
            self._close()
            self._restore()
        elif event.key in ("up", "down"):
            event.stop()
            lines = self._owner.focused_lines
            if lines is not None:
                lines.move(-1 if event.key == "up" else 1)

    def on_blur(self) -> None:
        if self.is_attached:
            self._close()

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._owner.footer.visible = True
        if self.has_focus:
            # Else another widget has the focus already, such as the next filter.
            self._owner.focus_main()
        # What the line has told Textual to call holds the line, and with it what it was drawn on.
        self._owner.text_selection_started_signal.unsubscribe(self)
        self.remove()
        self._owner.draw_frame()
