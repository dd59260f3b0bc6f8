"""Screens 4 and 8, Patterns and Hosts: a list, and the entry under the cursor in full."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from textual.containers import Container
from textual.widget import Widget

from swarm_tui.failures.alerts import still_held
from swarm_tui.failures.patterns import Pattern
from swarm_tui.hosts.events import made_hosts
from swarm_tui.hosts.lines import HostLine, free_slots_reason
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import State
from swarm_tui.room.actions import action
from swarm_tui.room.draw.patterns_hosts import (
    draw_host_detail,
    draw_host_row,
    draw_pattern_detail,
    draw_pattern_row,
    name_width,
)
from swarm_tui.room.draw.spans import Line, Span, wrap_text
from swarm_tui.room.engine_requests import choose_request, send_request
from swarm_tui.room.grid.draw_layout import fits_words
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import VIEW_CHANGED, SweepChanged
from swarm_tui.room.widgets.lines import Lines, TextLines


class TestGroup(Protocol):
    """Tests with something in common."""

    @property
    def tests(self) -> tuple[str, ...]: ...


Entry = TypeVar("Entry", bound=TestGroup)


class ListDetailScreen(RoomScreen, Generic[Entry]):
    """A list of entries, and the one under the cursor in full."""

    can_filter: ClassVar[bool] = True
    WHY_NO_ENTRY: ClassVar[str] = ""
    """Message of an action on an empty list."""
    WHEN_EMPTY: ClassVar[str] = ""
    """Text shown in an empty list."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = TextLines(id="list", has_cursor=True)
        self.rows.add_class("main")
        self.detail = TextLines(id="detail")
        self.entries: list[Entry] = []

    def compose_body(self) -> Iterable[Widget]:
        yield Container(self.rows, self.detail, id="body")

    # For subclasses.

    @abstractmethod
    def find_entries(self) -> Sequence[Entry]:
        """Return the current entries."""

    @abstractmethod
    def key_of(self, entry: Entry) -> str:
        """Return the text that identifies an entry. The cursor stays on it, and filters search it."""

    @abstractmethod
    def draw_row(self, entry: Entry, width: int) -> Line:
        """Return an entry as a line of the list."""

    @abstractmethod
    def detail_title(self, entry: Entry) -> str:
        """Return the title of the panel with an entry's details."""

    @abstractmethod
    def draw_detail(self, entry: Entry, width: int) -> list[Line]:
        """Return the details of an entry."""

    def about_list(self) -> str:
        """Return the part of the list's title after the number of entries."""
        return ""

    # The same for all subclasses.

    def current(self) -> Entry | None:
        return self.entries[self.rows.cursor] if self.rows.cursor < len(self.entries) else None

    def _fits(self, entry: Entry) -> bool:
        return not self.filter_words or fits_words(self.filter_words, " ".join((self.key_of(entry), *entry.tests)))

    def show_change(self, change: SweepChanged) -> None:
        was = self.current()
        every = self.find_entries()
        self.entries = [entry for entry in every if self._fits(entry)]
        keys = [self.key_of(entry) for entry in self.entries]
        if was is not None and (key := self.key_of(was)) in keys and self.rows.cursor != keys.index(key):
            self.rows.cursor = keys.index(key)
            self.rows.redraw()
        width = max(20, self.rows.text_width)
        self.rows.show([self.draw_row(entry, width) for entry in self.entries])
        title = f"{self.TITLE_WORD.capitalize()} {len(every):,}"
        title += f" · {len(self.entries):,} match /{self.filter_words}" if self.filter_words else ""
        title += f" · {about}" if (about := self.about_list()) else ""
        self.rows.title(title, f"{self.rows.cursor + 1:,} of {len(self.entries):,}" if self.entries else "")
        entry = self.current()
        self.detail.title(self.detail_title(entry) if entry is not None else "")
        across = max(20, self.detail.text_width)
        if entry is not None:
            self.detail.show(self.draw_detail(entry, across))
        else:
            why = "No entry matches the filter." if every else self.WHEN_EMPTY
            self.detail.show([[Span(row, "dim")] for row in wrap_text(why, across, 6)])

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self.detail.scroll_rows(0)
        self.apply_change(VIEW_CHANGED)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        if not self.why_no_entry():
            self.show_tests()

    def current_tests(self) -> tuple[str, ...]:
        entry = self.current()
        return entry.tests if entry is not None else ()

    def why_no_entry(self) -> str:
        return "" if self.current() is not None else self.WHY_NO_ENTRY

    @abstractmethod
    def show_tests(self) -> None:
        """Show the tests of the entry in the grid."""


