"""The page that the room shows in a repository without a sweep: commands to start with, one key each."""

from __future__ import annotations

import os
from typing import ClassVar, Final, NamedTuple

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from swarm_tui.room.colours import ThemeStyles
from swarm_tui.room.draw.spans import Line, Span, wrap_text
from swarm_tui.room.external import leave_on_signals
from swarm_tui.room.settings import first_theme
from swarm_tui.room.widgets.lines import TextLines


class FirstRunView(NamedTuple):
    """A command to start with."""

    key: str
    command: str
    text: str
    words: tuple[str, ...]
    """Arguments of the command; empty if it is only shown and not run."""


BEGINNINGS: Final = (
    FirstRunView(
        "d", "swarm-tui demo", "Play a complete sweep on a sample project, offline, in a few minutes", ("demo",)
    ),
    FirstRunView("s", "swarm-tui simulate", "Watch a simulated sweep: runs nothing and changes nothing", ("simulate",)),
    FirstRunView("c", "swarm-tui doctor", "Check the requirements of a sweep, and how to install them", ("doctor",)),
    FirstRunView(
        "", "swarm-tui run tests/", "Start a sweep over your tests: one agent per test, at most 4 at a time", ()
    ),
    FirstRunView("", "swarm-tui open FOLDER", "Open a sweep folder, for example one from another machine", ()),
)


def draw_first_run(cursor: int, width: int) -> tuple[list[Line], list[int]]:
    """Return the lines of the page, and the line number of each command."""
    lines: list[Line] = [[Span("swarm-tui", "strong"), Span("  one coding agent on every test", "dim")], ()]
    lines += [[Span(text)] for text in wrap_text("This repository has no sweep yet. From here you can:", width)]
    lines.append(())
    places = []
    for number, beginning in enumerate(BEGINNINGS):
        over = " line" if number == cursor else ""
        places.append(len(lines))
        lines.append(
            [Span(f" {beginning.key or ' '} ", f"key{over}"), Span(f" {beginning.command:22}", f"strong{over}")]
        )
        lines += [[Span(f"    {text}", "dim")] for text in wrap_text(beginning.text, max(10, width - 4))]
        lines.append(())
    lines.append([Span("Enter", "key"), Span(" runs it   "), Span("q", "key"), Span(" leaves")])
    return lines, places


class FirstRunApp(App[list[str]]):
    """Returns the arguments of the chosen command, or None."""

    CSS_PATH = "room.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "nothing", show=False, priority=True),
        Binding("ctrl+c", "leave", show=False, priority=True),
    ]

    def __init__(self, *, is_ascii: bool = False) -> None:
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") is not None else None)
        self.theme = first_theme(self)
        self.theme_styles = ThemeStyles(self, is_ascii)
        self.set_class(is_ascii, "-ascii")
        self.set_class(self.no_color, "-colourless")
        self.page = TextLines(id="list")
        self.place = 0

    def compose(self) -> ComposeResult:
        yield self.page

    def on_mount(self) -> None:
        leave_on_signals(self)
        self.page.focus()
        # The width of the page is known only after the first layout.
        self.call_after_refresh(self._draw)

    def on_lines_resized(self) -> None:
        self._draw()

    def _draw(self) -> None:
        lines, places = draw_first_run(self.place, max(20, self.page.size.width))
        self.page.title("Welcome")
        self.page.show(lines)
        self.page.show_line(places[self.place] + 1)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        keyed = next((entry for entry in BEGINNINGS if entry.key and entry.key == event.character), None)
        if keyed is not None:
            self._begin(keyed)
        elif event.key in ("down", "j"):
            self._move(1)
        elif event.key in ("up", "k"):
            self._move(-1)
        elif event.key == "enter":
            self._begin(BEGINNINGS[self.place])
        elif event.key == "q":
            self.exit([])

    def _move(self, step: int) -> None:
        self.place = max(0, min(len(BEGINNINGS) - 1, self.place + step))
        self._draw()

    def _begin(self, beginning: FirstRunView) -> None:
        if beginning.words:
            self.exit(list(beginning.words))
        else:
            self.page.title("Welcome", f"type it in your shell: {beginning.command}")

    def action_nothing(self) -> None:
        """Ignore ctrl+q: in an agent's tmux session it destroys the agent."""

    def action_leave(self) -> None:
        self.exit([])
