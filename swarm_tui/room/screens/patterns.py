"""Screen 4: what fails alike, with what the tests share, and actions on all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.containers import Container
from textual.widget import Widget

from swarm_tui.insight.patterns import Pattern
from swarm_tui.room.draw.arrange import fits_words
from swarm_tui.room.draw.patterns import draw_pattern_detail, draw_pattern_row
from swarm_tui.room.screens.asking import ask_about
from swarm_tui.room.screens.base import NOTHING, RoomScreen
from swarm_tui.room.store import Changes
from swarm_tui.room.widgets.lines import Lines, TextLines


class PatternsScreen(RoomScreen):
    """The patterns, the largest first."""

    NAME = "patterns"
    TITLE_WORD = "patterns"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.rows = TextLines(id="list", has_cursor=True)
        self.rows.add_class("main")
        self.detail = TextLines(id="detail")
        self.patterns: list[Pattern] = []
        self.words = ""

    def compose_body(self) -> Iterable[Widget]:
        yield Container(self.rows, self.detail, id="body")

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.words

    def set_filter(self, words: str) -> None:
        self.words = words
        self.take_in(NOTHING)

    def current(self) -> Pattern | None:
        """Give the pattern under the cursor."""
        return self.patterns[self.rows.cursor] if self.rows.cursor < len(self.patterns) else None

    def show_changes(self, changes: Changes) -> None:
        was = self.current()
        every = self.store.patterns()
        self.patterns = [pattern for pattern in every if self._fits(pattern)]
        causes = [pattern.cause for pattern in self.patterns]
        if was is not None and was.cause in causes and self.rows.cursor != causes.index(was.cause):
            self.rows.cursor = causes.index(was.cause)
            self.rows.redraw()
        width = max(20, self.rows.text_width)
        self.rows.show([draw_pattern_row(pattern, width) for pattern in self.patterns])
        title = f"Patterns {len(every):,}" + (f" · {len(self.patterns):,} match /{self.words}" if self.words else "")
        self.rows.title(title, f"{self.rows.cursor + 1:,} of {len(self.patterns):,}" if self.patterns else "")
        self._draw_detail()

    def _fits(self, pattern: Pattern) -> bool:
        return not self.words or fits_words(self.words, " ".join((pattern.cause, *pattern.tests)))

    def _draw_detail(self) -> None:
        pattern = self.current()
        if pattern is None:
            self.detail.title("")
            self.detail.show([])
            return
        self.detail.title(f"{len(pattern.tests):,} {pattern.kind} alike")
        records = [record for test in pattern.tests if (record := self.store.record(test)) is not None]
        self.detail.show(draw_pattern_detail(pattern, records, max(20, self.detail.text_width)))

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self.detail.scroll_rows(0)
        self.take_in(NOTHING)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        if not self.why_not_open():
            self.do_open()

    def current_tests(self) -> tuple[str, ...]:
        pattern = self.current()
        return pattern.tests if pattern is not None else ()

    def name_to_copy(self) -> str:
        pattern = self.current()
        return pattern.example if pattern is not None else ""

    def why_not_open(self) -> str:
        return "" if self.current() is not None else "there is no pattern under the cursor"

    def do_open(self) -> None:
        pattern = self.current()
        if pattern is not None:
            self.room.show_only(pattern.tests, f"these {len(pattern.tests)} alike")

    why_not_act = why_not_open
    why_not_mark = why_not_open

    def do_act(self) -> None:
        ask_about(self, self.current_tests())

    def do_mark(self) -> None:
        tests = frozenset(self.current_tests())
        marks = self.room.marks
        self.room.marks = marks.changed_to(marks.tests - tests if tests <= marks.tests else marks.tests | tests)
        self.say(f"{len(self.room.marks.tests):,} tests are marked in the grid; z undoes")
