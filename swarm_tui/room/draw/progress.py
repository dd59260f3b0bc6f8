"""Draws how far something is that a person waits for."""

from __future__ import annotations

from typing import Final

from swarm_tui.model.progress import Progress, bar
from swarm_tui.room.draw.parts import Line, Part, cut_line, width_of

SMALL_BAR: Final = 10
LONG_BAR: Final = 40


def progress_parts(progress: Progress, bar_width: int = SMALL_BAR) -> list[Part]:
    """Return what is being done, a bar of this width where it is known how much of it is, and the numbers."""
    parts = [Part(progress.doing, "running")]
    if bar_width and progress.part is not None:
        done, rest = bar(progress.part, bar_width)
        parts += [Part(" "), Part(done, "running"), Part(rest, "faint")]
        return [*parts, Part(f" {progress.numbers}" if progress.numbers else "", "running")]
    return [Part(progress.words, "running")]


def draw_progress(progress: Progress, width: int, spot: str = "") -> Line:
    """Return a line of its own, with as much of a bar as there is room for."""
    words = width_of(progress_parts(progress, 0)) + 3
    bar_width = min(LONG_BAR, width - words)
    parts = [Part(" "), *progress_parts(progress, bar_width if bar_width >= SMALL_BAR // 2 else 0)]
    return cut_line([part._replace(spot=spot) for part in parts], width)
