"""A line of the log."""

from __future__ import annotations

import time

from swarm_tui.model.state import LogLine
from swarm_tui.model.text import plain
from swarm_tui.room.draw.parts import Line, Part, cut_line

LEVELS = {"info": ("·", "faint"), "warning": ("▲", "warning"), "error": ("!", "error")}


def draw_log_line(line: LogLine, width: int) -> Line:
    """Give a log line: time, level, test, text."""
    sign, role = LEVELS.get(line.level, ("·", "faint"))
    parts = [Part(time.strftime("%H:%M:%S ", time.localtime(line.at)), "faint"), Part(f"{sign} ", role)]
    if line.test:
        parts.append(Part(f"{plain(line.test.rsplit('::', 1)[-1], 200)}  ", "dim"))
    parts.append(Part(plain(line.text), role if line.level != "info" else ""))
    return cut_line(parts, width)
