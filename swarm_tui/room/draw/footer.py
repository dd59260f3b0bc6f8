"""The last line of the screen: the keys that matter here, or what has just happened."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.room.actions import Action, KeyMap, key_name
from swarm_tui.room.draw.parts import Line, Part, cut_line, spread, whole_entries, width_of


def draw_footer(actions: Sequence[Action], keys: KeyMap, width: int) -> Line:
    """Return the footer: whole entries only, what is not possible now dimmed, the key of the help always there."""
    entries: list[list[Part]] = []
    last: list[Part] = []
    for action in actions:
        key = keys.first_key(action)
        if not action.label or not key:
            continue
        role, label_role = ("faint", "faint") if action.why_not() else ("key", "dim")
        entry = [Part(key_name(key), role, f"do:{action.id}"), Part(f" {action.label}", label_role, f"do:{action.id}")]
        if action.id == "room.help":
            last = entry
        else:
            entries.append(entry)
    right = [*last, Part(" ")]
    left = whole_entries(entries, max(0, width - width_of(right) - 3))
    return spread([Part(" "), *left], right, width)


def draw_message(text: str, level: str, width: int) -> Line:
    role = {"error": "error", "warning": "warning", "good": "good"}.get(level, "")
    return cut_line([Part(" "), Part(text, role)], width)
