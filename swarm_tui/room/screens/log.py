"""Screen 6: the journal as a stream that people read; also where a failed action explains itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.widget import Widget

from swarm_tui.model.state import LogLine
from swarm_tui.room.draw.arrange import fits_words
from swarm_tui.room.draw.log import draw_log_line
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.screens.base import NOTHING, RoomScreen
from swarm_tui.room.store import Changes
from swarm_tui.room.widgets.lines import Lines


class LogLines(Lines):
    """The log's lines, newest at the bottom."""

    def __init__(self) -> None:
        super().__init__(id="list")
        self.shown: list[LogLine] = []
        self.is_following = True

    def line_count(self) -> int:
        return len(self.shown)

    def draw_line(self, index: int, width: int) -> Line:
        return draw_log_line(self.shown[index], width)

    def move(self, rows: int, columns: int = 0) -> None:
        super().move(rows, columns)
        if rows < 0:
            self.is_following = False
        elif self.cursor == len(self.shown) - 1:
            self.is_following = True


class LogScreen(RoomScreen):
    """The log of the sweep and of this room."""

    NAME = "log"
    TITLE_WORD = "log"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.lines = LogLines()
        self.lines.add_class("main")
        self.words = ""
        self._seen: tuple[object, ...] = ()

    def compose_body(self) -> Iterable[Widget]:
        yield self.lines

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.words

    def set_filter(self, words: str) -> None:
        self.words = words
        self.take_in(NOTHING)

    def show_changes(self, changes: Changes) -> None:
        log = self.store.log()
        seen = (len(log), log[-1] if log else None, self.words)
        if changes.is_reset or seen != self._seen:
            self._seen = seen
            was = self.current_line()
            self.lines.shown = [line for line in log if self._fits(line)]
            if not self.lines.is_following and was in self.lines.shown:
                self.lines.cursor = self.lines.shown.index(was)
            self.lines.redraw()
        self._draw_title(len(log))

    def _fits(self, line: LogLine) -> bool:
        return not self.words or fits_words(self.words, f"{line.level} {line.test} {line.text}")

    def _draw_title(self, total: int) -> None:
        title = f"Log {total:,}"
        if self.words:
            title += f" · {len(self.lines.shown):,} match /{self.words}"
        mode = "following" if self.lines.is_following else "paused"
        self.lines.title(
            title, f"{mode} · {self.lines.cursor + 1:,} of {len(self.lines.shown):,}" if self.lines.shown else ""
        )

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self._draw_title(int(str(self._seen[0])) if self._seen else 0)
        self.draw_foot()

    def current_line(self) -> LogLine | None:
        shown, cursor = self.lines.shown, self.lines.cursor
        return shown[cursor] if cursor < len(shown) else None

    def current_tests(self) -> tuple[str, ...]:
        line = self.current_line()
        return (line.test,) if line is not None and line.test else ()

    def name_to_copy(self) -> str:
        line = self.current_line()
        return f"{line.test} {line.text}".strip() if line is not None else ""

    def do_follow(self) -> None:
        self.lines.is_following = not self.lines.is_following
        if self.lines.is_following:
            self.lines.move_end(True)
        self.take_in(NOTHING)

    def do_next_error(self) -> None:
        self._to_error(range(self.lines.cursor + 1, len(self.lines.shown)))

    def do_previous_error(self) -> None:
        self._to_error(range(self.lines.cursor - 1, -1, -1))

    def _to_error(self, indices: Iterable[int]) -> None:
        for index in indices:
            if self.lines.shown[index].level != "info":
                self.lines.is_following = False
                self.lines.move_to(index)
                return
        self.say("no further error or warning that way")

    def why_not_open(self) -> str:
        tests = self.current_tests()
        return "" if tests and self.store.record(tests[0]) is not None else "this line is about no test"

    def do_open(self) -> None:
        self.room.show_test(self.current_tests()[0])
