"""A list over another screen that narrows while one types: the help and the palette."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from swarm_tui.room.draw.parts import Line
from swarm_tui.room.widgets.lines import Lines, TextLines

Chosen = TypeVar("Chosen")

WIDTH = 108
"""As the style sheet has it."""
MOVES = {"up": -1, "ctrl+p": -1, "down": 1, "ctrl+n": 1, "pageup": -10, "pagedown": 10}


class SearchedScreen(ModalScreen[Chosen | None], Generic[Chosen]):
    """Shows the lines that its subclass returns for what was typed."""

    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = "Input"
    PLACEHOLDER: ClassVar[str] = ""
    HEADING: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.found = TextLines(id="found", has_cursor=True)
        self.words = Input(placeholder=self.PLACEHOLDER, id="words", compact=True)
        self.words.cursor_blink = False

    def compose(self) -> ComposeResult:
        with Vertical(id="searched"):
            yield self.words
            yield self.found

    def on_mount(self) -> None:
        self.found.can_focus = False
        self.search("")

    def search(self, words: str) -> None:
        lines = self.lines_for(words, max(20, min(WIDTH, self.app.size.width) - 7))
        self.found.cursor = 0
        self.found.show(lines)
        self.found.redraw()
        self.found.scroll_rows(0)
        self.found.title(self.HEADING, self.subtitle_for(words))

    def lines_for(self, words: str, width: int) -> list[Line]:
        return []

    def subtitle_for(self, words: str) -> str:
        return "Esc closes"

    def choose(self, index: int) -> None:
        """Close the list with the line at this place."""
        self.dismiss(None)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.choose(self.found.cursor)

    def on_key(self, event: events.Key) -> None:
        if event.key in MOVES:
            event.stop()
            self.found.move(MOVES[event.key])
        elif event.key == "escape" or (event.character == "?" and not self.words.value):
            event.stop()
            self.dismiss(None)

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.choose(self.found.cursor)
