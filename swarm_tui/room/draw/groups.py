"""Patterns and blockers: the strip below the grid, the rows of the lists, and the detail of one."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.insight.blockers import Blocker
from swarm_tui.insight.costs import cost_words
from swarm_tui.insight.patterns import Pattern
from swarm_tui.model.formatting import counted
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.draw.glyphs import glyph_of, role_of
from swarm_tui.room.draw.parts import Line, Part, cut_line, cut_middle, spread, width_of, wrap_text

KIND_ROLES = {
    "failing": "unresolved", "waiting": "waiting", "blocked": "blocked",
    "blocker": "blocked", "question": "waiting", "pattern": "impl_fix", "hard to use": "accent",
}  # fmt: skip
DETAIL_WIDTH = 20
"""A narrower piece of a detail is of no use: then only the panel beside the list shows it."""


def draw_strip(patterns: Sequence[Pattern], width: int) -> list[Line]:
    """Return the strip: the largest pattern, and how many more there are. Without any it takes no line."""
    if not patterns:
        return []
    first = patterns[0]
    more = [Part(f"  {counted(len(patterns), 'pattern')} ", "faint", "pattern:0"), Part("4 ", "key", "pattern:0")]
    line: list[Part] = [
        Part(f" {len(first.tests):,} {first.kind} alike: ", KIND_ROLES[first.kind], "pattern:0"),
        Part(first.cause, "", "pattern:0"),
    ]
    if first.shared:
        line.append(Part(f" · {first.shared[0]}", "dim", "pattern:0"))
    return [spread(line, more, width)]


def draw_pattern_row(pattern: Pattern, width: int) -> Line:
    line = [Part(f"{len(pattern.tests):>5,} ", "strong"), Part(f"{pattern.kind:8}", KIND_ROLES[pattern.kind])]
    line.append(Part(pattern.cause))
    shared = Part(f"  {', '.join(pattern.shared[:1])}", "dim")
    # The panel beside the list shows all of it; here it would take space from the cause.
    return cut_line([*line, shared] if pattern.shared and width_of([*line, shared]) <= width else line, width)


def draw_pattern_detail(pattern: Pattern, records: Sequence[TestRecord], width: int) -> list[Line]:
    """Return the details of a pattern: an example of its cause, what its tests have in common, and the tests."""
    lines: list[Line] = [[Part(text, "strong")] for text in wrap_text(pattern.example, width, 12)]
    about = (*pattern.shared, *filter(None, [cost_words(records)]))
    lines += [cut_line([Part("· ", "faint"), Part(words, "dim")], width) for words in about]
    lines.append(())
    for record in records:
        name = cut_middle(plain(record.test, 1000), max(8, width - 2))
        lines.append([Part(f"{glyph_of(record)} ", role_of(record)), Part(name)])
    return lines


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
