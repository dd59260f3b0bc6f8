"""The cells of the grid: a dot, a chip or a table row for one test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from swarm_tui.model.formatting import duration
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.draw.glyphs import TRY_SIGNS, glyph_of, role_of, word_of
from swarm_tui.room.draw.layout import CellRun
from swarm_tui.room.draw.parts import Line, Part, align_right, cut_line, cut_middle, cut_text, pad_text, width_of


class Cell(NamedTuple):
    """What is drawn of one test in the grid."""

    record: TestRecord
    over: str = ""
    """Roles that lie over it: `cursor`, `marked`, `pending`."""


def draw_dots(runs: tuple[CellRun, ...], cell_of: Callable[[str], Cell], width: int) -> list[Part]:
    """Return a row of dots: neighbours that look alike are one part."""
    line: list[Part] = []
    used = 0
    for run in runs:
        line.append(Part(" " * (run.label_x - used)))
        line.append(Part(pad_text(cut_middle(run.label, run.label_width), run.label_width), "dim"))
        line.append(Part(" " * (run.x - run.label_x - run.label_width)))
        role, text = None, ""
        for test in run.tests:
            record, over = cell_of(test)
            cell_role = f"{role_of(record)} {over}" if over else role_of(record)
            if cell_role != role:
                if text:
                    line.append(Part(text, role or ""))
                role, text = cell_role, ""
            text += glyph_of(record)
        line.append(Part(text, role or ""))
        used = run.x + len(run.tests)
    return line


def draw_chips(run: CellRun, cell_of: Callable[[str], Cell]) -> list[Part]:
    line: list[Part] = []
    for test in run.tests:
        record, over = cell_of(test)
        name = cut_middle(short_name(record), run.step - 4)
        line.append(Part(glyph_of(record, True), f"{role_of(record)} {over}"))
        line.append(Part(f" {name}", f"{'' if not record.is_finished else 'dim'} {over}"))
        line.append(Part(" " * max(0, run.step - 3 - width_of([Part(name)]))))
    return line


def short_name(record: TestRecord) -> str:
    """Return the name of a test without what its file says already."""
    name = plain(record.test.rsplit("::", 1)[-1], 300).removeprefix("test_")
    stem = record.file.rsplit("/", 1)[-1].removesuffix(".py").removeprefix("test_")
    for known in (stem, stem.split("_", 1)[0]):
        if known and name.startswith(f"{known}_") and len(name) > len(known) + 1:
            return name[len(known) + 1 :]
    return name or plain(record.test, 300)


def draw_heading(label: str, count: int, width: int) -> Line:
    return cut_line([Part(cut_middle(label, max(4, width - 8)), "heading"), Part(f" {count:,}", "faint")], width)


class Column(NamedTuple):
    """A column of the table; the one with width 0 takes what is left."""

    name: str
    width: int
    from_width: int
    """The table must be so wide for this column to be there."""
    is_right: bool = False


COLUMNS: Final = (
    Column("state", 15, 0),
    Column("test", 0, 0),
    Column("tries", 7, 56),
    Column("changes", 12, 90),
    Column("time", 7, 40, True),
    Column("cost", 7, 64, True),
    Column("host", 10, 130),
    Column("last line", 44, 110),
)


def columns_for(width: int) -> list[tuple[Column, int]]:
    fitting = [column for column in COLUMNS if width >= column.from_width]
    fixed = sum(column.width for column in fitting) + 2 * (len(fitting) - 1)
    return [(column, column.width or max(4, width - fixed)) for column in fitting]


def draw_table_heading(width: int, sort: str) -> Line:
    """Return the names of the columns; the one that orders the rows carries an arrow."""
    sorting = {"file": "test", "name": "test", "duration": "time", "need": "state"}.get(sort, sort)
    line: list[Part] = []
    for column, size in columns_for(width):
        name = f"{column.name}↑" if column.name == sorting else column.name
        text = align_right(name, size) if column.is_right else pad_text(name, size)
        line += [Part(text, "faint"), Part("  ")]
    return cut_line(line[:-1], width)


def draw_table_row(cell: Cell, width: int, now: float) -> Line:
    line: list[Part] = []
    for column, size in columns_for(width):
        text, role = _column_text(column.name, cell, size, now)
        text = align_right(text, size) if column.is_right else pad_text(text, size)
        line += [Part(text, f"{role} {cell.over}".rstrip()), Part("  ", cell.over)]
    return line[:-1]


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
            kinds = [
                change.kind.replace("_", " ").lower()
                for change in record.harvest.changes
                if change.status == "SUCCEEDED"
            ]
            return cut_text(plain(", ".join(kinds)), size), "dim"
        case "time":
            if record.launched_at is None:
                return "", "dim"
            return duration((record.ended_at or now) - record.launched_at), "dim"
        case "cost":
            return record.spending.text, "dim"
        case "host":
            return cut_text(plain(record.host), size), "dim"
        case _:
            said = record.question or record.reason or record.stuck or (record.is_hindered and record.condition)
            return cut_text(plain(said or record.last_line), size), "warning" if record.stuck else "dim"


def draw_tries(record: TestRecord, size: int) -> str:
    """Return the last tries as signs, oldest first: `✗✗✓`."""
    signs = "".join(TRY_SIGNS[made.word][0] for made in record.tries)
    return signs if len(signs) <= size else f"{len(signs) - size + 1}…"[: size // 2] + signs[-(size // 2) :]
