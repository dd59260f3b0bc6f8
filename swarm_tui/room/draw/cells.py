"""The cells of the grid as dots and chips, and the names of tests and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from swarm_tui.model.node_ids import name_of_test
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.draw.glyphs import glyph_of, role_of
from swarm_tui.room.draw.layout import CellRun
from swarm_tui.room.draw.parts import Line, Part, cut_line, cut_middle, pad_text, width_of


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
    name = plain(name_of_test(record.test), 300).removeprefix("test_")
    stem = record.file.rsplit("/", 1)[-1].removesuffix(".py").removeprefix("test_")
    for known in (stem, stem.split("_", 1)[0]):
        if known and name.startswith(f"{known}_") and len(name) > len(known) + 1:
            return name[len(known) + 1 :]
    return name or plain(record.test, 300)


def draw_heading(label: str, count: int, width: int) -> Line:
    return cut_line([Part(cut_middle(label, max(4, width - 8)), "heading"), Part(f" {count:,}", "faint")], width)
