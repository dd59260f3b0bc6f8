"""Help, palette and the typed filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

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


class HelpEntry(NamedTuple):
    """An action with its keys on one screen."""

    action: Action
    keys: tuple[str, ...]
    why_not: str = ""


def fitting_entries(entries: Iterable[HelpEntry], words: str) -> list[HelpEntry]:
    """Return the entries that have all of the words in their keys, name or description."""
    terms = words.casefold().split()
    return [entry for entry in entries if all(word in _searched(entry) for word in terms)]


def ranked_entries(entries: Iterable[HelpEntry], words: str) -> list[HelpEntry]:
    """Return the entries that have all of the words. Names and labels that begin with the first word come first."""
    first = next(iter(words.casefold().split()), "")
    return sorted(fitting_entries(entries, words), key=lambda entry: not first or not _begins_with(entry, first))


def _begins_with(entry: HelpEntry, word: str) -> bool:
    name = entry.action.id.partition(".")[2].replace("_", " ")
    return any(text.casefold().startswith(word) for text in (name, entry.action.label, *entry.keys))


def _searched(entry: HelpEntry) -> str:
    keys = " ".join(f"{key} {key_name(key)}" for key in entry.keys)
    return f"{keys} {entry.action.id} {entry.action.label} {entry.action.description}".casefold()


def draw_help(entries: Sequence[HelpEntry], width: int) -> list[Line]:
    """Return a line for each entry: keys, description, and name for the config file."""
    return [draw_entry(entry, width) for entry in entries]


def draw_entry(entry: HelpEntry, width: int) -> Line:
    """Return the line of an entry. An unavailable action has the reason in its line."""
    keys = " ".join(key_name(key) for key in entry.keys)
    name_width = 21 if width >= 80 else 0
    text = f"{entry.action.description}" + (f" ({entry.why_not})" if entry.why_not else "")
    room = max(10, width - KEYS_WIDTH - name_width - (2 if name_width else 0))
    line = [
        Span(pad_text(keys, KEYS_WIDTH), "faint" if entry.why_not else "key"),
        Span(pad_text(text, room), "faint" if entry.why_not else ""),
    ]
    if name_width:
        line.append(Span(f"  {entry.action.id}", "faint"))
    return cut_line(line, width)


Chosen = TypeVar("Chosen")

WIDTH = 108
"""The same width as in the style sheet."""
NAME_WIDTH = 16
MOVES = {"up": -1, "ctrl+p": -1, "down": 1, "ctrl+n": 1, "pageup": -10, "pagedown": 10}
Command = Callable[[], None]


class SearchedScreen(ModalScreen[Chosen | None], Generic[Chosen]):
    """Shows the lines that a subclass returns for the typed text."""

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
        """Text shown while nothing is typed."""
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
        return f"{len(self.shown)} of {len(self.entries)} · Enter runs it · Esc closes"

    def choose(self, index: int) -> None:
        self.dismiss(self.shown[index].action if index < len(self.shown) else None)


class PaletteEntry(NamedTuple):
    line: Line
    run: Command


class PaletteScreen(SearchedScreen[Command]):
    """Returns the command to run after it is closed."""

    HEADING: ClassVar[str] = "Everything"

    def __init__(self, screen: RoomScreen) -> None:
        self.below = screen
        self.entries: list[PaletteEntry] = []
        super().__init__()

    @property
    def placeholder(self) -> str:
        if self.below.store.is_watch:
            return "search commands; also: theme nord, go agent_name"
        return "search commands; also: slots 24, budget 40, at 12:04, theme nord, go test_name"

    def lines_for(self, words: str, width: int) -> list[Line]:
        entries = [
            HelpEntry(action, self.below.keys.keys(action), action.why_not())
            for action in self.below.listed
            if action.is_listed and action.id != "room.palette"
        ]
        self.entries = self._commands(words, width)
        for entry in ranked_entries(entries, words):
            self.entries.append(PaletteEntry(draw_entry(entry, width), partial(self.below.perform, entry.action)))
        return [entry.line for entry in self.entries]

    def subtitle_for(self, words: str) -> str:
        return f"{len(self.entries)} · Enter runs it · Esc closes"

    def choose(self, index: int) -> None:
        self.dismiss(self.entries[index].run if index < len(self.entries) else None)

    def _commands(self, words: str, width: int) -> list[PaletteEntry]:
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

    def _tests_to_go_to(self, rest: str, width: int) -> list[PaletteEntry]:
        lowered = rest.casefold()
        tests = [test for test in self.below.store.state.records if lowered in test.casefold()][:50]
        return [
            _palette_entry("go", plain(test, 500), width, partial(self.below.room.show_test, test)) for test in tests
        ]


def _palette_entry(name: str, text: str, width: int, run: Command) -> PaletteEntry:
    column = max(NAME_WIDTH, cell_len(name) + 2)
    return PaletteEntry(cut_line([Span(pad_text(name, column), "key"), Span(text)], width), run)


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
