"""The table that a benchmark beside other programs prints: each figure, and how many times the room's it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.bench.watched import Program

Figures = Mapping[str, float]
"""What was measured of one program; the smaller a figure, the better."""


@dataclass
class Table:
    """Rows of figures; of several rounds the best of each figure is kept, as other work may have held one up."""

    columns: Sequence[str]
    rows: dict[str, dict[str, float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, figures: Figures) -> None:
        """Take in what one round measured."""
        best = self.rows.setdefault(name, {})
        for column, value in figures.items():
            best[column] = min(value, best.get(column, value))

    def measure(self, program: Program, work: Callable[[], Figures]) -> None:
        """Measure a program; one that is not there, or never gets there, is told of below the table."""
        if shutil.which(program.words[0]) is None:
            self.missing[program.name] = "not installed"
            return
        try:
            self.add(program.name, work())
        except TimeoutError as error:
            self.missing[program.name] = str(error)

    def text(self) -> str:
        """Return the table."""
        own = self.rows.get("room", {})
        lines = [["", *self.columns]]
        for name, figures in self.rows.items():
            lines.append([name, *(_cell(figures.get(column), own.get(column)) for column in self.columns)])
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.columns) + 1)]
        shown = [
            f"{line[0]:<{widths[0]}}  "
            + "  ".join(f"{cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
            for line in lines
        ]
        missing = (f"{name}: {why}" for name, why in self.missing.items() if name not in self.rows)
        return "\n".join([*shown, *missing])


def _cell(value: float | None, own: float | None) -> str:
    if value is None:
        return "–"
    figure = f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    if value is own or not own:
        return f"{figure}       "
    return f"{figure} {_ratio(value / own):>6}"


def _ratio(ratio: float) -> str:
    return f"x{ratio:.0f}" if ratio >= 10 else f"x{ratio:.1f}" if ratio >= 0.1 else f"x{ratio:.2f}"


def machine() -> str:
    """Return what else went on: a figure taken on a busy machine says less."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} cores, load {load}"
