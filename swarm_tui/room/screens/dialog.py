"""The small screens that lie over another one: choose from a list, answer y or n, read. Escape chooses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from swarm_tui.model.text import plain
from swarm_tui.room.actions import key_name
from swarm_tui.room.draw.parts import Line, Part, cut_line, cut_middle, pad_text, width_of, wrap_text
from swarm_tui.room.widgets.lines import Lines, TextLines

MOVES = {
    "up": -1, "k": -1, "ctrl+p": -1, "down": 1, "j": 1, "ctrl+n": 1, "pageup": -10, "pagedown": 10,
    "home": -100_000, "end": 100_000,
}  # fmt: skip
SHORTEST_TEXT = 24
"""The text of an entry has as many cells, whatever else is said of it."""


class Choosable(NamedTuple):
    """One entry of a list to pick from."""

    value: str
    text: str
    detail: str = ""
    key: str = ""
    role: str = ""
    why_not: str = ""
    is_on: bool | None = None
    """For entries that are switched on and off; None for others."""


Chosen = TypeVar("Chosen")


@runtime_checkable
class ShowsMessages(Protocol):
    """A screen with a place for sentences."""

    def show_message(self, text: str, level: str = "info") -> None: ...


class Dialog(ModalScreen[Chosen]):
    """One panel over another screen; it returns an answer. It is drawn anew for every size of the terminal."""

    AUTO_FOCUS = None
    WIDTH: ClassVar[int] = 72

    def __init__(self, title: str = "", *, has_cursor: bool = False) -> None:
        super().__init__()
        self._title = title
        self.panel = TextLines(id="dialog", has_cursor=has_cursor)

    def compose(self) -> ComposeResult:
        yield self.panel

    def draw(self) -> None:
        """Show the panel's lines for the terminal's present size."""

    def on_mount(self) -> None:
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        self.draw()

    def resize_panel(self, width: int, lines: int) -> None:
        """Set the width of the panel, and a height for this many lines as far as the terminal allows."""
        across, down = self.app.size
        self.panel.styles.width = min(across, width)
        self.panel.styles.height = min(lines + 2, max(3, down - (2 if down > 16 else 0)))


def key_of(event: events.Key) -> str:
    """Return the character of a key, or the name of a key without one."""
    is_sign = event.is_printable and event.character not in (None, " ")
    return event.character if is_sign and event.character is not None else event.key


class PickScreen(Dialog[tuple[str, ...] | None]):
    """Returns the chosen value, or several when `is_many`; None when nothing was chosen."""

    def __init__(self, title: str, entries: Sequence[Choosable], *, is_many: bool = False, current: str = "") -> None:
        super().__init__(title, has_cursor=True)
        self.entries = list(entries)
        self.is_many = is_many
        self.chosen = {entry.value for entry in entries if entry.is_on}
        values = [entry.value for entry in entries]
        self.panel.cursor = values.index(current) if current in values else 0

    def draw(self) -> None:
        hint = "Esc closes · Enter shows · Space on/off" if self.is_many else "Esc closes · Enter picks"
        self.panel.title(self._title, hint)
        self._draw_entries()
        width = max(len(hint) + 8, len(self._title) + 8, *(width_of(line) + 6 for line in self.panel.lines))
        self.resize_panel(width, len(self.entries))
        self.panel.show_line(self.panel.cursor)

    def _draw_entries(self) -> None:
        width = max((cell_len(entry.text) for entry in self.entries), default=0)
        if any(entry.detail for entry in self.entries):
            # Of a long name both ends matter, and what is said of it is to be seen too.
            width = min(width, max(SHORTEST_TEXT, self.app.size.width // 2))
        keyed = any(entry.key for entry in self.entries)
        lines: list[Line] = []
        for entry in self.entries:
            line = [Part(" ")]
            if self.is_many:
                line.append(Part("[x] " if entry.value in self.chosen else "[ ] ", "key"))
            if keyed:
                line.append(Part(f"{entry.key:2}", "key"))
            line.append(Part(pad_text(cut_middle(entry.text, width), width), "faint" if entry.why_not else entry.role))
            about = entry.why_not or entry.detail
            if about:
                line.append(Part(f"  {about}", "dim"))
            lines.append(cut_line(line, max(SHORTEST_TEXT, self.app.size.width - 6)))
        self.panel.show(lines)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        key = key_of(event)
        keyed = next((entry for entry in self.entries if entry.key and entry.key == key), None)
        if keyed is not None and not self.is_many:
            self._choose_by_key(keyed)
        elif key in MOVES:
            self.panel.move(MOVES[key])
        elif key in ("escape", "q"):
            self.dismiss(None)
        elif key == "space" and self.is_many:
            self._toggle()
        elif key == "enter":
            if self.is_many:
                self.dismiss(tuple(entry.value for entry in self.entries if entry.value in self.chosen))
            elif self.entries:
                self._choose(self.entries[self.panel.cursor])
        else:
            self.panel.title(self._title, f"{key_name(key)} is none of these · Esc closes")

    def _toggle(self) -> None:
        self.chosen ^= {self.entries[self.panel.cursor].value}
        self._draw_entries()

    def _choose(self, entry: Choosable) -> None:
        if entry.why_not:
            self.panel.title(self._title, entry.why_not)
        else:
            self.dismiss((entry.value,))

    def _choose_by_key(self, entry: Choosable) -> None:
        """Choose the entry of a key; one that cannot be chosen closes the list, so that no later key gets lost here."""
        if entry.why_not:
            self.dismiss(None)
            if isinstance(self.app.screen, ShowsMessages):
                self.app.screen.show_message(f"{entry.text}: {entry.why_not}", "warning")
        else:
            self.dismiss((entry.value,))

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        if self.is_many:
            self._toggle()
        else:
            self._choose(self.entries[self.panel.cursor])


class ConfirmScreen(Dialog[bool]):
    """Asks a question to which only `y` is a yes; Enter is no answer, so that no habit destroys anything."""

    def __init__(self, question: str, details: Iterable[str] = ()) -> None:
        super().__init__()
        self.question = question
        self.details = list(details)

    def draw(self) -> None:
        width = max(8, min(self.WIDTH, self.app.size.width) - 4)
        # The answers stay in view on the smallest terminal: the question gives way before them.
        height = self.app.size.height
        lines: list[Line] = [[Part(text, "strong")] for text in wrap_text(self.question, width, max(1, height - 4))]
        shown = self.details[: max(0, height - len(lines) - 8)]
        lines += [cut_line([Part(f"  {plain(detail, 300)}", "dim")], width) for detail in shown]
        if len(self.details) > len(shown):
            lines.append([Part(f"  … and {len(self.details) - len(shown):,} more", "dim")])
        lines += [()] if height > len(lines) + 4 else []
        lines.append([Part("y", "key"), Part(" yes   "), Part("n", "key"), Part(" no")])
        self.panel.styles.width = width + 4
        self.panel.styles.height = len(lines) + 2
        self.panel.show(lines)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        if event.character in ("y", "Y"):
            self.dismiss(True)
        elif event.character in ("n", "N", "q") or event.key == "escape":
            self.dismiss(False)
        else:
            self.panel.title("", "y or n")


class ReadingScreen(Dialog[None]):
    """Shows lines that are drawn for the width they get."""

    WIDTH = 110

    def __init__(self, title: str, draw: Callable[[int], Sequence[Line]]) -> None:
        super().__init__(title)
        self._draw_lines = draw

    def draw(self) -> None:
        width = min(self.WIDTH, self.app.size.width)
        lines = list(self._draw_lines(max(8, width - 4)))
        self.resize_panel(width, len(lines))
        self.panel.title(self._title, "Esc closes")
        self.panel.show(lines)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        key = key_of(event)
        if key in MOVES:
            self.panel.move(MOVES[key])
        elif key in ("escape", "q", "enter"):
            self.dismiss(None)
