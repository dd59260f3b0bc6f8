"""A text to read over the screen: it scrolls, and any way back closes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from swarm_tui.room.draw.parts import Line
from swarm_tui.room.screens.dialog import MOVES
from swarm_tui.room.widgets.lines import TextLines


class ReadingScreen(ModalScreen[None]):
    """Shows lines that are drawn for the width they get."""

    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = None
    WIDTH: ClassVar[int] = 110

    def __init__(self, title: str, draw: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._title = title
        self._draw = draw
        self.panel = TextLines(id="dialog")

    def compose(self) -> ComposeResult:
        yield self.panel

    def on_mount(self) -> None:
        width = min(self.WIDTH, self.app.size.width)
        lines = list(self._draw(width - 4))
        self.panel.styles.width = width
        self.panel.styles.height = min(len(lines) + 2, max(3, self.app.size.height - 4))
        self.panel.title(self._title, "Esc closes")
        self.panel.show(lines)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        key = event.character if event.is_printable and event.character not in (None, " ") else event.key
        if key in MOVES:
            self.panel.move(MOVES[key])
        elif key in ("escape", "q", "enter"):
            self.dismiss(None)
