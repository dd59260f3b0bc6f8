"""Groups, order, layout."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter
from typing import Any, Final, NamedTuple

from rich.cells import cell_len

from swarm_tui.failures.patterns import cause_of
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.results import MARKS
from swarm_tui.model.spec import name_of_test
from swarm_tui.model.text import plain
from swarm_tui.questions.inbox import attention_order
from swarm_tui.room.draw.glyphs import PILLS, word_of


class Zoom(StrEnum):
    """Size of a test in the grid. Thousands of tests are shown as counts by file or folder."""

    FOLDERS = "folders"
    DOTS = "dots"
    CHIPS = "chips"
    ROWS = "rows"


GROUPINGS: Final = ("file", "state", "result", "cause", "host", "none")
SORTINGS: Final = ("file", "state", "need", "duration", "cost", "name")
WATCH_GROUPINGS: Final = ("project", "host", "type", "state", "none")
"""Groupings of agents outside a sweep. Each of their labels is a grouping too."""
WATCH_SORTINGS: Final = ("name", "state", "need", "duration", "cost")
LABELS_OFFERED: Final = 12
_LABEL: Final = "label "
_LASTING_GROUPINGS: Final = ("file", "none", "project", "host", "type")


@dataclass(frozen=True, slots=True)
class GridOptions:
    """View settings of the grid."""

    zoom: Zoom = Zoom.DOTS
    group: str = "file"
    sort: str = "file"
    pills: frozenset[str] = frozenset()
    """Show only tests with these pills; empty for all."""
    words: str = ""
    """The filter typed after `/`."""
    only: frozenset[str] | None = None
    """Show only these tests, for example those of a pattern."""
    only_name: str = ""

    @property
    def is_filtering(self) -> bool:
        return bool(self.pills or self.words or self.only is not None)

    @property
    def moves_by_state(self) -> bool:
        """Whether a change of a test can move it in the grid or hide it."""
        is_lasting = self.group in _LASTING_GROUPINGS or self.group.startswith(_LABEL)
        return bool(self.pills or self.words or not is_lasting or self.sort not in ("file", "name"))


class Group(NamedTuple):
    """Tests with the same label, in order."""

    label: str
    tests: tuple[str, ...]


def arrange(records: Mapping[str, TestRecord], choice: GridOptions, now: float) -> list[Group]:
    shown = [record for record in _in_scope(records, choice) if _fits(choice, record)]
    key = _sort_key(choice.sort, now)
    if key is not None:
        shown.sort(key=key)
    if choice.group == "none":
        return [Group("", tuple(record.test for record in shown))] if shown else []
    groups: dict[str, list[str]] = {}
    label_of = _label_function(choice.group)
    for record in shown:
        groups.setdefault(label_of(record), []).append(record.test)
    names = short_file_names(groups) if choice.group == "file" else {}
    ordered = sorted(groups.items(), key=_group_order(choice.group))
    return [Group(names.get(label) or plain(label, 300), tuple(tests)) for label, tests in ordered]


def _in_scope(records: Mapping[str, TestRecord], choice: GridOptions) -> Iterable[TestRecord]:
    if choice.only is None:
        return records.values()
    return (record for test, record in records.items() if test in choice.only)


def _fits(choice: GridOptions, record: TestRecord) -> bool:
    if choice.pills and not any(record.mark in PILLS[pill] for pill in choice.pills):
        return False
    return not choice.words or fits_words(choice.words, searched_text(record))


def fits_words(words: str, text: str) -> bool:
    """Return whether a text has all of these words, ignoring case. `!word` requires that the word is absent."""
    lowered = text.casefold()
    for word in words.casefold().split():
        if word.startswith("!"):
            if len(word) > 1 and word[1:] in lowered:
                return False
        elif word not in lowered:
            return False
    return True


def searched_text(record: TestRecord) -> str:
    """Return the text of a test that filters search."""
    details = f"{record.baseline} {record.group} {record.host}"
    return f"{record.test} {word_of(record)} {record.block} {details} {record.reason} {record.question}"


def _sort_key(sort: str, now: float) -> Callable[[TestRecord], Any] | None:
    match sort:
        case "file":
            return lambda record: (record.file or record.test, record.line)
        case "state":
            places = {mark: place for place, mark in enumerate(MARKS)}
            return lambda record: places[record.mark]
        case "need":
            return attention_order
        case "duration":
            return lambda record: -_duration(record, now)
        case "cost":
            return lambda record: -record.spending.dollars
        case "name":
            return lambda record: name_of_test(record.test)
        case _:
            return None


def _duration(record: TestRecord, now: float) -> float:
    return (record.ended_at or now) - record.launched_at if record.launched_at is not None else -1.0


def saved_options(zoom: str, group: str, sort: str, *, is_watch: bool) -> GridOptions:
    """Return the saved view settings of tests, or of agents outside a sweep; defaults for unknown values."""
    is_known = group in WATCH_GROUPINGS or group.startswith(_LABEL) if is_watch else group in GROUPINGS
    return GridOptions(
        zoom=Zoom(zoom) if zoom in list(Zoom) else Zoom.DOTS,
        group=group if is_known else "project" if is_watch else "file",
        sort=sort if sort in SORTINGS else "file",
    )


def watch_groupings(records: Iterable[TestRecord]) -> tuple[str, ...]:
    """Return the groupings of agents outside a sweep, including each of their labels, most frequent first."""
    labels = Counter(
        trait.partition("=")[0] for record in records for trait in record.traits if trait.startswith(_LABEL)
    )
    return (*WATCH_GROUPINGS, *(name for name, _ in labels.most_common(LABELS_OFFERED)))


def _label_function(group: str) -> Callable[[TestRecord], str]:
    """Return the function that returns the group of a record."""
    label = _GROUP_LABELS.get(group)
    if label is not None:
        return label
    is_label = group.startswith(_LABEL)
    beginning = f"{group}=" if is_label else f"{group} "
    shown_from = len(_LABEL) if is_label else len(beginning)
    none = f"no {group}"

    def label_of(record: TestRecord) -> str:
        return next((trait[shown_from:] for trait in record.traits if trait.startswith(beginning)), "") or none

    return label_of


_GROUP_LABELS: Final[dict[str, Callable[[TestRecord], str]]] = {
    "file": lambda record: record.file or record.test.split("::", 1)[0],
    "state": lambda record: record.state.value,
    "result": lambda record: word_of(record) if record.result is not None else "no result yet",
    "cause": lambda record: cause_of(record) or "nothing failed",
    "host": lambda record: record.host or "no host yet",
}
_STATES_IN_ORDER: Final = (
    "waiting", "running", "launching", "pulling", "queued", "done", "stopped",
)  # fmt: skip


def _group_order(group: str) -> Callable[[tuple[str, list[str]]], Any]:
    match group:
        case "state":
            return lambda entry: _STATES_IN_ORDER.index(entry[0])
        case "result":
            words = [mark.word for mark in MARKS.values()]
            return lambda entry: words.index(entry[0]) if entry[0] in words else len(words)
        case "cause":
            return lambda entry: (entry[0] == "nothing failed", -len(entry[1]), entry[0])
        case _:
            return lambda entry: natural(entry[0])


_DIGITS: Final = re.compile(r"(\d+)")


def natural(text: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdecimal() and part.isascii() else (1, 0, part) for part in _DIGITS.split(text)]


def short_file_names(files: Iterable[str]) -> dict[str, str]:
    """Return a unique short name for each file. Folders are left out if the file names differ."""
    names = list(files)
    shared = posixpath.commonpath(names) if len(names) > 1 and not any(posixpath.isabs(name) for name in names) else ""
    for shorten in (_stem, lambda name: _with_folders(name, shared)):
        shortened = {name: plain(shorten(name), 300) or name for name in names}
        if len(set(shortened.values())) == len(names):
            return shortened
    return {name: plain(name, 300) or repr(name) for name in names}


def _stem(name: str) -> str:
    base = name.rpartition("/")[2].removesuffix(".py")
    return base.removeprefix("test_") or base


def _with_folders(name: str, shared: str) -> str:
    rest = name[len(shared) + 1 :] if shared and name.startswith(f"{shared}/") else name
    folder = rest.rpartition("/")[0]
    return f"{folder}/{_stem(rest)}" if folder else _stem(rest)


LABEL_LIMIT: Final = 26
CHIP_WIDTH: Final = 27
COLUMN_GAP: Final = 2
THOUSANDS: Final = 1_000
"""If not all tests are visible, more tests than this are shown as counts."""
WIDEST_COLUMN: Final = 24
"""Groups with more tests than this continue in the next row of their column."""


class CellRun(NamedTuple):
    """Adjacent cells, after the label of their group. A run without cells is a heading."""

    label: str
    label_x: int
    label_width: int
    x: int
    step: int
    tests: tuple[str, ...]
    size: int
    """Number of tests of the whole group, shown in headings."""


Row = tuple[CellRun, ...]


class Layout(NamedTuple):
    """Rows of the grid and the position of each test."""

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
    """Return the largest zoom that shows all tests. If none does, return dots, or folders for thousands of tests."""
    tests = sum(len(group.tests) for group in groups)
    headings = sum(bool(group.label) for group in groups)
    if tests + headings + 1 <= height:
        # The table has a line with the names of its columns.
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
    # Groups in several columns are ordered down the columns, so that neighbours stay together.
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
