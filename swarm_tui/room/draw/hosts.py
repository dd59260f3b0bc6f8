"""Hosts: a line for each, and the details of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from swarm_tui.insight.host_lines import HostLine
from swarm_tui.model.formatting import age, duration
from swarm_tui.model.hosts import HostAccess
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.draw.glyphs import glyph_of, role_of
from swarm_tui.room.draw.parts import (
    Line,
    Part,
    align_right,
    cut_line,
    cut_middle,
    pad_text,
    whole_entries,
    width_of,
    wrap_text,
)

WIDEST_NAME: Final = 28
SILENT_AFTER: Final = 90.0
"""A host says a word twice a minute; an older one is shown as such."""
_WHEN_BACK: Final = "When it answers again its agents are taken up where they are."


def name_width(lines: Sequence[HostLine], width: int) -> int:
    """Return how wide the column of names is."""
    return min(WIDEST_NAME, max(width // 4, 8), max((cell_len(plain(line.name, 100)) for line in lines), default=8))


def draw_host_row(line: HostLine, names: int, width: int, now: float) -> Line:
    """Return a host as a line: what is known of it, as far as it fits, or why nothing is."""
    sign, role = _sign(line)
    slots = f"{line.taken}/{line.slots}" if line.slots is not None else f"{line.taken}"
    row = [Part(f"{sign} ", role), Part(pad_text(plain(line.name, 100), names), role or "strong")]
    row += [Part(f" {align_right(slots, 7)}"), Part(f" {line.waiting:>3} wait" if line.waiting else " " * 9, "waiting")]
    if line.has_trouble:
        return cut_line([*row, Part(f"  {_trouble(line, now)}", "error" if line.is_gone else "warning")], width)
    if not line.is_there:
        text = "is being made" if line.stage == "making" else f"given back{f': {line.reason}' if line.reason else ''}"
        return cut_line([*row, Part(f"  {plain(text, 300)}", "dim")], width)
    load = "" if line.load is None else f"load {line.load:.1f}/{line.processors or '?'}"
    is_loaded = line.load is not None and 0 < line.processors < line.load
    columns = [
        Part(pad_text(load, 13), "warning" if is_loaded else "dim"),
        Part(pad_text(_heard(line, now), 10), "warning" if _is_quiet(line, now) else "dim"),
        Part(f"{line.finished:>5,} done", "dim"),
        Part(f"{line.unsolved:>4,} unsolved" if line.unsolved else "", "unresolved"),
    ]
    row += [Part("  "), *whole_entries([[part] for part in columns], width - width_of(row) - 2, 1)]
    return cut_line(row, width)


def draw_host_detail(
    line: HostLine, access: HostAccess | None, records: Sequence[TestRecord], width: int, now: float
) -> list[Line]:
    """Return what is known of a host, and the tests whose agents ran there, those at work first."""
    lines: list[Line] = [[Part(text, "strong")] for text in wrap_text(plain(line.name, 300), width, 4)]
    if access is not None:
        port = f":{access.port}" if access.port != 22 else ""
        facts = f"{access.user}@{access.address}{port} · {access.host_dir}"
        lines += [[Part(text, "dim")] for text in wrap_text(plain(facts, 500), width, 3)]
    if line.has_trouble:
        lines += [[Part(text, "warning")] for text in wrap_text(_trouble(line, now), width, 6)]
        if line.tests:
            text = "Its tests have gone back to the queue." if line.is_gone else _WHEN_BACK
            lines += [[Part(row, "dim")] for row in wrap_text(text, width, 3)]
    if line.slots is not None:
        lines.append(cut_line([Part("slots ", "dim"), Part(f"{line.taken} taken, {line.free} free")], width))
    if line.load is not None:
        load = f"{line.load:.2f} on {line.processors} processors" if line.processors else f"{line.load:.2f}"
        lines.append(cut_line([Part("load ", "dim"), Part(load)], width))
    if line.heard_at is not None:
        lines.append(cut_line([Part("last word ", "dim"), Part(age(now - line.heard_at))], width))
    lines.append(())
    for record in sorted(records, key=lambda record: (record.is_finished, record.test)):
        name = cut_middle(plain(record.test, 1000), max(8, width - 2))
        lines.append([Part(f"{glyph_of(record)} ", role_of(record)), Part(name)])
    return lines


def _sign(line: HostLine) -> tuple[str, str]:
    if line.stage == "making":
        return "◌", "launching"
    if line.stage == "ended":
        return "-", "stopped"
    if line.is_gone:
        return "✗", "failed"
    if line.lost_since is not None:
        return "?", "stale"
    return ("●" if line.taken else "·"), ""


def _trouble(line: HostLine, now: float) -> str:
    since = f" for {duration(now - line.lost_since)}" if line.lost_since is not None else ""
    why = f": {plain(line.reason, 300)}" if line.reason else ""
    return f"given up{why}" if line.is_gone else f"silent{since}{why}"


def _heard(line: HostLine, now: float) -> str:
    return "" if line.heard_at is None else age(now - line.heard_at)


def _is_quiet(line: HostLine, now: float) -> bool:
    return line.heard_at is not None and line.taken > 0 and now - line.heard_at > SILENT_AFTER
