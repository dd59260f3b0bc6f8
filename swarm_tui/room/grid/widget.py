"""The grid of tests in its three zooms. The cursor stays on its test when tests move."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual import events
from textual.message import Message

from swarm_tui.journal.record import TestRecord
from swarm_tui.room.draw.glyphs import glyph_of, role_of
from swarm_tui.room.draw.spans import Line, spot_at
from swarm_tui.room.grid.draw import (
    Cell,
    FolderCounts,
    Table,
    draw_chips,
    draw_dots,
    draw_folder,
    draw_heading,
    draw_table_heading,
    draw_table_row,
)
from swarm_tui.room.grid.draw_layout import CellRun, Layout, Zoom
from swarm_tui.room.widgets.lines import Lines


class TestGrid(Lines):
    """All tests that the filter shows."""

    __test__ = False
    ALLOW_SELECT = False

    class TestChanged(Message):
        """The cursor has moved to another test."""

    class HeadClicked(Message):
        """The heading of a sortable column was clicked."""

        def __init__(self, sort: str) -> None:
            self.sort = sort
            super().__init__()

    def __init__(self, cell_of: Callable[[str], Cell], clock: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cells = Layout([], {}, Zoom.DOTS)
        self.test: str | None = None
        self.sort = "file"
        self.table = Table()
        """Facts about the shown tests that decide the columns of the table."""
        self._cell_of = cell_of
        self._clock = clock
        self._goal_x = 0
        self._order: list[str] = []
        self._rank: dict[str, int] = {}
        self._drawn: dict[str, tuple[str, str, str]] = {}
        self._counts = FolderCounts((), self._mark_of)

    # Contents.

    def show_layout(self, layout: Layout, sort: str) -> None:
        """Show the tests in a new layout. The cursor stays on its test, and the test at its height on the screen."""
        row, x = self.cells.places.get(self.test or "", (self.cursor, self._goal_x))
        height_on_screen = row - self.first_visible
        self.cells, self.sort = layout, sort
        self.has_heading = layout.zoom is Zoom.ROWS
        self._order = layout.order()
        self._rank = {test: rank for rank, test in enumerate(self._order)}
        self._drawn.clear()
        self._counts = FolderCounts(layout.rows if layout.zoom is Zoom.FOLDERS else (), self._mark_of)
        if self.test not in layout.places:
            self.test = self._nearest(row, x)
            self.post_message(self.TestChanged())
        self.cursor = layout.places[self.test][0] if self.test is not None else 0
        self.redraw()
        self.scroll_rows(self.cursor - max(0, min(height_on_screen, self.visible_rows - 1)))
        self.show_line(self.cursor)

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if self.has_heading and at is not None and at.y == 0:
            kind, _, sort = spot_at(self.draw_heading(self.text_width), at.x).partition(":")
            if kind == "sort":
                event.stop()
                self.post_message(self.HeadClicked(sort))
            return
        super().on_click(event)

    def _nearest(self, row: int, x: int) -> str | None:
        for distance in range(len(self.cells.rows) + row + 1):
            for candidate in (row + distance, row - distance):
                test = self.cells.test_at(candidate, x)
                if test is not None:
                    return test
        return None

    def fit_table(self, records: Iterable[TestRecord]) -> None:
        """Add columns that changed tests need, such as the first cost."""
        if self.cells.zoom is not Zoom.ROWS:
            return
        table = self.table
        for record in records:
            table = table.including(record)
        if table != self.table:
            self.table = table
            self.redraw()

    def tests_changed(self, tests: Iterable[str]) -> None:
        """Draw these tests again if they look different."""
        places = self.cells.places
        if self.cells.zoom is Zoom.ROWS:
            self.lines_changed({places[test][0] for test in tests if test in places})
            return
        if self.cells.zoom is Zoom.FOLDERS:
            shown = [(test, places[test][0]) for test in tests if test in places]
            self.lines_changed({row for test, row in shown if self._counts.change(test, row, self._mark_of(test))})
            return
        rows = set()
        for test in tests:
            place = places.get(test)
            if place is None:
                continue
            appearance = self._appearance(test)
            if self._drawn.get(test) != appearance:
                self._drawn[test] = appearance
                rows.add(place[0])
        self.lines_changed(rows)

    def _mark_of(self, test: str) -> str:
        return self._cell_of(test).record.mark

    def _appearance(self, test: str) -> tuple[str, str, str]:
        record, overlay = self._cell_of(test)
        return glyph_of(record, self.cells.zoom is Zoom.CHIPS), role_of(record), overlay

    def visible_tests(self) -> list[str]:
        rows = self.cells.rows[self.first_visible : self.first_visible + self.visible_rows]
        return [test for row in rows for run in row for test in run.tests]

    # The cursor.

    def go_to(self, test: str) -> bool:
        """Move the cursor to a test. Return False if it is not shown."""
        place = self.cells.places.get(test)
        if place is None:
            return False
        self._goal_x = place[1]
        self._move_cursor(test)
        return True

    def _move_cursor(self, test: str | None) -> None:
        if test is None or test == self.test:
            return
        old_row, row = self.cursor, self.cells.places[test][0]
        self.test, self.cursor = test, row
        self.show_line(row)
        self.lines_changed({old_row, row})
        self.post_message(self.TestChanged())

    def move(self, rows: int, columns: int = 0) -> None:
        if not self._order:
            return
        if columns:
            rank = self._rank.get(self.test or "", 0) + columns
            self._move_cursor(self._order[max(0, min(len(self._order) - 1, rank))])
            self._goal_x = self.cells.places[self.test or ""][1]
        if rows:
            step = 1 if rows > 0 else -1
            target = max(0, min(len(self.cells.rows) - 1, self.cursor + rows))
            # Skip headings: in the direction of the move, or back if there is nothing further on.
            onwards = range(target, len(self.cells.rows) if step > 0 else -1, step)
            back = range(target, self.cursor, -step)
            for row in (*onwards, *back):
                test = self.cells.test_at(row, self._goal_x)
                if test is not None:
                    self._move_cursor(test)
                    return

    def run_of_cursor(self) -> CellRun | None:
        """Return the tests of the first group of cells in the cursor's row."""
        return next(iter(self.cells.rows[self.cursor]), None) if self.test is not None else None

    def rank_of_cursor(self) -> int:
        return self._rank.get(self.test or "", 0)

    def move_group(self, step: int) -> None:
        """Move to the first test of the next group, or back to the first test of this or the previous group."""
        starts = [
            (number, run)
            for number, row in enumerate(self.cells.rows)
            for run in row
            if run.label or (run.tests and run.tests[0] == self._order[0])
        ]
        firsts = sorted({rank for number, run in starts if (rank := self._first_rank(number, run)) is not None})
        here = self._rank.get(self.test or "", 0)
        if step > 0:
            target = next((rank for rank in firsts if rank > here), None)
        else:
            target = next((rank for rank in reversed(firsts) if rank < here), None)
        if target is not None:
            self.go_to(self._order[target])

    def _first_rank(self, row: int, run: object) -> int | None:
        for number in range(row, min(row + 2, len(self.cells.rows))):
            for candidate in self.cells.rows[number]:
                if candidate.tests and (number > row or candidate is run):
                    return self._rank[candidate.tests[0]]
        return None

    def move_to(self, index: int) -> None:
        self._move_cursor(self.cells.test_at(max(0, min(len(self.cells.rows) - 1, index)), self._goal_x))

    def move_end(self, is_bottom: bool) -> None:
        if self._order:
            self.go_to(self._order[-1 if is_bottom else 0])
            if not is_bottom:
                self.scroll_rows(0)

    def show_line(self, index: int) -> None:
        # Scroll so that the heading of the group is visible too.
        if 0 < index < len(self.cells.rows) and not any(run.tests for run in self.cells.rows[index - 1]):
            super().show_line(index - 1)
        super().show_line(index)

    def choose(self, index: int, x: int) -> None:
        self._goal_x = x
        self._move_cursor(self.cells.test_at(index, x))

    # Drawing.

    def line_count(self) -> int:
        return len(self.cells.rows)

    def line_role(self, index: int) -> str:
        is_line = self.cells.zoom in (Zoom.ROWS, Zoom.FOLDERS)
        return "line" if is_line and index == self.cursor and self.test is not None else ""

    def draw_heading(self, width: int) -> Line:
        return draw_table_heading(self.table, width, self.sort)

    def draw_line(self, index: int, width: int) -> Line:
        row = self.cells.rows[index]
        run = row[0]
        if not run.tests:
            return draw_heading(run.label, run.size, width)
        match self.cells.zoom:
            case Zoom.FOLDERS:
                return draw_folder(run.label, self._counts.of(index), width)
            case Zoom.DOTS:
                return draw_dots(row, self._cell, width)
            case Zoom.CHIPS:
                return draw_chips(run, self._cell)
            case Zoom.ROWS:
                return draw_table_row(self.table, self._cell_of(run.tests[0]), width, self._clock())

    def _cell(self, test: str) -> Cell:
        cell = self._cell_of(test)
        return cell._replace(over=f"{cell.over} cursor".lstrip()) if test == self.test else cell
