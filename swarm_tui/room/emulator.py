"""Terminal emulator: pyte with corrections where its screen differs from that of tmux.

Corrections: SU and SD (scroll) and REP (repeat), which tmux sends and pyte ignores (pyte #186, #103); private sequences
that pyte confuses with others; switching between 80 and 132 columns; limits for repeat counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import pyte
from pyte.screens import Char
from rich.color import Color, ColorParseError
from rich.segment import Segment
from rich.style import Style

_DECCOLM: Final = 3
_APPLICATION_CURSOR: Final = 1 << 5
_BRACKETED_PASTE: Final = 2004 << 5
_COLOURS: Final = {"brown": "yellow", "brightbrown": "bright_yellow"}


class _Screen(pyte.Screen):
    """pyte's screen with the missing sequences."""

    last = " "
    reply: Callable[[str], None] | None = None

    def scroll_up(self, count: int | None = None) -> None:
        bottom = self.margins.bottom if self.margins else self.lines - 1
        self._scroll_at(bottom, self.index, count)

    def scroll_down(self, count: int | None = None) -> None:
        top = self.margins.top if self.margins else 0
        self._scroll_at(top, self.reverse_index, count)

    def _scroll_at(self, row: int, scroll: Callable[[], None], count: int | None) -> None:
        column, line = self.cursor.x, self.cursor.y
        self.cursor.y = row
        for _ in range(min(count or 1, self.lines)):
            scroll()
        self.cursor.x, self.cursor.y = column, line

    def draw(self, data: str) -> None:
        self.last = data[-1:] or self.last
        super().draw(data)

    def repeat(self, count: int | None = None) -> None:
        self.draw(self.last * min(count or 1, self.columns * self.lines))

    def set_mode(self, *modes: int, **options: Any) -> None:
        kept = [mode for mode in modes if mode != _DECCOLM]
        if kept:
            super().set_mode(*kept, **options)

    def reset_mode(self, *modes: int, **options: Any) -> None:
        kept = [mode for mode in modes if mode != _DECCOLM]
        if kept:
            super().reset_mode(*kept, **options)

    def write_process_input(self, data: str) -> None:
        if self.reply is not None:
            self.reply(data)


class _Listener:
    """Forwards the parser's calls to the screen and ignores calls that raise an error."""

    def __init__(self, screen: _Screen) -> None:
        self._screen = screen

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._screen, name)
        if not callable(method):
            return method

        def call(*arguments: Any, **options: Any) -> Any:
            if options.pop("private", False):
                if name not in ("set_mode", "reset_mode"):
                    return None
                options["private"] = True
            try:
                return method(*arguments, **options)
            except Exception:
                # pyte raises many types of errors for malformed sequences, even UnboundLocalError. Continue reading.
                return None

        return call


class _Stream(pyte.ByteStream):
    csi: dict[str, str] = pyte.ByteStream.csi | {"S": "scroll_up", "T": "scroll_down", "b": "repeat"}
    events: frozenset[str] = pyte.ByteStream.events | {"scroll_up", "scroll_down", "repeat"}


class Emulator:
    def __init__(self, rows: int, columns: int, reply: Callable[[bytes], None] | None = None) -> None:
        self._screen = _Screen(columns, rows)
        if reply is not None:
            self._screen.reply = lambda text: reply(text.encode())
        self._stream = _Stream(_Listener(self._screen), strict=False)

    @property
    def rows(self) -> int:
        return int(self._screen.lines)

    @property
    def columns(self) -> int:
        return int(self._screen.columns)

    @property
    def cursor(self) -> tuple[int, int] | None:
        """Row and column of the cursor; None while it is hidden."""
        cursor = self._screen.cursor
        return None if cursor.hidden else (cursor.y, min(cursor.x, self.columns - 1))

    @property
    def has_application_cursor(self) -> bool:
        return _APPLICATION_CURSOR in self._screen.mode

    @property
    def has_bracketed_paste(self) -> bool:
        return _BRACKETED_PASTE in self._screen.mode

    def feed(self, content: bytes) -> set[int]:
        """Process output. Return the changed rows, including the old and the new row of the cursor."""
        before = self._screen.cursor.y
        self._stream.feed(content)
        changed = {row for row in self._screen.dirty if row < self.rows} | {before, self._screen.cursor.y}
        self._screen.dirty.clear()
        return changed

    def resize(self, rows: int, columns: int) -> None:
        self._screen.resize(rows, columns)

    def text(self) -> list[str]:
        return [
            "".join(segment.text for segment in self.row(row, has_cursor=False)).rstrip() for row in range(self.rows)
        ]

    def row(self, number: int, *, has_cursor: bool = True) -> list[Segment]:
        cells = self._screen.buffer[number]
        at = self.cursor if has_cursor else None
        segments: list[Segment] = []
        run, style = "", None
        for column in range(self.columns):
            cell = cells[column]
            own = _style(cell._replace(data=""))
            if at == (number, column):
                own += Style(reverse=not own.reverse)
            if own is not style and own != style:
                if run:
                    segments.append(Segment(run, style))
                run, style = "", own
            run += cell.data
        segments.append(Segment(run, style))
        return segments


@lru_cache(maxsize=1024)
def _style(cell: Char) -> Style:
    return Style(
        color=_colour(cell.fg),
        bgcolor=_colour(cell.bg),
        bold=cell.bold or None,
        italic=cell.italics or None,
        underline=cell.underscore or None,
        strike=cell.strikethrough or None,
        reverse=cell.reverse or None,
        blink=cell.blink or None,
    )


def _colour(name: str) -> Color | None:
    if name == "default":
        return None
    try:
        if len(name) == 6 and all(digit in "0123456789abcdefABCDEF" for digit in name):
            return Color.parse(f"#{name}")
        return Color.parse(_COLOURS.get(name, name.replace("bright", "bright_")))
    except ColorParseError:
        return None
