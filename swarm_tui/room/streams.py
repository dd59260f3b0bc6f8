"""Screens 6 and 7: log and merged tail."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from functools import partial
from typing import ClassVar, Final, Generic, TypeVar

from textual.widget import Widget

from swarm_tui.model.event import LogLine
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import State
from swarm_tui.room.actions import Action
from swarm_tui.room.agent.actions import open_transcript, why_no_record
from swarm_tui.room.draw.spans import Line, Span
from swarm_tui.room.draw.transcript import draw_log_line, draw_tail_line
from swarm_tui.room.followed_files import FollowedFiles
from swarm_tui.room.grid.draw import short_name
from swarm_tui.room.grid.draw_layout import fits_words
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import SweepChanged
from swarm_tui.room.widgets.lines import Lines
from swarm_tui.transcripts.filters import EntryFilter
from swarm_tui.transcripts.merged import MergedEntry, MergedTail
from swarm_tui.transcripts.window import FileSource

Item = TypeVar("Item")


class StreamLines(Lines, Generic[Item]):
    """Lines of the stream; a subclass draws one."""

    def __init__(self) -> None:
        super().__init__(id="list")
        self.shown: list[Item] = []
        self.when_empty = ""
        """Text shown in an empty list."""
        self.is_following = True

    def line_count(self) -> int:
        return len(self.shown) or 1

    def draw_line(self, index: int, width: int) -> Line:
        return self.draw_item(self.shown[index], width) if self.shown else (Span(self.when_empty, "muted"),)

    @abstractmethod
    def draw_item(self, item: Item, width: int) -> Line:
        """Return the line of an item."""

    def move(self, rows: int, columns: int = 0) -> None:
        super().move(rows, columns)
        if rows < 0:
            self.is_following = False
        elif self.cursor == len(self.shown) - 1:
            self.is_following = True


class StreamScreen(RoomScreen, Generic[Item]):
    """The stream and its actions."""

    can_filter: ClassVar[bool] = True
    ERROR_WORD: ClassVar[str] = "error"
    """The noun for items that e and E go to."""

    def __init__(self, lines: StreamLines[Item]) -> None:
        super().__init__()
        self.lines = lines
        self.lines.add_class("main")

    def compose_body(self) -> Iterable[Widget]:
        yield self.lines

    def stream_actions(self, label: str) -> tuple[Action, ...]:
        """Return the actions of every stream. `label` is the footer's label of the action for the next error."""
        return (
            Action(f"{self.NAME}.follow", ("F",), "follow", "Follow the end of the list", self.switch_following),
            Action(f"{self.NAME}.next_error", ("e",), label, f"Go to the next {self.ERROR_WORD}",
                   partial(self._find_error, 1)),
            Action(f"{self.NAME}.previous_error", ("E",), "", f"Go to the previous {self.ERROR_WORD}",
                   partial(self._find_error, -1)),
        )  # fmt: skip

    @abstractmethod
    def key_of(self, item: Item) -> object:
        """Return the key that identifies an item in the next update."""

    @abstractmethod
    def is_error(self, item: Item) -> bool:
        """Return whether e and E stop at an item."""

    @abstractmethod
    def draw_title(self) -> None:
        """Show the position in the border."""

    def show_items(self, items: list[Item], when_empty: str) -> None:
        """Show these items, or why there are none. Unless the stream follows its end, the cursor stays on its item."""
        current = self.current()
        self.lines.shown = items
        self.lines.when_empty = f"nothing matches /{self.filter_words}" if self.filter_words else when_empty
        if not self.lines.is_following and current is not None:
            keys = [self.key_of(item) for item in items]
            if (key := self.key_of(current)) in keys:
                self.lines.cursor = keys.index(key)
        self.lines.redraw()

    def current(self) -> Item | None:
        shown, cursor = self.lines.shown, self.lines.cursor
        return shown[cursor] if cursor < len(shown) else None

    @property
    def mode(self) -> str:
        return "following" if self.lines.is_following else "paused"

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self.draw_title()
        self.draw_footer()

    def switch_following(self) -> None:
        self.lines.is_following = not self.lines.is_following
        if self.lines.is_following:
            self.lines.move_end(True)
        self.draw_title()

    def _find_error(self, step: int) -> None:
        index = self.lines.cursor + step
        while 0 <= index < len(self.lines.shown):
            if self.is_error(self.lines.shown[index]):
                self.lines.is_following = False
                self.lines.move_to(index)
                return
            index += step
        self.show_message(f"no {'later' if step > 0 else 'earlier'} {self.ERROR_WORD}")


class LogLines(StreamLines[LogLine]):
    def draw_item(self, item: LogLine, width: int) -> Line:
        return draw_log_line(item, width)


class LogScreen(StreamScreen[LogLine]):
    NAME = "log"
    TITLE_WORD = "log"
    ERROR_WORD = "error or warning"

    def __init__(self) -> None:
        super().__init__(LogLines())
        self._total = 0
        self._contents: tuple[object, ...] = ()

    def own_actions(self) -> tuple[Action, ...]:
        return (
            *self.stream_actions("next error"),
            Action("log.open", ("enter",), "show", "Show the test of this line in the grid", self.show_test,
                   self.why_no_test, is_listed=False, rank=0,
                   watch_description="Show the agent of this line in the grid"),
        )  # fmt: skip

    def show_change(self, change: SweepChanged) -> None:
        log = self.store.log()
        contents = (len(log), log[-1] if log else None, self.filter_words)
        if change.is_everything or contents != self._contents:
            self._contents = contents
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
        return "" if self.current_record() is not None else f"this line has no {self.store.noun}"

    def show_test(self) -> None:
        self.room.show_test(self.current_tests()[0])


