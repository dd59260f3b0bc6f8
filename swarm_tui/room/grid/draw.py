"""Cells, table, columns, folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import duration
from swarm_tui.model.spec import name_of_test
from swarm_tui.model.text import plain
from swarm_tui.room.draw.frame import draw_bar
from swarm_tui.room.draw.glyphs import PILLS, TRY_SIGNS, glyph_of, mark_of_pill, role_of, word_of
from swarm_tui.room.draw.spans import (
    Line,
    Span,
    align_right,
    cut_line,
    cut_middle,
    cut_text,
    pad_text,
    whole_entries,
    width_of,
)
from swarm_tui.room.grid.draw_layout import CellRun, Group, Row


class Cell(NamedTuple):
    """A test as it is drawn in the grid."""

    record: TestRecord
    over: str = ""
    """Roles on top of the test's role: `cursor`, `marked`, `pending`."""


def draw_dots(runs: tuple[CellRun, ...], cell_of: Callable[[str], Cell], width: int) -> list[Span]:
    """Return a row of dots. Neighbours with the same style are one part."""
    line: list[Span] = []
    used = 0
    for run in runs:
        line.append(Span(" " * (run.label_x - used)))
        line.append(Span(pad_text(cut_middle(run.label, run.label_width), run.label_width), "dim"))
        line.append(Span(" " * (run.x - run.label_x - run.label_width)))
        role, text = None, ""
        for test in run.tests:
            record, over = cell_of(test)
            cell_role = f"{role_of(record)} {over}" if over else role_of(record)
            if cell_role != role:
                if text:
                    line.append(Span(text, role or ""))
                role, text = cell_role, ""
            text += glyph_of(record)
        line.append(Span(text, role or ""))
        used = run.x + len(run.tests)
    return line


def draw_chips(run: CellRun, cell_of: Callable[[str], Cell]) -> list[Span]:
    line: list[Span] = []
    for test in run.tests:
        record, over = cell_of(test)
        name = cut_middle(short_name(record), run.step - 4)
        line.append(Span(glyph_of(record, True), f"{role_of(record)} {over}"))
        line.append(Span(f" {name}", f"{'' if not record.is_finished else 'dim'} {over}"))
        line.append(Span(" " * max(0, run.step - 3 - width_of([Span(name)]))))
    return line


def short_name(record: TestRecord) -> str:
    """Return the name of a test without words that its file name has."""
    name = plain(name_of_test(record.test), 300).removeprefix("test_")
    stem = record.file.rsplit("/", 1)[-1].removesuffix(".py").removeprefix("test_")
    for prefix in (stem, stem.split("_", 1)[0]):
        if prefix and name.startswith(f"{prefix}_") and len(name) > len(prefix) + 1:
            return name[len(prefix) + 1 :]
    return name or plain(record.test, 300)


def draw_heading(label: str, count: int, width: int) -> Line:
    return cut_line([Span(cut_middle(label, max(4, width - 8)), "heading"), Span(f" {count:,}", "faint")], width)


FOLDER_GAP: Final = 2
COUNT_WIDTH: Final = 6
LONGEST_NAME: Final = 40
LONGEST_BAR: Final = 30


def by_folder(groups: Sequence[Group], height: int) -> list[Group]:
    """Return the groups by file if they fit into the height, else groups by the smallest folders that fit."""
    folders = [group.tests[0].partition("::")[0].split("/")[:-1] for group in groups]
    depth = max(map(len, folders), default=0)
    found = list(groups)
    while len(found) > height and depth:
        merged: dict[str, list[str]] = {}
        for folder, group in zip(folders, groups, strict=True):
            merged.setdefault("/".join(folder[:depth]), []).extend(group.tests)
        if len(merged) < 2:
            break
        found = [Group(plain(name, 300) or "/", tuple(tests)) for name, tests in merged.items()]
        depth -= 1
    return found


