"""Screen 7: what all marked or shown agents write, as one stream; what many say alike is one line."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import ClassVar, Final

from textual.widget import Widget

from swarm_tui.model.states import State
from swarm_tui.room.draw.cells import short_name
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.draw.tail import draw_tail_line
from swarm_tui.room.draw.words import counted
from swarm_tui.room.screens.base import NOTHING, RoomScreen
from swarm_tui.room.store import Changes
from swarm_tui.room.widgets.lines import Lines
from swarm_tui.transcripts.choice import Choice
from swarm_tui.transcripts.locate import find_transcript
from swarm_tui.transcripts.merged import Folded, MergedTail
from swarm_tui.transcripts.window import FileSource

POLL_SECONDS: Final = 0.2
AGENTS_AT_MOST: Final = 300
"""Each has a file open."""


class TailLines(Lines):
    """The lines of the stream."""

    def __init__(self) -> None:
        super().__init__(id="list")
        self.shown: list[Folded] = []
        self.names: dict[str, str] = {}
        self.is_following = True

    def line_count(self) -> int:
        return len(self.shown)

    def draw_line(self, index: int, width: int) -> Line:
        folded = self.shown[index]
        return draw_tail_line(folded, self.names.get(folded.item.who, ""), width)

    def move(self, rows: int, columns: int = 0) -> None:
        super().move(rows, columns)
        if rows < 0:
            self.is_following = False
        elif self.cursor == len(self.shown) - 1:
            self.is_following = True


class TailScreen(RoomScreen):
    """The merged tail."""

    NAME = "tail"
    TITLE_WORD = "tail"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.lines = TailLines()
        self.lines.add_class("main")
        self._tail: MergedTail | None = None
        self._tests: tuple[str, ...] = ()
        self._left_out = 0
        self._words = ""
        self._is_errors_only = False

    def compose_body(self) -> Iterable[Widget]:
        yield self.lines

    def on_mount(self) -> None:
        self.set_interval(POLL_SECONDS, self._poll)

    def on_unmount(self) -> None:
        if self._tail is not None:
            self._tail.close()

    def show_changes(self, changes: Changes) -> None:
        tests = self._wanted()
        if tests != self._tests or self._tail is None:
            self._open(tests)
        self._draw_title()

    def _wanted(self) -> tuple[str, ...]:
        """Give the marked tests, or all that the grid shows; those at work first when they are too many."""
        marked = self.room.marks.tests
        order = self.room.shown_order() or list(self.store.state.records)
        records = [record for test in order if (record := self.store.record(test)) is not None]
        chosen = [record for record in records if record.test in marked] or records
        chosen = [record for record in chosen if record.launched_at is not None]
        self._left_out = max(0, len(chosen) - AGENTS_AT_MOST)
        if self._left_out:
            chosen.sort(key=lambda record: record.state not in (State.RUNNING, State.WAITING))
        return tuple(record.test for record in chosen[:AGENTS_AT_MOST])

    def _open(self, tests: tuple[str, ...]) -> None:
        if self._tail is not None:
            self._tail.close()
        self._tests = tests
        sources = {}
        for test in tests:
            record = self.store.record(test)
            path = find_transcript(record.state_dir, self.store.folder.agent(record.agent)) if record else None
            if path is not None and record is not None:
                sources[test] = FileSource(path)
                self.lines.names[test] = short_name(record)
        self._tail = MergedTail(sources, time.monotonic())
        self._show()

    def _poll(self) -> None:
        if self.is_current and self._tail is not None and self._tail.poll(time.monotonic()):
            self._show()
            self._draw_title()

    def _show(self) -> None:
        if self._tail is None:
            return
        current = self._current()
        words = self._words.removeprefix("!")
        choice = Choice(words, bool(words) and self._words.startswith("!"), errors_only=self._is_errors_only)
        self.lines.shown = self._tail.folded(choice)
        if not self.lines.is_following and current is not None:
            numbers = [folded.item.number for folded in self.lines.shown]
            if current.item.number in numbers:
                self.lines.cursor = numbers.index(current.item.number)
        self.lines.redraw()

    def _draw_title(self) -> None:
        title = f"Tail of {counted(len(self._tests), 'agent')}"
        if self.room.marks.tests:
            title += " (marked)"
        if self._left_out:
            title += f", {self._left_out:,} more left out"
        if self._words or self._is_errors_only:
            title += f" · {len(self.lines.shown):,} match"
            title += f" /{self._words}" if self._words else " errors only"
        self.lines.title(title, "following" if self.lines.is_following else "paused")

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self._draw_title()
        self.draw_foot()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.do_transcript()

    def _current(self) -> Folded | None:
        shown, cursor = self.lines.shown, self.lines.cursor
        return shown[cursor] if cursor < len(shown) else None

    def current_tests(self) -> tuple[str, ...]:
        current = self._current()
        return current.agents if current is not None else ()

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self._words

    def set_filter(self, words: str) -> None:
        self._words = words
        self._show()
        self.take_in(NOTHING)

    def do_open(self) -> None:
        self.do_transcript()

    def why_not_open(self) -> str:
        return self.why_not_transcript()

    def do_follow(self) -> None:
        self.lines.is_following = not self.lines.is_following
        if self.lines.is_following:
            self.lines.move_end(True)
        self._draw_title()

    def do_errors_only(self) -> None:
        self._is_errors_only = not self._is_errors_only
        self._show()
        self._draw_title()

    def do_next_error(self) -> None:
        self._to_error(range(self.lines.cursor + 1, len(self.lines.shown)))

    def do_previous_error(self) -> None:
        self._to_error(range(self.lines.cursor - 1, -1, -1))

    def _to_error(self, indices: Iterable[int]) -> None:
        for index in indices:
            if self.lines.shown[index].item.entry.is_error:
                self.lines.is_following = False
                self.lines.move_to(index)
                return
        self.say("no further error that way")
