"""Draws patterns: the strip below the grid, rows of the list, and one pattern with its alert and held tests."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from swarm_tui.failures.alerts import saved_text, still_held
from swarm_tui.failures.events import Alert
from swarm_tui.failures.patterns import Pattern
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.money.forecast import cost_words
from swarm_tui.room.draw.glyphs import glyph_of, role_of
from swarm_tui.room.draw.spans import Line, Span, cut_line, cut_middle, spread, width_of, wrap_text

KIND_ROLES: Final = {
    "failing": "unresolved",
    "waiting": "waiting",
    "blocked": "blocked",
    "held": "warning",
    "editing": "impl_fix",
}

Alarms = Mapping[str, Alert]
Records = Mapping[str, TestRecord]


def draw_strip(patterns: Sequence[Pattern], alarms: Alarms, records: Records, width: int) -> list[Line]:
    """Return the strip: the most important pattern and the number of patterns. Without patterns it is empty."""
    if not patterns:
        return []
    first = next((each for each in patterns if _held_for(each, alarms, records)), patterns[0])
    held = _held_for(first, alarms, records)
    more = [Span(f"  {counted(len(patterns), 'pattern')} ", "faint", "pattern:0"), Span("4 ", "key", "pattern:0")]
    line: list[Span] = [
        *([Span(" alert", "warning", "pattern:0")] if first.cause in alarms else []),
        Span(f" {len(first.tests):,} {first.kind}, same cause", KIND_ROLES[first.kind], "pattern:0"),
        *([Span(f", {held:,} held", "warning", "pattern:0")] if held else []),
        Span(f": {plain(first.cause, 400)}", "", "pattern:0"),
    ]
    if first.shared:
        line.append(Span(f" · {first.shared[0]}", "dim", "pattern:0"))
    return [spread(line, more, width)]


def draw_pattern_row(pattern: Pattern, alarms: Alarms, records: Records, width: int) -> Line:
    held = _held_for(pattern, alarms, records)
    line = [
        Span(f"{len(pattern.tests):>5,} ", "strong"),
        Span(f"{pattern.kind:8}", KIND_ROLES[pattern.kind]),
        Span("! " if pattern.cause in alarms else "  ", "warning"),
        *([Span(f"{held:,} held ", "warning")] if held else []),
        Span(plain(pattern.cause, 400)),
    ]
    shared = Span(f"  {', '.join(pattern.shared[:1])}", "dim")
    # The panel next to the list shows all shared traits. In a row they would leave less space for the cause.
    return cut_line([*line, shared] if pattern.shared and width_of([*line, shared]) <= width else line, width)


def _held_for(pattern: Pattern, alarms: Alarms, records: Records) -> int:
    alarm = alarms.get(pattern.cause)
    return len(still_held(alarm, records)) if alarm is not None else 0


def draw_pattern_detail(pattern: Pattern, alarms: Alarms, records: Records, width: int) -> list[Line]:
    """Return a pattern in full: an example, shared traits, its alert, its cost, and the tests."""
    lines: list[Line] = [[Span(text, "strong")] for text in wrap_text(pattern.example, width, 12)]
    members = [records[test] for test in pattern.tests if test in records]
    where = plain(pattern.cause, 400).partition(" · ")[2]
    facts = [(where, "dim")] if where else []
    facts += [(shared, "dim") for shared in pattern.shared]
    facts += [(fact, "warning") for fact in _alarm_facts(alarms.get(pattern.cause), records)]
    facts += [(words, "dim") for words in filter(None, [cost_words(members)])]
    for fact, role in facts:
        wrapped = wrap_text(fact, max(8, width - 2), 4)
        lines += [[Span("  " if number else "· ", "faint"), Span(text, role)] for number, text in enumerate(wrapped)]
    lines.append(())
    for record in members:
        name = cut_middle(plain(record.test, 1000), max(8, width - 2))
        lines.append([Span(f"{glyph_of(record)} ", role_of(record)), Span(name)])
    return lines


def _alarm_facts(alarm: Alert | None, records: Records) -> list[str]:
    if alarm is None:
        return []
    at = time.strftime("%H:%M", time.localtime(alarm.at))
    facts = [f"alert at {at}, after {counted(len(alarm.tests), 'test')}"] if alarm.tests else []
    if held := still_held(alarm, records):
        facts.append(f"{counted(len(held), 'test')} held: {plain(alarm.why_held, 300)}. Press r to release.")
        facts.append(f"saved so far: {saved_text(alarm, records)}")
    elif alarm.is_released:
        facts.append(f"{counted(len(alarm.held), 'test')} held earlier, now released")
    return facts
