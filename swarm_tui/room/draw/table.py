"""The grid as a table: a row for each test, with the columns that have something to say, the names first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from rich.cells import cell_len

from swarm_tui.model.formatting import duration
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.draw.cells import Cell, short_name
from swarm_tui.room.draw.glyphs import TRY_SIGNS, glyph_of, role_of, word_of
from swarm_tui.room.draw.parts import Line, Part, align_right, cut_line, cut_middle, cut_text, pad_text

GAP: Final = 2
LAST_WORDS: Final = 24
"""The agent's last words are shown where there is room for so much of them."""


class Column(NamedTuple):
    """A column of the table; `test` and `last words` have the width that the table gives them."""

    name: str
    width: int
    sort: str = ""
    """The order that a click on its head chooses."""
    is_right: bool = False


STATE: Final = Column("state", 15, "need")
TEST: Final = Column("test", 0, "file")
TIME: Final = Column("time", 7, "duration", is_right=True)
WORDS: Final = Column("last words", 0)


class Table(NamedTuple):
    """What the tests of a table need of it."""

    name_width: int = 4
    tries: int = 0
    changes: int = 0
    has_cost: bool = False
    hosts: frozenset[str] = frozenset()
    noun: str = "test"
    """What the rows are."""

    def including(self, record: TestRecord) -> Table:
        """Return what is needed with this test too."""
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
    kinds = [change.kind.replace("_", " ").lower() for change in record.harvest.changes if change.status == "SUCCEEDED"]
    return plain(", ".join(kinds))


def columns_for(table: Table, width: int) -> list[tuple[Column, int]]:
    """Return the columns with their widths. Names get what they need up to half of the width, and what is left over."""
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
        # The last words come before what is also said by the state, and before the host.
        if is_used and left >= column.width + GAP + spare:
            chosen.append(column)
            left -= column.width + GAP
    order = ("tries", "changes", "time", "cost", "host")
    columns = [STATE, TEST, *sorted(chosen, key=lambda column: order.index(column.name))]
    # What is left goes to the last words, or to the names where that is too little for words.
    has_words = left >= LAST_WORDS + GAP
    more = max(0, min(table.name_width - wanted, left - LAST_WORDS - GAP)) if has_words else left
    sizes = {"test": wanted + more}
    if has_words:
        columns.append(WORDS)
        sizes["last words"] = left - more - GAP
    return [(column, max(1, sizes.get(column.name, column.width))) for column in columns]


def draw_table_heading(table: Table, width: int, sort: str) -> Line:
    """Return the names of the columns; the one that orders the rows carries an arrow, a click on one sorts by it."""
    sorting = {"file": "test", "name": "test", "duration": "time", "need": "state"}.get(sort, sort)
    line: list[Part] = []
    for column, size in columns_for(table, width):
        is_sorting = column.name == sorting
        name = table.noun if column is TEST else column.name
        name = f"{name}↑" if is_sorting else name
        text = align_right(name, size) if column.is_right else pad_text(name, size)
        line += [Part(text, "heading" if is_sorting else "faint", f"sort:{column.sort}" if column.sort else "")]
        line += [Part(" " * GAP)]
    return cut_line(line[:-1], width)


def draw_table_row(table: Table, cell: Cell, width: int, now: float) -> Line:
    line: list[Part] = []
    for column, size in columns_for(table, width):
        text, role = _column_text(column.name, cell, size, now)
        text = align_right(text, size) if column.is_right else pad_text(text, size)
        line += [Part(text, f"{role} {cell.over}".rstrip()), Part(" " * GAP, cell.over)]
    return cut_line(line[:-1], width)


def _column_text(name: str, cell: Cell, size: int, now: float) -> tuple[str, str]:
    record = cell.record
    match name:
        case "state":
            word = word_of(record)
            # Where `limited until 18:22` is too long, the time says more than the word.
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
    """Return what there is to read about a test: what it asks or is stuck on, then its agent's own last words."""
    if record.question:
        return record.question
    if record.stuck or record.is_hindered:
        return record.stuck or record.condition
    said = record.harvest.summary.strip().split("\n", 1)[0] if record.is_finished else ""
    return said or record.last_line or record.reason


def draw_tries(record: TestRecord, size: int) -> str:
    """Return the last tries as signs, oldest first: `✗✗✓`."""
    signs = "".join(TRY_SIGNS[made.word][0] for made in record.tries)
    return signs if len(signs) <= size else f"{len(signs) - size + 1}…"[: size // 2] + signs[-(size // 2) :]
