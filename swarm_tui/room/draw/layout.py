"""The place of each test in the grid: rows of runs of cells, for each of the three zooms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len

from swarm_tui.room.draw.arrange import Group, Zoom

LABEL_LIMIT: Final = 26
CHIP_WIDTH: Final = 27
COLUMN_GAP: Final = 2


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
        for run in self.rows[row] if 0 <= row < len(self.rows) else ():
            if not run.tests:
                continue
            index = max(0, min(len(run.tests) - 1, (x - run.x) // run.step))
            distance = abs(run.x + index * run.step - x) if x < run.x or x >= run.x + len(run.tests) * run.step else 0
            if best is None or distance < best[0]:
                best = (distance, run.tests[index])
        return best[1] if best else None

    def order(self) -> list[str]:
        """Return all tests in the order in which they are shown."""
        return list(self.places)


def lay_out(groups: Sequence[Group], zoom: Zoom, width: int, height: int) -> Layout:
    """Return the layout of the groups on a panel of this size."""
    match zoom:
        case Zoom.DOTS:
            rows = _dots(groups, width, height)
        case Zoom.CHIPS:
            rows = _under_headings(groups, width, max(1, width // CHIP_WIDTH))
        case Zoom.ROWS:
            rows = _under_headings(groups, width, 1)
    places: dict[str, tuple[int, int]] = {}
    for row, run in _in_reading_order(rows, zoom):
        for number, test in enumerate(run.tests):
            places[test] = (row, run.x + number * run.step)
    return Layout(rows, places, zoom)


def _in_reading_order(rows: list[Row], zoom: Zoom) -> list[tuple[int, CellRun]]:
    # With several columns of groups the order goes down a column, not across: groups stay together.
    runs = [(number, run) for number, row in enumerate(rows) for run in row if run.tests]
    if zoom is Zoom.DOTS and any(len(row) > 1 for row in rows):
        runs.sort(key=lambda entry: (entry[1].label_x, entry[0]))
    return runs


def _dots(groups: Sequence[Group], width: int, height: int) -> list[Row]:
    label_width = min(LABEL_LIMIT, max((cell_len(group.label) for group in groups), default=0), max(0, width // 3))
    gap = 1 if label_width else 0
    room = max(1, width - label_width - gap)
    rows_of_one = sum(-(-len(group.tests) // room) for group in groups)
    widest = max((len(group.tests) for group in groups), default=1)
    columns = 1
    if rows_of_one > height and len(groups) > 1:
        cells = min(widest, 24)
        columns = max(1, (width + COLUMN_GAP) // (label_width + gap + cells + COLUMN_GAP))
    if columns == 1:
        return [
            (_run(group, 0, label_width, label_width + gap, 1, start, room),)
            for group in groups
            for start in range(0, len(group.tests), room)
        ]
    column_width = (width + COLUMN_GAP) // columns
    room = max(1, column_width - COLUMN_GAP - label_width - gap)
    pieces = [(group, start) for group in groups for start in range(0, len(group.tests), room)]
    length = -(-len(pieces) // columns)
    rows: list[list[CellRun]] = [[] for _ in range(min(length, len(pieces)))]
    for number, (group, start) in enumerate(pieces):
        column, row = divmod(number, length)
        left = column * column_width
        rows[row].append(_run(group, left, label_width, left + label_width + gap, 1, start, room))
    return [tuple(row) for row in rows]


def _run(group: Group, label_x: int, label_width: int, x: int, step: int, start: int, room: int) -> CellRun:
    tests = group.tests[start : start + room]
    return CellRun(group.label if start == 0 else "", label_x, label_width, x, step, tests, len(group.tests))


def _under_headings(groups: Sequence[Group], width: int, columns: int) -> list[Row]:
    rows: list[Row] = []
    for group in groups:
        if group.label:
            rows.append((CellRun(group.label, 0, width, 0, 1, (), len(group.tests)),))
        cells, step = group._replace(label=""), max(1, width // columns)
        rows += [(_run(cells, 0, 0, 0, step, start, columns),) for start in range(0, len(group.tests), columns)]
    return rows
