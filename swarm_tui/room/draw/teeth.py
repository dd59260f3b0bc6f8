"""The teeth of changed tests as lines: what each checks no more, the faults that it misses, what its agent says."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.model.teeth import TestTeeth
from swarm_tui.model.text import plain
from swarm_tui.room.draw.parts import Line, Part, cut_line, cut_middle

_MISSED_SHOWN = 5


def draw_teeth(found: Sequence[TestTeeth], width: int) -> list[Line]:
    """Return lines on changed tests, or none where nothing is to be said of them."""
    lines: list[Line] = []
    for teeth in found:
        if not teeth.words:
            continue
        glyph, role, said = ("○", "warning", "notices nothing") if teeth.is_toothless else ("✓", "good", "as strong")
        if teeth.is_weaker:
            glyph, role, said = "▼", "unresolved", "weaker"
        word = said if teeth.is_measured or teeth.is_weaker else "W measures whether it is weaker"
        lines.append([Part(f"{glyph} ", role), Part(cut_middle(plain(teeth.test, 500), max(10, width - 2)))])
        lines.append(cut_line([Part("  "), Part(word, role), Part(f" · {plain(teeth.words, 300)}", "dim")], width))
        if not teeth.is_weaker:
            continue
        for sign in teeth.signs:
            was = [Part("    - "), Part(plain(sign.before, 200), "removed")]
            now = [Part("    + "), Part(plain(sign.after, 200), "added")]
            lines += [cut_line(line, width) for line, text in ((was, sign.before), (now, sign.after)) if text]
        for fault in teeth.missed[:_MISSED_SHOWN]:
            lines.append(cut_line([Part("    no more noticed: ", "dim"), Part(plain(fault, 300))], width))
        if len(teeth.missed) > _MISSED_SHOWN:
            lines.append([Part(f"    and {len(teeth.missed) - _MISSED_SHOWN} more", "dim")])
    return [[Part("teeth", "heading")], *lines] if lines else []
