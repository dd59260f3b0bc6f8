"""Draws the Patterns and Hosts screens: the strip below the grid, rows, and the details of a pattern or a host."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from rich.cells import cell_len

from swarm_tui.failures.alerts import saved_text, still_held
from swarm_tui.failures.events import Alert
from swarm_tui.failures.patterns import Pattern
from swarm_tui.hosts.lines import HostLine
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import age, counted, duration
from swarm_tui.model.spec import HostSettings
from swarm_tui.model.text import plain
from swarm_tui.money.forecast import cost_words
from swarm_tui.room.draw.glyphs import glyph_of, role_of
from swarm_tui.room.draw.spans import (
    Line,
    Span,
    align_right,
    cut_line,
    cut_middle,
    pad_text,
    spread,
    whole_entries,
    width_of,
    wrap_text,
)

KIND_ROLES: Final = {
    "failing": "unresolved",
    "waiting": "waiting",
    "blocked": "blocked",
    "held": "warning",
    "editing": "impl_fix",
}

Alerts = Mapping[str, Alert]
Records = Mapping[str, TestRecord]


def draw_strip(patterns: Sequence[Pattern], alerts: Alerts, records: Records, width: int) -> list[Line]:
    """Return the strip: the most important pattern and the number of patterns. Without patterns it is empty."""
    if not patterns:
        return []
    first = next((each for each in patterns if _held_for(each, alerts, records)), patterns[0])
    held = _held_for(first, alerts, records)
    more = [Span(f"  {counted(len(patterns), 'pattern')} ", "faint", "pattern:0"), Span("4 ", "key", "pattern:0")]
    line: list[Span] = [
        *([Span(" alert", "warning", "pattern:0")] if first.cause in alerts else []),
        Span(f" {len(first.tests):,} {first.kind}, same cause", KIND_ROLES[first.kind], "pattern:0"),
        *([Span(f", {held:,} held", "warning", "pattern:0")] if held else []),
        Span(f": {plain(first.cause, 400)}", "", "pattern:0"),
    ]
    if first.shared:
        line.append(Span(f" · {first.shared[0]}", "dim", "pattern:0"))
    return [spread(line, more, width)]


def draw_pattern_row(pattern: Pattern, alerts: Alerts, records: Records, width: int) -> Line:
    held = _held_for(pattern, alerts, records)
    line = [
        Span(f"{len(pattern.tests):>5,} ", "strong"),
        Span(f"{pattern.kind:8}", KIND_ROLES[pattern.kind]),
        Span("! " if pattern.cause in alerts else "  ", "warning"),
        *([Span(f"{held:,} held ", "warning")] if held else []),
        Span(plain(pattern.cause, 400)),
    ]
    shared = Span(f"  {', '.join(pattern.shared[:1])}", "dim")
    # The panel next to the list shows all shared traits. In a row they would leave less space for the cause.
    return cut_line([*line, shared] if pattern.shared and width_of([*line, shared]) <= width else line, width)


def _held_for(pattern: Pattern, alerts: Alerts, records: Records) -> int:
    alert = alerts.get(pattern.cause)
    return len(still_held(alert, records)) if alert is not None else 0


def draw_pattern_detail(pattern: Pattern, alerts: Alerts, records: Records, width: int) -> list[Line]:
    """Return a pattern in full: an example, shared traits, its alert, its cost, and the tests."""
    lines: list[Line] = [[Span(text, "strong")] for text in wrap_text(pattern.example, width, 12)]
    members = [records[test] for test in pattern.tests if test in records]
    where = plain(pattern.cause, 400).partition(" · ")[2]
    facts = [(where, "dim")] if where else []
    facts += [(shared, "dim") for shared in pattern.shared]
    facts += [(fact, "warning") for fact in _alert_facts(alerts.get(pattern.cause), records)]
    facts += [(words, "dim") for words in filter(None, [cost_words(members)])]
    for fact, role in facts:
        wrapped = wrap_text(fact, max(8, width - 2), 4)
        lines += [[Span("  " if number else "· ", "faint"), Span(text, role)] for number, text in enumerate(wrapped)]
    lines.append(())
    for record in members:
        name = cut_middle(plain(record.test, 1000), max(8, width - 2))
        lines.append([Span(f"{glyph_of(record)} ", role_of(record)), Span(name)])
    return lines


def _alert_facts(alert: Alert | None, records: Records) -> list[str]:
    if alert is None:
        return []
    at = time.strftime("%H:%M", time.localtime(alert.at))
    facts = [f"alert at {at}, after {counted(len(alert.tests), 'test')}"] if alert.tests else []
    if held := still_held(alert, records):
        facts.append(f"{counted(len(held), 'test')} held: {plain(alert.why_held, 300)}. Press r to release.")
        facts.append(f"saved so far: {saved_text(alert, records)}")
    elif alert.is_released:
        facts.append(f"{counted(len(alert.held), 'test')} held earlier, now released")
    return facts


WIDEST_NAME: Final = 28
SILENT_AFTER: Final = 90.0
"""Hosts report twice a minute. An older report is highlighted."""
_WHEN_BACK: Final = "Its agents continue to run there. swarm-tui resumes them when it answers again."


def name_width(lines: Sequence[HostLine], width: int) -> int:
    """Return the width of the column of names."""
    return min(WIDEST_NAME, max(width // 4, 8), max((cell_len(plain(line.name, 100)) for line in lines), default=8))


def draw_host_row(line: HostLine, names: int, width: int, now: float) -> Line:
    """Return the line of a host: its state and load, or why they are unknown."""
    sign, role = _sign(line)
    slots = f"{line.taken}/{line.slots}" if line.slots is not None else f"{line.taken}"
    row = [Span(f"{sign} ", role), Span(pad_text(cut_middle(plain(line.name, 100), names), names), role or "strong")]
    row += [Span(f" {align_right(slots, 7)}"), Span(f" {line.waiting:>3} wait" if line.waiting else " " * 9, "waiting")]
    if line.word == "idle":
        row[-1] = Span("     idle", "dim")
    if line.has_problem:
        return cut_line([*row, Span(f"  {_problem(line, now)}", "error" if line.is_gone else "warning")], width)
    if not line.is_there:
        text = f"{line.word}{f': {line.reason}' if line.reason else ''}"
        return cut_line([*row, Span(f"  {plain(text, 300)}", "error" if line.stage == "unreleased" else "dim")], width)
    load = "" if line.load is None else f"load {line.load:.1f}/{line.processors or '?'}"
    is_loaded = line.load is not None and 0 < line.processors < line.load
    columns = [
        Span(pad_text(load, 13), "warning" if is_loaded else "dim"),
        Span(pad_text(_heard(line, now), 10), "warning" if _is_quiet(line, now) else "dim"),
        Span(f"{line.finished:>5,} done", "dim"),
        Span(f"{line.unsolved:>4,} unsolved" if line.unsolved else "", "unresolved"),
    ]
    row += [Span("  "), *whole_entries([[part] for part in columns], width - width_of(row) - 2, 1)]
    return cut_line(row, width)


def draw_host_detail(
    line: HostLine, access: HostSettings | None, records: Sequence[TestRecord], width: int, now: float
) -> list[Line]:
    """Return the details of a host and its tests, running ones first."""
    lines: list[Line] = [[Span(text, "strong")] for text in wrap_text(plain(line.name, 300), width, 4)]
    if access is not None:
        port = f":{access.port}" if access.port != 22 else ""
        facts = f"{access.user}@{access.address}{port} · {access.host_dir}"
        lines += [[Span(text, "dim")] for text in wrap_text(plain(facts, 500), width, 3)]
    if line.has_problem:
        lines += [[Span(text, "warning")] for text in wrap_text(_problem(line, now), width, 6)]
        if line.tests:
            text = "Its tests were moved back to the queue." if line.is_gone else _WHEN_BACK
            lines += [[Span(row, "dim")] for row in wrap_text(text, width, 3)]
    if line.slots is not None:
        lines.append(cut_line([Span("slots ", "dim"), Span(f"{line.taken} taken, {line.free} free")], width))
    if line.load is not None:
        load = f"{line.load:.2f} on {line.processors} processors" if line.processors else f"{line.load:.2f}"
        lines.append(cut_line([Span("load ", "dim"), Span(load)], width))
    if line.heard_at is not None:
        lines.append(cut_line([Span("last report ", "dim"), Span(age(now - line.heard_at))], width))
    lines.append(())
    for record in sorted(records, key=lambda record: (record.is_finished, record.test)):
        name = cut_middle(plain(record.test, 1000), max(8, width - 2))
        lines.append([Span(f"{glyph_of(record)} ", role_of(record)), Span(name)])
    return lines


def _sign(line: HostLine) -> tuple[str, str]:
    if line.stage == "making":
        return "◌", "launching"
    if line.stage == "ended":
        return "-", "stopped"
    if line.is_gone or line.stage == "unreleased":
        return "✗", "error"
    if line.lost_since is not None:
        return "?", "stale"
    return ("●" if line.taken else "·"), ""


def _problem(line: HostLine, now: float) -> str:
    since = f" for {duration(now - line.lost_since)}" if line.lost_since is not None else ""
    why = f": {plain(line.reason, 300)}" if line.reason else ""
    return f"lost{why}" if line.is_gone else f"silent{since}{why}"


def _heard(line: HostLine, now: float) -> str:
    return "" if line.heard_at is None else age(now - line.heard_at)


def _is_quiet(line: HostLine, now: float) -> bool:
    return line.heard_at is not None and line.taken > 0 and now - line.heard_at > SILENT_AFTER