class PatternsScreen(ListDetailScreen[Pattern]):
    """Patterns with the traits that their tests share, largest first."""

    NAME = "patterns"
    TITLE_WORD = "patterns"
    WHY_NO_ENTRY = "no pattern under the cursor"
    WHEN_EMPTY = "No pattern yet. Failures that have the same cause are grouped here."

    def find_entries(self) -> Sequence[Pattern]:
        return self.store.patterns()

    def key_of(self, entry: Pattern) -> str:
        return entry.cause

    def draw_row(self, entry: Pattern, width: int) -> Line:
        return draw_pattern_row(entry, self.store.state.alerts, self.store.state.records, width)

    def detail_title(self, entry: Pattern) -> str:
        return f"{len(entry.tests):,} {entry.kind}, same cause"

    def draw_detail(self, entry: Pattern, width: int) -> list[Line]:
        return draw_pattern_detail(entry, self.store.state.alerts, self.store.state.records, width)

    def name_to_copy(self) -> str:
        pattern = self.current()
        return pattern.example if pattern is not None else ""

    @action("enter", "patterns.open", "show tests", "Show the tests of this pattern in the grid",
            lambda screen: screen.why_no_entry(), is_listed=False, rank=0)  # fmt: skip
    def show_tests(self) -> None:
        tests = self.current_tests()
        self.room.show_only(tests, f"{len(tests)} tests of this pattern")

    def held_tests(self) -> list[str]:
        """Return the tests that are held for this pattern."""
        entry, state = self.current(), self.store.state
        alert = state.alerts.get(entry.cause) if entry is not None else None
        return [record.test for record in still_held(alert, state.records)] if alert is not None else []

    def why_nothing_held(self) -> str:
        return self.why_no_entry() or ("" if self.held_tests() else "no test is held for this pattern")

    @action("x", "patterns.act", "act on all", "Stop, retry, hold or release all tests of this pattern",
            lambda screen: screen.why_no_entry(), is_of_now=True)  # fmt: skip
    def act(self) -> None:
        choose_request(self)

    @action("space", "patterns.mark", "mark", "Mark the tests of this pattern in the grid",
            lambda screen: screen.why_no_entry())  # fmt: skip
    def mark_tests(self) -> None:
        """Mark the tests of this pattern in the grid. If all are marked, unmark them."""
        self.room.view.switch_marks(self.current_tests())
        self.show_message(f"{len(self.room.view.marks.tests):,} tests marked in the grid; press z to undo")

    @action("r", "patterns.release", "release held", "Release the tests that are held for this pattern",
            lambda screen: screen.why_nothing_held(), is_of_now=True)  # fmt: skip
    def release_held(self) -> None:
        send_request(self, RequestKind.RELEASE, tests=self.held_tests())


class HostsScreen(ListDetailScreen[HostLine]):
    """A line for each host: agents, free slots, load, age of the last report."""

    NAME = "hosts"
    TITLE_WORD = "hosts"
    SIDE_BY_SIDE: ClassVar[int] = 150
    WHY_NO_ENTRY = "no host under the cursor"
    WHEN_EMPTY = "No agent was launched yet. To use other machines: `swarm-tui run --host NAME`"

    def why_no_launch(self) -> str:
        return self.why_no_entry() or ("" if self.current_tests() else "no agent has run on this host yet")

    def find_entries(self) -> Sequence[HostLine]:
        return self.store.hosts()

    def key_of(self, entry: HostLine) -> str:
        return entry.name

    def draw_row(self, entry: HostLine, width: int) -> Line:
        return draw_host_row(entry, name_width(self.entries, width), width, self.store.clock())

    def detail_title(self, entry: HostLine) -> str:
        return counted(len(entry.tests), "test")

    def draw_detail(self, entry: HostLine, width: int) -> list[Line]:
        known = (*self.store.opened.spec.access, *made_hosts(self.store.state.hosts))
        access = next((each for each in known if each.name == entry.name), None)
        records = self.store.records_of(entry.tests)
        return draw_host_detail(entry, access, records, width, self.store.clock())

    def about_list(self) -> str:
        state = self.store.state
        queued = state.counts[State.QUEUED.value]
        return free_slots_reason(self.store.hosts(), state.slots, queued, self.store.clock())

    def name_to_copy(self) -> str:
        host = self.current()
        return host.name if host is not None else ""

    @action("enter", "hosts.open", "show tests", "Show the tests of this host in the grid",
            lambda screen: screen.why_no_launch(), is_listed=False, rank=0)  # fmt: skip
    def show_tests(self) -> None:
        host = self.current()
        if host is not None:
            self.room.show_only(host.tests, f"on {host.name}")

    @action("x", "hosts.act", "act on all", "Stop, retry, hold or release all tests of this host",
            lambda screen: screen.why_no_launch(), is_of_now=True)  # fmt: skip
    def act(self) -> None:
        choose_request(self)

    @action("b", "hosts.group", "group", "Show all tests in the grid, grouped by host")
    def show_by_host(self) -> None:
        self.room.remember_for_project(group="host")
        self.room.view.change(group="host")
        self.room.open_screen("sweep")
