"""What the room shows where there is no sweep yet: what can be done here, one key each; never an empty grid."""

from __future__ import annotations

import os
from typing import ClassVar, Final, NamedTuple

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from swarm_tui.room.colours import ThemeStyles
from swarm_tui.room.draw.parts import Line, Part, wrap_text
from swarm_tui.room.settings import first_theme
from swarm_tui.room.suspend import leave_on_signals
from swarm_tui.room.widgets.lines import TextLines


class Beginning(NamedTuple):
    """One way to begin."""

    key: str
    command: str
    text: str
    words: tuple[str, ...]
    """The command that is run; without one it can only be shown."""


BEGINNINGS: Final = (
    Beginning("d", "swarm-tui demo", "Play a whole sweep on a packaged sample, offline, in a few minutes", ("demo",)),
    Beginning("s", "swarm-tui simulate", "Watch a simulated sweep: nothing is run, nothing is changed", ("simulate",)),
    Beginning("c", "swarm-tui doctor", "See what is here of what a sweep needs, and how to get the rest", ("doctor",)),
    Beginning("", "swarm-tui run tests/", "Start a sweep over your tests: one agent each, at most 4 at once", ()),
    Beginning("", "swarm-tui open FOLDER", "Open a sweep folder from elsewhere, also from another machine", ()),
)


def draw_first_run(cursor: int, width: int) -> tuple[list[Line], list[int]]:
    """Return the lines of the page, and the line of each beginning."""
    lines: list[Line] = [[Part("swarm-tui", "strong"), Part("  one coding agent on every test", "dim")], ()]
    lines += [[Part(text)] for text in wrap_text("There is no sweep in this folder yet. From here you can:", width)]
    lines.append(())
    places = []
    for number, beginning in enumerate(BEGINNINGS):
        over = " line" if number == cursor else ""
        places.append(len(lines))
        lines.append(
            [Part(f" {beginning.key or ' '} ", f"key{over}"), Part(f" {beginning.command:22}", f"strong{over}")]
        )
        lines += [[Part(f"    {text}", "dim")] for text in wrap_text(beginning.text, max(10, width - 4))]
        lines.append(())
    lines.append([Part("Enter", "key"), Part(" does it   "), Part("q", "key"), Part(" leaves")])
    return lines, places


class FirstRunApp(App[list[str]]):
    """Returns the words of the command that was chosen, or None."""

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
        # Only after the first layout is it known how wide the page is.
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

    def _begin(self, beginning: Beginning) -> None:
        if beginning.words:
            self.exit(list(beginning.words))
        else:
            self.page.title("Welcome", f"type it in your shell: {beginning.command}")

    def action_nothing(self) -> None:
        """ctrl+q is no way out: in an agent's tmux it destroys the agent."""

    def action_leave(self) -> None:
        self.exit([])