class FolderCounts:
    """Number of tests in each state for each row, updated when tests change."""

    def __init__(self, rows: Sequence[Row], mark_of: Callable[[str], str]) -> None:
        self._marks = {test: mark_of(test) for row in rows for run in row for test in run.tests}
        self._counts = [Counter(self._marks[test] for run in row for test in run.tests) for row in rows]

    def of(self, row: int) -> Mapping[str, int]:
        return self._counts[row]

    def change(self, test: str, row: int, mark: str) -> bool:
        """Count a test under a new mark. Return whether the mark has changed."""
        before = self._marks.get(test, "")
        if before == mark:
            return False
        self._marks[test] = mark
        self._counts[row][before] -= 1
        self._counts[row][mark] += 1
        return True


def draw_folder(label: str, counts: Mapping[str, int], width: int) -> Line:
    """Return a row: name, number of tests, a bar of their states, and the number for each state."""
    total = sum(counts.values())
    name_width = max(8, min(LONGEST_NAME, width // 3))
    line = [
        Span(pad_text(cut_middle(label, name_width), name_width)),
        Span(align_right(f"{total:,}", COUNT_WIDTH), "faint"),
    ]
    left = width - name_width - COUNT_WIDTH - FOLDER_GAP
    bar = min(LONGEST_BAR, left // 2)
    if bar >= 6:
        line += [Span(" " * FOLDER_GAP), *(Span(part.text, part.role) for part in draw_bar(counts, bar))]
        left -= bar + FOLDER_GAP
    pills = []
    for pill, marks in PILLS.items():
        if number := sum(counts.get(mark, 0) for mark in marks):
            pills.append([Span(f"{mark_of_pill(pill).glyph}{number:,}", mark_of_pill(pill).role)])
    return cut_line([*line, Span(" " * FOLDER_GAP), *whole_entries(pills, max(0, left), 1)], width)


GAP: Final = 2
LAST_WORDS: Final = 24
"""Width that must be free for the column of the agents' last output."""


class Column(NamedTuple):
    """A column of the table. The table computes the width of `test` and `last words`."""

    name: str
    width: int
    sort: str = ""
    """The sort order that a click on its heading selects."""
    is_right: bool = False


STATE: Final = Column("state", 15, "need")
TEST: Final = Column("test", 0, "file")
TIME: Final = Column("time", 7, "duration", is_right=True)
WORDS: Final = Column("last output", 0)


class Table(NamedTuple):
    """Facts about the tests of a table that decide its columns."""

    name_width: int = 4
    tries: int = 0
    changes: int = 0
    has_cost: bool = False
    hosts: frozenset[str] = frozenset()
    noun: str = "test"
    """The noun for a row."""

    def including(self, record: TestRecord) -> Table:
        """Return the facts with one more test."""
        return Table(
            max(self.name_width, cell_len(short_name(record))),
            max(self.tries, min(8, len(record.tries))),
            max(self.changes, min(20, cell_len(changes_of(record)))),
            self.has_cost or record.spending.is_known,
            self.hosts | {record.host} if record.host and len(self.hosts) < 2 else self.hosts,
            self.noun,
        )


def table_of(records: Iterable[TestRecord], noun: str = "test") -> Table:
    table = Table(noun=noun)
    for record in records:
        table = table.including(record)
    return table


def changes_of(record: TestRecord) -> str:
    kinds = [change.kind.replace("_", " ").lower() for change in record.pulled.changes if change.status == "SUCCEEDED"]
    return plain(", ".join(kinds))


def columns_for(table: Table, width: int) -> list[tuple[Column, int]]:
    """Return the columns with their widths.

    Names get up to half of the width first, and later what the other columns leave.
    """
    optional = [
        (TIME, True, 0),
        (Column("tries", max(5, table.tries)), table.tries > 0, 0),
        (Column("cost", 7, "cost", is_right=True), table.has_cost, 0),
        (Column("changes", max(7, table.changes)), table.changes > 0, LAST_WORDS + GAP),
        (Column("host", 10), len(table.hosts) > 1, LAST_WORDS + GAP),
    ]
    wanted = max(12, min(table.name_width, width // 2))
    left = width - STATE.width - GAP - wanted
    chosen: list[Column] = []
    for column, is_used, spare in optional:
        # The last output has priority over the reason (which the state repeats) and the host.
        if is_used and left >= column.width + GAP + spare:
            chosen.append(column)
            left -= column.width + GAP
    order = ("tries", "changes", "time", "cost", "host")
    columns = [STATE, TEST, *sorted(chosen, key=lambda column: order.index(column.name))]
    # The remaining width goes to the last output, or to the names if it is too small for that.
    has_words = left >= LAST_WORDS + GAP
    more = max(0, min(table.name_width - wanted, left - LAST_WORDS - GAP)) if has_words else left
    sizes = {"test": wanted + more}
    if has_words:
        columns.append(WORDS)
        sizes["last output"] = left - more - GAP
    return [(column, max(1, sizes.get(column.name, column.width))) for column in columns]


def draw_table_heading(table: Table, width: int, sort: str) -> Line:
    """Return the names of the columns. The sorted column has an arrow; a click on a column sorts by it."""
    sorting = {"file": "test", "name": "test", "duration": "time", "need": "state"}.get(sort, sort)
    line: list[Span] = []
    for column, size in columns_for(table, width):
        is_sorting = column.name == sorting
        name = table.noun if column is TEST else column.name
        name = f"{name}↑" if is_sorting else name
        text = align_right(name, size) if column.is_right else pad_text(name, size)
        line += [Span(text, "heading" if is_sorting else "faint", f"sort:{column.sort}" if column.sort else "")]
        line += [Span(" " * GAP)]
    return cut_line(line[:-1], width)


def draw_table_row(table: Table, cell: Cell, width: int, now: float) -> Line:
    line: list[Span] = []
    for column, size in columns_for(table, width):
        text, role = _column_text(column.name, cell, size, now)
        text = align_right(text, size) if column.is_right else pad_text(text, size)
        line += [Span(text, f"{role} {cell.over}".rstrip()), Span(" " * GAP, cell.over)]
    return cut_line(line[:-1], width)


def _column_text(name: str, cell: Cell, size: int, now: float) -> tuple[str, str]:
    record = cell.record
    match name:
        case "state":
            word = word_of(record)
            # If `limited until 18:22` is too long, show the time without the word.
            word = word if len(word) + 3 <= size else word.removeprefix("limited ")
            return f"{glyph_of(record, True)} {word}", role_of(record)
        case "test":
            return cut_middle(short_name(record), size), ""
        case "tries":
            return draw_tries(record, size), "dim"
        case "changes":
            return cut_text(changes_of(record), size), "dim"
        case "time":
            if record.launched_at is None:
                return "", "dim"
            return duration((record.ended_at or now) - record.launched_at), "dim"
        case "cost":
            return record.spending.text, "dim"
        case "host":
            return cut_text(plain(record.host), size), "dim"
        case _:
            return cut_text(plain(last_words(record)), size), "warning" if record.stuck else "dim"


def last_words(record: TestRecord) -> str:
    """Return what to read about a test: its question, why it is stuck, or else its agent's last output."""
    if record.question:
        return record.question
    if record.stuck or record.has_api_error:
        return record.stuck or record.status_detail
    summary = record.pulled.summary.strip().split("\n", 1)[0] if record.is_finished else ""
    return summary or record.last_line or record.reason


def draw_tries(record: TestRecord, size: int) -> str:
    """Return glyphs of the last tries, oldest first: `✗✗✓`."""
    glyphs = "".join(TRY_SIGNS[try_.word][0] for try_ in record.tries)
    return glyphs if len(glyphs) <= size else f"{len(glyphs) - size + 1}…"[: size // 2] + glyphs[-(size // 2) :]
