"""Lines of the streams: of the log, and of the merged tail."""

from __future__ import annotations

import time
from typing import Final

from swarm_tui.model.node_ids import name_of_test
from swarm_tui.model.state import LogLine
from swarm_tui.model.states import MARKS
from swarm_tui.model.text import plain
from swarm_tui.room.draw.parts import Line, Part, cut_line, cut_middle, pad_text
from swarm_tui.room.draw.transcript import ROLE_OF
from swarm_tui.transcripts.entries import Role
from swarm_tui.transcripts.merged import MergedEntry

LEVELS: Final = {"info": ("·", "faint"), "warning": ("▲", "warning"), "error": ("!", "error")}
ROLE_OF_WORD: Final = {mark.word: mark.role for mark in MARKS.values()}
TEST_WIDTH: Final = 44
AGENT_WIDTH: Final = 24
_LABELS: Final = {Role.THINKING: "thinks", Role.TEXT: ""}


def draw_log_line(line: LogLine, width: int) -> Line:
    sign, role = LEVELS.get(line.level, ("·", "faint"))
    text = plain(line.text)
    if line.level == "info":
        role = ROLE_OF_WORD.get(text.split(":", 1)[0], "")
    parts = [Part(time.strftime("%H:%M:%S ", time.localtime(line.at)), "faint"), Part(f"{sign} ", role or "faint")]
    if line.test:
        name = plain(name_of_test(line.test), 300)
        size = min(TEST_WIDTH, max(8, width // 3))
        parts.append(Part(f"{pad_text(cut_middle(name, size), size)}  ", "dim"))
    parts.append(Part(text, role))
    return cut_line(parts, width)


def draw_tail_line(merged: MergedEntry, name: str, width: int) -> Line:
    entry = merged.first.entry
    clock = time.strftime("%H:%M:%S", time.localtime(merged.first.at)) if merged.first.at else " " * 8
    who = f"{len(merged.agents)} agents" if merged.is_shared else cut_middle(plain(name, 200), AGENT_WIDTH)
    lines = [line for line in entry.text.split("\n") if line.strip()]
    words = plain(lines[0], 600) if lines else ""
    more = f" … (+{len(lines) - 1})" if len(lines) > 1 else ""
    parts = [
        Part(f"{clock} "),
        Part("! " if entry.is_error else "  ", "failed"),
        Part(pad_text(who, AGENT_WIDTH if width >= 80 else 12), "marked" if merged.is_shared else "accent"),
        Part(f" {_LABELS.get(entry.role, entry.role.value):7}", "faint"),
        Part(f"{entry.tool}  " if entry.tool else "", "key"),
        Part(words, "unresolved" if entry.is_error else ROLE_OF[entry.role]),
        Part(more, "faint"),
    ]
    if merged.is_shared:
        parts.append(Part(f"  same line from {len(merged.agents)} agents", "dim"))
    return cut_line([part for part in parts if part.text], width)
