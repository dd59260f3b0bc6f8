"""Screen 6: the log of the sweep, with the details of actions that failed in this room."""

from __future__ import annotations

from swarm_tui.model.state import LogLine
from swarm_tui.room.actions import Action
from swarm_tui.room.draw.arrange import fits_words
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.draw.streams import draw_log_line
from swarm_tui.room.screens.stream import StreamLines, StreamScreen
from swarm_tui.room.store import SweepChanged


class LogLines(StreamLines[LogLine]):
    """The log's lines."""

    def draw_item(self, item: LogLine, width: int) -> Line:
        return draw_log_line(item, width)


class LogScreen(StreamScreen[LogLine]):
    """The log of the sweep and of this room."""

    NAME = "log"
    TITLE_WORD = "log"
    ERROR_WORD = "error or warning"

    def __init__(self) -> None:
        super().__init__(LogLines())
        self._total = 0
        self._seen: tuple[object, ...] = ()

    def own_actions(self) -> tuple[Action, ...]:
        return (
            *self.stream_actions("next error"),
            Action("log.open", ("enter",), "show", "Show the test of this line in the grid", self.show_test,
                   self.why_no_test, is_listed=False, rank=0,
                   watch_description="Show the agent of this line in the grid"),
        )  # fmt: skip

    def show_change(self, change: SweepChanged) -> None:
        log = self.store.log()
        seen = (len(log), log[-1] if log else None, self.filter_words)
        if change.is_everything or seen != self._seen:
            self._seen = seen
            self._total = len(log)
            self.show_items([line for line in log if self._fits(line)], "nothing has happened yet")
        self.draw_title()

    def _fits(self, line: LogLine) -> bool:
        return not self.filter_words or fits_words(self.filter_words, f"{line.level} {line.test} {line.text}")

    def key_of(self, item: LogLine) -> object:
        return item

    def is_error(self, item: LogLine) -> bool:
        return item.level != "info"

    def draw_title(self) -> None:
        shown = len(self.lines.shown)
        title = f"Log {self._total:,}"
        title += f" · {shown:,} match /{self.filter_words}" if self.filter_words else ""
        self.lines.title(title, f"{self.mode} · {self.lines.cursor + 1:,} of {shown:,}" if shown else "")

    def current_tests(self) -> tuple[str, ...]:
        line = self.current()
        return (line.test,) if line is not None and line.test else ()

    def name_to_copy(self) -> str:
        line = self.current()
        return f"{line.test} {line.text}".strip() if line is not None else ""

    def why_no_test(self) -> str:
        return "" if self.current_record() is not None else f"this line is about no {self.store.noun}"

    def show_test(self) -> None:
        self.room.show_test(self.current_tests()[0])
