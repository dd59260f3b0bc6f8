"""The small screens that lie over another one: pick from a list, answer y or n. Escape takes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
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


class Picker(TextLines):
    """The list of a pick screen."""


class PickScreen(ModalScreen[tuple[str, ...] | None]):
    """Returns the value picked, or several when `is_many`; None when nothing was."""

    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = None

    def __init__(self, title: str, entries: Sequence[Choosable], *, is_many: bool = False, current: str = "") -> None:
        super().__init__()
        self.entries = list(entries)
        self.is_many = is_many
        self.chosen = {entry.value for entry in entries if entry.is_on}
        self.picker = Picker(id="dialog", has_cursor=True)
        self._title = title
        values = [entry.value for entry in entries]
        self.picker.cursor = values.index(current) if current in values else 0

    def compose(self) -> ComposeResult:
        yield self.picker

    def on_mount(self) -> None:
        hint = "Space on/off · Enter done · Esc closes" if self.is_many else "Enter picks · Esc closes"
        self.picker.title(self._title, hint)
        self._draw()
        self.picker.styles.height = min(len(self.entries), max(3, self.app.size.height - 4)) + 2
        self.picker.styles.width = min(
            self.app.size.width, max(len(hint) + 8, *(width_of(line) + 6 for line in self.picker.lines))
        )
        self.picker.show_line(self.picker.cursor)

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
        self.picker.show(lines)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        key = event.character if event.is_printable and event.character not in (None, " ") else event.key
        keyed = next((entry for entry in self.entries if entry.key and entry.key == key), None)
        if keyed is not None and not self.is_many:
            self._take(keyed)
        elif key in MOVES:
            self.picker.move(MOVES[key])
        elif key in ("escape", "q"):
            self.dismiss(None)
        elif key == "space" and self.is_many:
            self._toggle()
        elif key == "enter":
            if self.is_many:
                self.dismiss(tuple(entry.value for entry in self.entries if entry.value in self.chosen))
            elif self.entries:
                self._take(self.entries[self.picker.cursor])

    def _toggle(self) -> None:
        self.chosen ^= {self.entries[self.picker.cursor].value}
        self._draw()

    def _take(self, entry: Choosable) -> None:
        if entry.why_not:
            self.picker.title(self._title, entry.why_not)
        else:
            self.dismiss((entry.value,))

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        if self.is_many:
            self._toggle()
        else:
            self._take(self.entries[self.picker.cursor])


class ConfirmScreen(ModalScreen[bool]):
    """Asks a question that only `y` says yes to; Enter says nothing, so that no habit destroys anything."""

    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = None
    WIDTH: ClassVar[int] = 72

    def __init__(self, question: str, details: Iterable[str] = ()) -> None:
        super().__init__()
        self.question = question
        self.details = list(details)
        self.panel = TextLines(id="dialog")

    def compose(self) -> ComposeResult:
        yield self.panel

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
