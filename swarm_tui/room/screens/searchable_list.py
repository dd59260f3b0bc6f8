"""Lists over another screen that narrow while one types: the help, and the palette of all commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Generic, NamedTuple, TypeVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from swarm_tui.model.requests import RequestKind
from swarm_tui.model.text import plain
from swarm_tui.room.actions import Action
from swarm_tui.room.draw.help import HelpEntry, draw_entry, draw_help, fitting_entries
from swarm_tui.room.draw.parts import Line, Part, cut_line, pad_text
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.screens.budget_commands import budget_command
from swarm_tui.room.screens.time_commands import time_command
from swarm_tui.room.widgets.lines import Lines, TextLines

Chosen = TypeVar("Chosen")

WIDTH = 108
"""As the style sheet has it."""
NAME_WIDTH = 16
MOVES = {"up": -1, "ctrl+p": -1, "down": 1, "ctrl+n": 1, "pageup": -10, "pagedown": 10}
Command = Callable[[], None]


class SearchedScreen(ModalScreen[Chosen | None], Generic[Chosen]):
    """Shows the lines that its subclass returns for what was typed."""

    AUTO_FOCUS = "Input"
    PLACEHOLDER: ClassVar[str] = ""
    HEADING: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.found = TextLines(id="found", has_cursor=True)
        self.words = Input(placeholder=self.placeholder, id="words", compact=True)
        self.words.cursor_blink = False

    @property
    def placeholder(self) -> str:
        """What stands where nothing is typed yet."""
        return self.PLACEHOLDER

    def compose(self) -> ComposeResult:
        with Vertical(id="searched"):
            yield self.words
            yield self.found

    def on_mount(self) -> None:
        self.found.can_focus = False
        self.search("")

    def on_resize(self, event: events.Resize) -> None:
        self._draw(self.words.value)

    def search(self, words: str) -> None:
        self.found.cursor = 0
        self._draw(words)
        self.found.scroll_rows(0)

    def _draw(self, words: str) -> None:
        self.found.show(self.lines_for(words, max(20, min(WIDTH, self.app.size.width) - 7)))
        self.found.redraw()
        self.found.title(self.HEADING, self.subtitle_for(words))

    def lines_for(self, words: str, width: int) -> list[Line]:
        return []

    def subtitle_for(self, words: str) -> str:
        return "Esc closes"

    def choose(self, index: int) -> None:
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


class HelpScreen(SearchedScreen[Action]):
    """Lists every action that works on the screen below."""

    PLACEHOLDER: ClassVar[str] = "type to search the keys"
    HEADING: ClassVar[str] = "Keys of this screen"

    def __init__(self, screen: RoomScreen) -> None:
        super().__init__()
        self.entries = [HelpEntry(action, screen.keys.keys(action), action.why_not()) for action in screen.listed]
        self.shown: list[HelpEntry] = []

    def lines_for(self, words: str, width: int) -> list[Line]:
        self.shown = fitting_entries(self.entries, words)
        return draw_help(self.shown, width)

    def subtitle_for(self, words: str) -> str:
        return f"{len(self.shown)} of {len(self.entries)} · Enter does it · Esc closes"

    def choose(self, index: int) -> None:
        self.dismiss(self.shown[index].action if index < len(self.shown) else None)


class PaletteEntry(NamedTuple):
    """One line of the palette."""

    line: Line
    run: Command


class PaletteScreen(SearchedScreen[Command]):
    """Returns what is to be done when it is closed."""

    HEADING: ClassVar[str] = "Everything"

    def __init__(self, screen: RoomScreen) -> None:
        self.below = screen
        self.entries: list[PaletteEntry] = []
        super().__init__()

    @property
    def placeholder(self) -> str:
        if self.below.store.is_watch:
            return "what to do; also: theme nord, go agent_name"
        return "what to do; also: slots 24, budget 40, at 12:04, theme nord, go test_name"

    def lines_for(self, words: str, width: int) -> list[Line]:
        entries = [
            HelpEntry(action, self.below.keys.keys(action), action.why_not())
            for action in self.below.listed
            if action.is_listed and action.id != "room.palette"
        ]
        self.entries = self._commands(words, width)
        for entry in fitting_entries(entries, words):
            self.entries.append(PaletteEntry(draw_entry(entry, width), partial(self.below.perform, entry.action)))
        return [entry.line for entry in self.entries]

    def subtitle_for(self, words: str) -> str:
        return f"{len(self.entries)} · Enter does it · Esc closes"

    def choose(self, index: int) -> None:
        self.dismiss(self.entries[index].run if index < len(self.entries) else None)

    def _commands(self, words: str, width: int) -> list[PaletteEntry]:
        command, _, rest = words.strip().partition(" ")
        rest = rest.strip()
        screen = self.below
        if screen.store.is_watch and command not in ("theme", "go"):
            return []
        if command == "slots" and rest.isascii() and rest.isdigit() and len(rest) < 5:
            slots = int(rest)
            set_slots = partial(screen.requests.send, RequestKind.SLOTS, slots=slots)
            return [_palette_entry(f"slots {slots}", f"Let {slots} agents work at once", width, set_slots)]
        if budget := budget_command(screen.requests, command, rest):
            return [_palette_entry(budget[0], budget[1], width, budget[2])]
        if moment := time_command(screen, command, rest):
            return [_palette_entry(moment[0], moment[1], width, moment[2])]
        if command == "theme":
            names = [name for name in sorted(screen.app.available_themes) if rest in name]
            return [
                _palette_entry(f"theme {name}", "", width, partial(setattr, screen.app, "theme", name))
                for name in names
            ]
        if command == "go" and rest:
            return self._tests_to_go_to(rest, width)
        return []

    def _tests_to_go_to(self, rest: str, width: int) -> list[PaletteEntry]:
        lowered = rest.casefold()
        tests = [test for test in self.below.store.state.records if lowered in test.casefold()][:50]
        return [
            _palette_entry("go", plain(test, 500), width, partial(self.below.room.show_test, test)) for test in tests
        ]


def _palette_entry(name: str, text: str, width: int, run: Command) -> PaletteEntry:
    column = max(NAME_WIDTH, cell_len(name) + 2)
    return PaletteEntry(cut_line([Part(pad_text(name, column), "key"), Part(text)], width), run)
