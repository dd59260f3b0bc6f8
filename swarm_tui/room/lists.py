"""Help, palette and the typed filter."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.text import plain
from swarm_tui.room.actions import Action, key_name
from swarm_tui.room.draw.spans import Line, Span, cut_line, pad_text
from swarm_tui.room.engine_requests import ask_request, budget_command, requests_in, send_request
from swarm_tui.room.time_travel import time_command
from swarm_tui.room.widgets.lines import Lines, TextLines

if TYPE_CHECKING:
    from swarm_tui.room.screen import RoomScreen


KEYS_WIDTH = 14
WIDTH = 108
"""The same width as in the style sheet."""
NAME_WIDTH = 16
MOVES = {"up": -1, "ctrl+p": -1, "down": 1, "ctrl+n": 1, "pageup": -10, "pagedown": 10}
Command = Callable[[], None]


class FoundEntry(NamedTuple):
    """A line of a list, and what Enter runs on it."""

    line: Line
    run: Command


class SearchedScreen(ModalScreen[Command | None]):
    """Lists entries for the typed text. Returns the command of the chosen one."""

    AUTO_FOCUS = "Input"
    HEADING: ClassVar[str] = ""

    def __init__(self, below: RoomScreen, placeholder: str) -> None:
        super().__init__()
        self.below = below
        self.entries: list[FoundEntry] = []
        self.found = TextLines(id="found", has_cursor=True)
        self.words = Input(placeholder=placeholder, id="words", compact=True)
        self.words.cursor_blink = False

    @abstractmethod
    def find(self, words: str, width: int) -> list[FoundEntry]:
        """Return the entries for a text."""

    @property
    def count(self) -> str:
        return str(len(self.entries))

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
        self.entries = self.find(words, max(20, min(WIDTH, self.app.size.width) - 7))
        self.found.show([entry.line for entry in self.entries])
        self.found.redraw()
        self.found.title(self.HEADING, f"{self.count} · Enter runs it · Esc closes")

    def fitting_actions(self, words: str) -> list[Action]:
        """Return the actions of the screen below that have all of the words in their keys, name or description."""
        terms = words.casefold().split()
        return [each for each in self.below.listed if all(word in self._searched_text(each) for word in terms)]

    def _searched_text(self, action: Action) -> str:
        keys = " ".join(f"{key} {key_name(key)}" for key in self.below.keys.keys(action))
        return f"{keys} {action.id} {action.label} {action.description}".casefold()

    def entry_of(self, action: Action, width: int) -> FoundEntry:
        """Return the entry of an action: keys, description, reason why it is unavailable, and name for the config."""
        why_not = action.why_not()
        keys = " ".join(key_name(key) for key in self.below.keys.keys(action))
        name_width = 21 if width >= 80 else 0
        text = f"{action.description} ({why_not})" if why_not else action.description
        room = max(10, width - KEYS_WIDTH - name_width - (2 if name_width else 0))
        line = [
            Span(pad_text(keys, KEYS_WIDTH), "faint" if why_not else "key"),
            Span(pad_text(text, room), "faint" if why_not else ""),
            Span(f"  {action.id}" if name_width else "", "faint"),
        ]
        return FoundEntry(cut_line(line, width), partial(self.below.perform, action))

    def choose(self) -> None:
        place = self.found.cursor
        self.dismiss(self.entries[place].run if place < len(self.entries) else None)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.choose()

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
        self.choose()


class HelpScreen(SearchedScreen):
    """Lists every action that works on the screen below."""

    HEADING = "Keys of this screen"

    def __init__(self, below: RoomScreen) -> None:
        super().__init__(below, "type to search the keys")

    def find(self, words: str, width: int) -> list[FoundEntry]:
        return [self.entry_of(action, width) for action in self.fitting_actions(words)]

    @property
    def count(self) -> str:
        return f"{len(self.entries)} of {len(self.below.listed)}"


class PaletteScreen(SearchedScreen):
    """Lists actions and commands such as `slots 24`."""

    HEADING = "Everything"

    def __init__(self, below: RoomScreen) -> None:
        of_sweep = "slots 24, budget 40, at 12:04, theme nord, go test_name"
        also = "theme nord, go agent_name" if below.store.is_watch else of_sweep
        super().__init__(below, f"search commands; also: {also}")

    def find(self, words: str, width: int) -> list[FoundEntry]:
        """Return the commands, then the actions. Those that begin with the first word come first."""
        first = next(iter(words.casefold().split()), "")
        actions = [each for each in self.fitting_actions(words) if each.is_listed and each.id != "room.palette"]
        actions.sort(key=lambda action: not first or not self._begins_with(action, first))
        return [*self._commands(words, width), *(self.entry_of(action, width) for action in actions)]

    def _begins_with(self, action: Action, word: str) -> bool:
        name = action.id.partition(".")[2].replace("_", " ")
        texts = (name, action.label, *self.below.keys.keys(action))
        return any(text.casefold().startswith(word) for text in texts)

    def _commands(self, words: str, width: int) -> list[FoundEntry]:
        command, _, rest = words.strip().partition(" ")
        rest = rest.strip()
        screen = self.below
        request = next((each for each in requests_in(screen.store) if each.text == command), None)
        if request is not None and not rest:
            text = f"{request.text.capitalize()} the marked tests, or the one under the cursor: {request.detail}"
            return [_palette_entry(request.text, text, width, partial(ask_request, screen, request))]
        if screen.store.is_watch and command not in ("theme", "go"):
            return []
        if command == "slots" and rest.isascii() and rest.isdigit() and len(rest) < 5:
            slots = int(rest)
            set_slots = partial(send_request, screen, RequestKind.SLOTS, slots=slots)
            return [_palette_entry(f"slots {slots}", f"Run up to {slots} agents at the same time", width, set_slots)]
        if budget := budget_command(command, rest):
            kind, dollars, meaning = budget
            send = partial(send_request, screen, kind, dollars=dollars)
            return [_palette_entry(f"{command} {rest}", meaning, width, send)]
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

    def _tests_to_go_to(self, rest: str, width: int) -> list[FoundEntry]:
        lowered = rest.casefold()
        tests = [test for test in self.below.store.state.records if lowered in test.casefold()][:50]
        return [
            _palette_entry("go", plain(test, 500), width, partial(self.below.room.show_test, test)) for test in tests
        ]


def _palette_entry(name: str, text: str, width: int, run: Command) -> FoundEntry:
    column = max(NAME_WIDTH, cell_len(name) + 2)
    return FoundEntry(cut_line([Span(pad_text(name, column), "key"), Span(text)], width), run)


class FilterLine(Input):
    """Enter keeps the filter. Escape clears it and returns to the previous position."""

    def __init__(self, screen: RoomScreen) -> None:
        # Has no id: Textual removes widgets later, and the next filter line may exist before that.
        super().__init__(value=screen.filter_words, placeholder="filter (!word excludes) · Enter keeps · Esc clears")
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
            # Otherwise another widget already has the focus, such as the next filter line.
            self._owner.focus_main()
        # A pending callback of Textual would keep this line and its parents in memory.
        self._owner.text_selection_started_signal.unsubscribe(self)
        self.remove()
        self._owner.draw_frame()
