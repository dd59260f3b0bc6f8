"""The panel with the grid: selects, orders and marks tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from swarm_tui.journal.record import TestRecord
from swarm_tui.room.actions import ScreenServices
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill
from swarm_tui.room.grid.draw import Cell, by_folder, table_of
from swarm_tui.room.grid.draw_layout import GridOptions, Zoom, arrange, largest_zoom, lay_out
from swarm_tui.room.grid.widget import TestGrid
from swarm_tui.room.store import VIEW_CHANGED, SweepChanged

REST_SECONDS = 0.5
"""Seconds without a key or a change before the grid is reordered, so that tests do not move under the cursor."""
STALE_SECONDS = 1.0
"""Maximum number of seconds that groups and order may be out of date."""


class TestsPanel:
    """Arranges the tests in the grid and updates them."""

    __test__ = False

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self.grid = TestGrid(self._cell_of, self._now, id="grid")
        self.grid.add_class("main")
        self._stale_since: float | None = None
        """The time since which tests may be in the wrong group or order."""
        self._arranged_at = 0.0
        self._arranged_for: tuple[object, ...] = ()
        self._arranged_tests = 0
        self._range_start: str | None = None
        self._marked_before_range: frozenset[str] = frozenset()
        self._closed: list[GridOptions] = []
        """View settings before each of the nested open folders was opened."""

    @property
    def is_arranged(self) -> bool:
        """Whether the grid has been laid out. Before that, keys would find no test."""
        return bool(self._arranged_for)

    def _now(self) -> float:
        return self._screen.store.clock()

    @property
    def options(self) -> GridOptions:
        return self._screen.room.choice

    def change_options(self, **changes: object) -> None:
        self._screen.room.choice = replace(self.options, **changes)  # type: ignore[arg-type]
        self._screen.apply_change(VIEW_CHANGED)

    def show_all(self) -> None:
        self.change_options(words="", pills=frozenset(), only=None, only_name="")

    def go_to(self, test: str) -> None:
        """Move the cursor to a test. If a filter hides the test, the filter is cleared."""
        self._screen.room.current_test = test
        if not self.grid.go_to(test):
            self.show_all()
            self.grid.go_to(test)

    # Contents.

    def _cell_of(self, test: str) -> Cell:
        store = self._screen.store
        record = store.state.records.get(test) or TestRecord(test)
        overlay = "marked" if test in self._screen.room.marks.tests else ""
        if store.pending and store.pending_for(test) is not None:
            overlay = f"{overlay} pending".lstrip()
        return Cell(record, overlay)

    def show_change(self, change: SweepChanged) -> None:
        """Draw what has changed. Arrange all tests again if that is needed."""
        records = self._screen.store.state.records
        if change.is_everything or self._shape() != self._arranged_for or len(records) != self._arranged_tests:
            self._arrange()
        elif change.tests and self.options.moves_by_state and self._stale_since is None:
            self._stale_since = self._screen.store.live_clock()
        if self._stale_since is not None and self._is_time():
            self._arrange()
        else:
            self.grid.fit_table(self._screen.store.records_of(change.tests))
            self.grid.tests_changed(change.tests)
        if not change.tests and not change.is_everything and self.options.zoom is Zoom.ROWS:
            self._refresh_times()

    def _shape(self) -> tuple[object, ...]:
        is_by_height = self.options.zoom is Zoom.DOTS or not self._screen.room.is_zoom_chosen
        return self.options, self.grid.text_width, self.grid.size.height if is_by_height else 0

    def _is_time(self) -> bool:
        now = self._screen.store.live_clock()
        is_quiet = now - self._arranged_at > REST_SECONDS and now - self._screen.room.key_at > REST_SECONDS
        return is_quiet or (self._stale_since is not None and now - self._stale_since > STALE_SECONDS)

    def _arrange(self) -> None:
        records, room = self._screen.store.state.records, self._screen.room
        groups = arrange(records, self.options, self._now())
        width, height = self.grid.text_width, max(1, self.grid.size.height)
        if not room.is_zoom_chosen and not self.options.is_filtering:
            # A filter does not change the zoom, because the zoom would change while the user types.
            room.choice = replace(room.choice, zoom=largest_zoom(groups, width, height))
        if self.grid.test is None:
            self.grid.test = room.current_test
        if self.options.zoom is Zoom.FOLDERS and self.options.group == "file":
            groups = by_folder(groups, height)
        if self.options.zoom is Zoom.ROWS:
            shown = self._screen.store.records_of(test for group in groups for test in group.tests)
            self.grid.table = table_of(shown, self._screen.store.noun)
        self.grid.show_layout(lay_out(groups, self.options.zoom, width, height), self.options.sort)
        self._arranged_for = self._shape()
        self._arranged_at = self._screen.store.live_clock()
        self._arranged_tests = len(records)
        self._stale_since = None

    def _refresh_times(self) -> None:
        visible = self._screen.store.records_of(self.grid.visible_tests())
        self.grid.tests_changed(
            record.test for record in visible if record.launched_at is not None and record.ended_at is None
        )

    def draw_title(self) -> None:
        """Show the number of tests and the view settings in the border."""
        options, marked = self.options, len(self._screen.room.marks.tests)
        total, shown = len(self._screen.store.state.records), len(self.grid.order())
        title = f"{self._screen.store.noun.capitalize()}s {total:,}"
        if options.is_filtering:
            title += f" · {shown:,} match"
            title += f" /{options.words}" if options.words else ""
            title += "".join(f" {mark_of_pill(pill).word}" for pill in PILLS if pill in options.pills)
            title += f" {options.only_name}" if options.only is not None else ""
        if options.group not in ("file", "none", "project"):
            title += f" · by {options.group}"
        if options.sort != "file":
            title += f" · sorted by {options.sort}"
        if marked:
            title += f" · {marked:,} marked"
        if self._range_start is not None:
            title += " · range"
        self.grid.title(title, f"{self.grid.rank_of_cursor() + 1:,} of {shown:,}" if shown else "")

    # Folders.

    def open_folder(self) -> bool:
        """Show only the tests of the folder under the cursor, as large as possible. Return False on a test."""
        run = self.grid.run_of_cursor()
        if self.options.zoom is not Zoom.FOLDERS or run is None:
            return False
        self._closed.append(self.options)
        width, height = self.grid.text_width, max(1, self.grid.size.height)
        inner = replace(self.options, only=frozenset(run.tests), only_name=run.label)
        groups = arrange(self._screen.store.state.records, inner, self._now())
        self.change_options(only=inner.only, only_name=run.label, zoom=largest_zoom(groups, width, height))
        return True

    def close_folder(self) -> bool:
        """Return to the view before the folder was opened."""
        if not self._closed or self.options.only is None:
            self._closed.clear()
            return False
        self._screen.room.choice = self._closed.pop()
        self._screen.apply_change(VIEW_CHANGED)
        return True

    # Marks.

    def mark(self, tests: Iterable[str]) -> None:
        room = self._screen.room
        room.change_marks(room.marks.changed_to(tests))

    def mark_cursor(self) -> None:
        run = self.grid.run_of_cursor()
        if self.options.zoom is Zoom.FOLDERS and run is not None:
            tests, marked = frozenset(run.tests), self._screen.room.marks.tests
            self.mark(marked - tests if tests <= marked else marked | tests)
            self.grid.move(1)
        elif self.grid.test is not None:
            self.mark(self._screen.room.marks.tests ^ {self.grid.test})
            self.grid.move(0, 1) if self.options.zoom is not Zoom.ROWS else self.grid.move(1)

    def mark_shown(self) -> None:
        """Mark all shown tests. If all are marked, unmark them."""
        shown, marked = frozenset(self.grid.order()), self._screen.room.marks.tests
        self.mark(frozenset() if shown <= marked else marked | shown)

    def marked_or_current(self) -> tuple[str, ...]:
        marks = self._screen.room.marks.tests
        if marks and (marked := tuple(test for test in self.grid.order() if test in marks)):
            return marked
        return (self.grid.test,) if self.grid.test is not None else ()

    def switch_range(self) -> None:
        """Start to mark a range at the cursor, or end it."""
        if not self.end_range():
            self._range_start = self.grid.test
            self._marked_before_range = self._screen.room.marks.tests
            self.mark(self._marked_before_range | {self.grid.test or ""})

    def end_range(self) -> bool:
        if self._range_start is None:
            return False
        self._range_start = None
        self.draw_title()
        return True

    def extend_range(self) -> None:
        if self._range_start is not None:
            self.mark(self._marked_before_range | set(self.grid.range_to(self._range_start)))