LOOK_SECONDS: Final = 0.2
NEWS_PAUSE: Final = 0.05
SEARCH_SECONDS: Final = 2.0
"""Seconds between two searches for new transcripts."""
AGENTS_AT_MOST: Final = 300
"""Each followed agent has an open file."""


class TailLines(StreamLines[MergedEntry]):
    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._agent_names = names

    def draw_item(self, item: MergedEntry, width: int) -> Line:
        return draw_tail_line(item, self._agent_names.get(item.first.agent, ""), width)


class TailScreen(StreamScreen[MergedEntry]):
    NAME = "tail"
    TITLE_WORD = "tail"

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        super().__init__(TailLines(self.names))
        self._tail = MergedTail({}, 0.0)
        self._sources: dict[str, FileSource] = {}
        self._tests: tuple[str, ...] = ()
        self._search_at = 0.0
        """Time of the next search for new transcripts."""
        self._left_out = 0
        self._is_errors_only = False
        self._followed = FollowedFiles(self, self._read_new, pause=NEWS_PAUSE, look_seconds=LOOK_SECONDS)

    def own_actions(self) -> tuple[Action, ...]:
        return (
            Action("tail.open", ("enter",), "transcript", "Open the transcript of this line's agent",
                   partial(open_transcript, self), partial(why_no_record, self), is_listed=False),
            *self.stream_actions("errors"),
            Action("tail.errors_only", ("!",), "", "Show only lines with errors; again: all", self.switch_errors_only),
        )  # fmt: skip

    def on_unmount(self) -> None:
        self._followed.close()
        self._tail.close()

    def show_change(self, change: SweepChanged) -> None:
        tests = self._tests_to_follow()
        if tests != self._tests or change.is_everything:
            self._tests = tests
            self._find_transcripts()
            self._show()
        self.draw_title()

    def _tests_to_follow(self) -> tuple[str, ...]:
        """Return the marked tests, or all tests of the grid. If there are too many, running ones come first."""
        marked = self.room.view.marks.tests
        order = self.room.view.order or list(self.store.state.records)
        records = self.store.records_of(order)
        chosen = [record for record in records if record.test in marked] or records
        chosen = [record for record in chosen if record.launched_at is not None]
        self._left_out = max(0, len(chosen) - AGENTS_AT_MOST)
        if self._left_out:
            chosen.sort(key=lambda record: record.state not in (State.RUNNING, State.WAITING))
        return tuple(record.test for record in chosen[:AGENTS_AT_MOST])

    def _find_transcripts(self) -> bool:
        """Follow the transcripts of the current agents. Return whether they have changed."""
        self._search_at = time.monotonic() + SEARCH_SECONDS
        sources = {}
        for record in self.store.records_of(self._tests):
            path = self.room.agents.transcript_of(record)
            if path is not None:
                source = self._sources.get(record.test)
                sources[record.test] = source if source is not None and source.path == path else FileSource(path)
                self.names[record.test] = short_name(record)
        has_others = sources != self._sources
        self._sources = sources
        self._tail.follow(sources, time.monotonic())
        self._followed.show(source.path for source in sources.values())
        return has_others

    def _read_new(self) -> None:
        if not self.is_current:
            return
        now = time.monotonic()
        is_search_due = now >= self._search_at and len(self._sources) < len(self._tests)
        has_others = is_search_due and self._find_transcripts()
        if self._tail.poll(now) or has_others:
            self._show()
            self.draw_title()

    def _show(self) -> None:
        words = self.filter_words.removeprefix("!")
        choice = EntryFilter(words, bool(words) and self.filter_words.startswith("!"), errors_only=self._is_errors_only)
        self.show_items(self._tail.merged(choice), self._why_empty())

    def _why_empty(self) -> str:
        if not self._tests:
            return "no agent has been launched yet"
        if not self._sources:
            return "no transcripts yet: press 2 for an agent's screen"
        return "no line with an error" if self._is_errors_only else "no output yet"

    def key_of(self, item: MergedEntry) -> object:
        return item.first.number

    def is_error(self, item: MergedEntry) -> bool:
        return item.first.entry.is_error

    def draw_title(self) -> None:
        title = f"Tail of {counted(len(self._tests), 'agent')}"
        if self.room.view.marks.tests:
            title += " (marked)"
        if self._left_out:
            title += f", {self._left_out:,} more left out"
        if self.filter_words or self._is_errors_only:
            title += f" · {len(self.lines.shown):,} match"
            title += f" /{self.filter_words}" if self.filter_words else " errors only"
        self.lines.title(title, self.mode)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        open_transcript(self)

    def current_tests(self) -> tuple[str, ...]:
        current = self.current()
        return current.agents if current is not None else ()

    def set_filter(self, words: str) -> None:
        self.filter_words = words
        self._show()
        self.draw_title()

    def switch_errors_only(self) -> None:
        self._is_errors_only = not self._is_errors_only
        self._show()
        self.draw_title()
