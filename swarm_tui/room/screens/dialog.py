"""The small screens that lie over another one: choose from a list, answer y or n, read. Escape chooses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from swarm_tui.model.text import plain
from swarm_tui.room.draw.parts import Line, Part, cut_line, pad_text, width_of, wrap_text
from swarm_tui.room.widgets.lines import Lines, TextLines

MOVES = {
    "up": -1, "k": -1, "ctrl+p": -1, "down": 1, "j": 1, "ctrl+n": 1, "pageup": -10, "pagedown": 10,
    "home": -100_000, "end": 100_000,
}  # fmt: skip


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


class Dialog(ModalScreen[Chosen]):
    """One panel over another screen; it returns an answer."""

    AUTO_FOCUS = None
    WIDTH: ClassVar[int] = 72

    def __init__(self, title: str = "", *, has_cursor: bool = False) -> None:
        super().__init__()
        self._title = title
        self.panel = TextLines(id="dialog", has_cursor=has_cursor)

    def compose(self) -> ComposeResult:
        yield self.panel

    def resize_panel(self, width: int, lines: int) -> None:
        """Set the width of the panel, and a height for this many lines as far as the terminal allows."""
        self.panel.styles.width = min(self.app.size.width, width)
        self.panel.styles.height = min(lines, max(3, self.app.size.height - 4)) + 2


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

    def on_mount(self) -> None:
        hint = "Space on/off · Enter done · Esc closes" if self.is_many else "Enter picks · Esc closes"
        self.panel.title(self._title, hint)
        self._draw()
        width = max(len(hint) + 8, *(width_of(line) + 6 for line in self.panel.lines))
        self.resize_panel(width, len(self.entries))
        self.panel.show_line(self.panel.cursor)

    def _draw(self) -> None:
        width = max((len(entry.text) for entry in self.entries), default=0)
        keyed = any(entry.key for entry in self.entries)
        lines: list[Line] = []
        for entry in self.entries:
            line = [Part(" ")]
            if self.is_many:
                line.append(Part("[x] " if entry.value in self.chosen else "[ ] ", "key"))
            if keyed:
                line.append(Part(f"{entry.key:2}", "key"))
            line.append(Part(pad_text(entry.text, width), "faint" if entry.why_not else entry.role))
            about = entry.why_not or entry.detail
            if about:
                line.append(Part(f"  {about}", "dim"))
            lines.append(line)
        self.panel.show(lines)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        key = key_of(event)
        keyed = next((entry for entry in self.entries if entry.key and entry.key == key), None)
        if keyed is not None and not self.is_many:
            self._choose(keyed)
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

    def _toggle(self) -> None:
        self.chosen ^= {self.entries[self.panel.cursor].value}
        self._draw()

    def _choose(self, entry: Choosable) -> None:
        if entry.why_not:
            self.panel.title(self._title, entry.why_not)
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

    def on_mount(self) -> None:
        width = min(self.WIDTH, self.app.size.width) - 4
        lines: list[Line] = [[Part(text, "strong")] for text in wrap_text(self.question, width)]
        shown = self.details[: max(1, self.app.size.height - len(lines) - 8)]
        lines += [cut_line([Part(f"  {plain(detail, 300)}", "dim")], width) for detail in shown]
        if len(self.details) > len(shown):
            lines.append([Part(f"  … and {len(self.details) - len(shown):,} more", "dim")])
        lines += [(), [Part("y", "key"), Part(" yes   "), Part("n", "key"), Part(" no")]]
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
        self._draw = draw

    def on_mount(self) -> None:
        width = min(self.WIDTH, self.app.size.width)
        lines = list(self._draw(width - 4))
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
