"""Choose, confirm, read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from swarm_tui.model.text import plain
from swarm_tui.room.actions import key_name
from swarm_tui.room.draw.spans import Line, Span, cut_line, cut_middle, pad_text, width_of, wrap_text
from swarm_tui.room.widgets.lines import Lines, TextLines

MOVES = {
    "up": -1, "k": -1, "ctrl+p": -1, "down": 1, "j": 1, "ctrl+n": 1, "pageup": -10, "pagedown": 10,
    "home": -100_000, "end": 100_000,
}  # fmt: skip
SHORTEST_TEXT = 24
"""Minimum width in cells for the text of an entry."""


class Choosable(NamedTuple):
    """One entry of a list."""

    value: str
    text: str
    detail: str = ""
    key: str = ""
    role: str = ""
    why_not: str = ""
    is_on: bool | None = None
    """For entries that can be switched on and off; None for others."""


Chosen = TypeVar("Chosen")


@runtime_checkable
class ShowsMessages(Protocol):
    """A screen that can show messages."""

    def show_message(self, text: str, level: str = "info") -> None: ...


class Dialog(ModalScreen[Chosen]):
    """One panel over another screen that returns an answer. It is drawn again if the size of the terminal changes."""

    AUTO_FOCUS = None
    WIDTH: ClassVar[int] = 72

    def __init__(self, title: str = "", *, has_cursor: bool = False) -> None:
        super().__init__()
        self._title = title
        self.panel = TextLines(id="dialog", has_cursor=has_cursor)

    def compose(self) -> ComposeResult:
        yield self.panel

    def draw(self) -> None:
        """Draw the panel's lines for the current size of the terminal."""

    def on_mount(self) -> None:
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        self.draw()

    def resize_panel(self, width: int, lines: int) -> None:
        """Set the width of the panel, and the height for this number of lines if the terminal is large enough."""
        across, down = self.app.size
        self.panel.styles.width = min(across, width)
        self.panel.styles.height = min(lines + 2, max(3, down - (2 if down > 16 else 0)))


def key_of(event: events.Key) -> str:
    """Return the character of a key, or the name of a key without one."""
    is_sign = event.is_printable and event.character not in (None, " ")
    return event.character if is_sign and event.character is not None else event.key


class PickScreen(Dialog[tuple[str, ...] | None]):
    """Returns the chosen value, or several if `is_many`. Returns None if nothing was chosen."""

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
            # Long names are cut in the middle, so that the note after them is visible too.
            width = min(width, max(SHORTEST_TEXT, self.app.size.width // 2))
        keyed = any(entry.key for entry in self.entries)
        lines: list[Line] = []
        for entry in self.entries:
            line = [Span(" ")]
            if self.is_many:
                line.append(Span("[x] " if entry.value in self.chosen else "[ ] ", "key"))
            if keyed:
                line.append(Span(f"{entry.key:2}", "key"))
            line.append(Span(pad_text(cut_middle(entry.text, width), width), "faint" if entry.why_not else entry.role))
            about = entry.why_not or entry.detail
            if about:
                line.append(Span(f"  {about}", "dim"))
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
            self.panel.title(self._title, f"no entry has the key {key_name(key)} · Esc closes")

    def _toggle(self) -> None:
        self.chosen ^= {self.entries[self.panel.cursor].value}
        self._draw_entries()

    def _choose(self, entry: Choosable) -> None:
        if entry.why_not:
            self.panel.title(self._title, entry.why_not)
        else:
            self.dismiss((entry.value,))

    def _choose_by_key(self, entry: Choosable) -> None:
        """Choose the entry of a key. A disabled entry closes the list, so that later keys are not lost here."""
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
    """Asks a question. Only `y` means yes; Enter is not an answer, so that a habit does not destroy anything."""

    def __init__(self, question: str, details: Iterable[str] = ()) -> None:
        super().__init__()
        self.question = question
        self.details = list(details)

    def draw(self) -> None:
        width = max(8, min(self.WIDTH, self.app.size.width) - 4)
        # On a small terminal the question is cut and the answers stay visible.
        height = self.app.size.height
        lines: list[Line] = [[Span(text, "strong")] for text in wrap_text(self.question, width, max(1, height - 4))]
        shown = self.details[: max(0, height - len(lines) - 8)]
        lines += [cut_line([Span(f"  {plain(detail, 300)}", "dim")], width) for detail in shown]
        if len(self.details) > len(shown):
            lines.append([Span(f"  … and {len(self.details) - len(shown):,} more", "dim")])
        lines += [()] if height > len(lines) + 4 else []
        lines.append([Span("y", "key"), Span(" yes   "), Span("n", "key"), Span(" no")])
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
    """Shows lines that are drawn for the width of the panel."""

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


class RefusedScreen(Dialog[None]):
    """Shows why an action is unavailable. Only Esc closes it."""

    def __init__(self, title: str, what: str, reason: str) -> None:
        super().__init__(title)
        self._what, self._reason = plain(what, 300), plain(reason, 300)

    def draw(self) -> None:
        width = max(8, min(self.WIDTH, self.app.size.width) - 4)
        lines: list[Line] = [[Span(row, "dim")] for row in wrap_text(self._what, width - 1, 2)]
        lines += [[Span(row, "warning")] for row in wrap_text(self._reason, width - 1, 3)]
        lines.append([Span("Esc", "key"), Span(" closes this", "dim")])
        self.resize_panel(width + 4, len(lines))
        self.panel.title(self._title)
        self.panel.show(lines)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        if event.key == "escape":
            self.dismiss(None)
        else:
            self.panel.title(self._title, "Esc closes")
