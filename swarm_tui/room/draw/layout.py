"""The place of each test in the grid: rows of runs of cells, for each of the three zooms."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from rich.cells import cell_len

from swarm_tui.room.draw.arrange import Group, Zoom

LABEL_LIMIT: Final = 26
CHIP_WIDTH: Final = 27
COLUMN_GAP: Final = 2
THOUSANDS: Final = 1_000
"""More tests than this are summed up where not all are seen."""
WIDEST_COLUMN: Final = 24
"""Groups with more tests than this go on below in their column."""


class CellRun(NamedTuple):
    """Cells side by side, with the label of their group in front or, without cells, as a heading."""

    label: str
    label_x: int
    label_width: int
    x: int
    step: int
    tests: tuple[str, ...]
    size: int
    """How many tests the whole group has; shown in headings."""


Row = tuple[CellRun, ...]


class Layout(NamedTuple):
    """The rows of the grid and the place of each test."""

    rows: list[Row]
    places: dict[str, tuple[int, int]]
    """Row and x of each test's cell."""
    zoom: Zoom

    def test_at(self, row: int, x: int) -> str | None:
        """Return the test in a row that is nearest to x; None in a row without tests."""
        best: tuple[int, str] | None = None
        runs = self.rows[row] if 0 <= row < len(self.rows) else ()
        for run in (run for run in runs if run.tests):
            index = max(0, min(len(run.tests) - 1, (x - run.x) // run.step))
            distance = max(run.x - x, x - run.x - len(run.tests) * run.step + 1, 0)
            if best is None or distance < best[0]:
                best = (distance, run.tests[index])
        return best[1] if best else None

    def order(self) -> list[str]:
        return list(self.places)


def largest_zoom(groups: Sequence[Group], width: int, height: int) -> Zoom:
    """Return the largest zoom in which all tests are seen at once; without one, dots, or the folders of thousands."""
    tests = sum(len(group.tests) for group in groups)
    headings = sum(bool(group.label) for group in groups)
    if tests + headings + 1 <= height:
        # The table has the names of its columns above it.
        return Zoom.ROWS
    columns = max(1, width // CHIP_WIDTH)
    if headings + sum(-(-len(group.tests) // columns) for group in groups) <= height:
        return Zoom.CHIPS
    is_summed_up = tests > THOUSANDS and len(groups) > 1 and len(_dots(groups, width, height)) > height
    return Zoom.FOLDERS if is_summed_up else Zoom.DOTS


def lay_out(groups: Sequence[Group], zoom: Zoom, width: int, height: int) -> Layout:
    match zoom:
        case Zoom.FOLDERS:
            rows = [_whole(group, width) for group in groups]
        case Zoom.DOTS:
            rows = _dots(groups, width, height)
        case Zoom.CHIPS:
            rows = _under_headings(groups, width, max(1, width // CHIP_WIDTH))
        case Zoom.ROWS:
            rows = _under_headings(groups, width, 1)
    places: dict[str, tuple[int, int]] = {}
    # With several columns of groups the order goes down a column, not across: groups stay together.
    runs = [(run.label_x, number, run) for number, row in enumerate(rows) for run in row]
    for _, row, run in sorted(runs, key=itemgetter(0, 1)):
        for number, test in enumerate(run.tests):
            places[test] = (row, run.x + number * run.step)
    return Layout(rows, places, zoom)


def _dots(groups: Sequence[Group], width: int, height: int) -> list[Row]:
    if not groups:
        return []
    label_width = min(LABEL_LIMIT, max(cell_len(group.label) for group in groups), width // 3)
    start_of_cells = label_width + 1 if label_width else 0
    room = max(1, width - start_of_cells)
    columns = 1
    if len(groups) > 1 and sum(-(-len(group.tests) // room) for group in groups) > height:
        cells = min(WIDEST_COLUMN, max(len(group.tests) for group in groups))
        columns = max(1, (width + COLUMN_GAP) // (start_of_cells + cells + COLUMN_GAP))
    column_width = (width + COLUMN_GAP) // columns
    room = max(1, column_width - COLUMN_GAP - start_of_cells)
    pieces = [(group, start) for group in groups for start in range(0, len(group.tests), room)]
    length = -(-len(pieces) // columns)
    rows: list[list[CellRun]] = [[] for _ in range(length)]
    for number, (group, start) in enumerate(pieces):
        column, row = divmod(number, length)
        left = column * column_width
        rows[row].append(_run(group, left, label_width, left + start_of_cells, 1, start, room))
    return [tuple(row) for row in rows]


def _run(group: Group, label_x: int, label_width: int, x: int, step: int, start: int, room: int) -> CellRun:
    tests = group.tests[start : start + room]
    return CellRun(group.label if start == 0 else "", label_x, label_width, x, step, tests, len(group.tests))


def _whole(group: Group, width: int) -> Row:
    return (CellRun(group.label, 0, width, 0, 1, group.tests, len(group.tests)),)


def _under_headings(groups: Sequence[Group], width: int, columns: int) -> list[Row]:
    rows: list[Row] = []
    for group in groups:
        if group.label:
            rows.append((CellRun(group.label, 0, width, 0, 1, (), len(group.tests)),))
        cells, step = group._replace(label=""), width // columns
        rows += [(_run(cells, 0, 0, 0, step, start, columns),) for start in range(0, len(group.tests), columns)]
    return rows
