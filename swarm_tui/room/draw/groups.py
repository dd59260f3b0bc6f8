"""Patterns and blockers: the strip below the grid, the rows of the lists, and the detail of one."""

from __future__ import annotations

from swarm_tui.insight.blockers import Blocker
from swarm_tui.model.text import plain
from swarm_tui.room.draw.parts import Line, Part, cut_line, cut_middle, width_of, wrap_text

KIND_ROLES = {
    "failing": "unresolved", "held": "warning", "waiting": "waiting", "blocked": "blocked",
    "blocker": "blocked", "question": "waiting", "pattern": "impl_fix", "hard to use": "accent",
}  # fmt: skip
DETAIL_WIDTH = 20
"""A narrower piece of a detail is of no use: then only the panel beside the list shows it."""


def draw_blocker_row(blocker: Blocker, width: int) -> Line:
    line = [
        Part(f"{len(blocker.tests):>4,} ", "strong"),
        Part(f"{blocker.kind:12}", KIND_ROLES.get(blocker.kind, "")),
        Part(blocker.title),
    ]
    if blocker.detail and blocker.detail != blocker.title and width_of(line) + DETAIL_WIDTH <= width:
        line.append(Part(f"  {blocker.detail.splitlines()[0]}", "dim"))
    return cut_line(line, width)


def draw_blocker_detail(blocker: Blocker, width: int) -> list[Line]:
    """Return the details of a blocker: what is needed, in the agent's words, and its tests."""
    lines: list[Line] = [[Part(text, "strong")] for text in wrap_text(blocker.title, width, 6)]
    if blocker.detail:
        lines += [(), *([Part(text)] for text in wrap_text(blocker.detail, width, 60))]
    lines.append(())
    lines += [[Part("· ", "faint"), Part(cut_middle(plain(test, 1000), max(8, width - 2)))] for test in blocker.tests]
    return lines
