"""A line of the log."""

from __future__ import annotations

import time
from typing import Final

from swarm_tui.model.state import LogLine
from swarm_tui.model.states import MARKS
from swarm_tui.model.text import plain
from swarm_tui.room.draw.parts import Line, Part, cut_line, cut_middle, pad_text

LEVELS: Final = {"info": ("·", "faint"), "warning": ("▲", "warning"), "error": ("!", "error")}
ROLE_OF_WORD: Final = {mark.word: mark.role for mark in MARKS.values()}
NAME_WIDTH: Final = 44


def draw_log_line(line: LogLine, width: int) -> Line:
    sign, role = LEVELS.get(line.level, ("·", "faint"))
    text = plain(line.text)
    if line.level == "info":
        role = ROLE_OF_WORD.get(text.split(":", 1)[0], "")
    parts = [Part(time.strftime("%H:%M:%S ", time.localtime(line.at)), "faint"), Part(f"{sign} ", role or "faint")]
    if line.test:
        name = plain(line.test.rsplit("::", 1)[-1], 300)
        size = min(NAME_WIDTH, max(8, width // 3))
        parts.append(Part(f"{pad_text(cut_middle(name, size), size)}  ", "dim"))
    parts.append(Part(text, role))
    return cut_line(parts, width)
