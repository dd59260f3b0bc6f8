"""The lines of the help and of the palette."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from swarm_tui.room.actions import Action, key_name
from swarm_tui.room.draw.parts import Line, Part, cut_line, pad_text

KEYS_WIDTH = 14


class HelpEntry(NamedTuple):
    """An action with the keys that it has on a screen."""

    action: Action
    keys: tuple[str, ...]
    why_not: str = ""


def fitting_entries(entries: Iterable[HelpEntry], words: str) -> list[HelpEntry]:
    """Return the entries that have all the words in their keys, name or description."""
    wanted = words.casefold().split()
    return [entry for entry in entries if all(word in _searched(entry) for word in wanted)]


def _searched(entry: HelpEntry) -> str:
    keys = " ".join(f"{key} {key_name(key)}" for key in entry.keys)
    return f"{keys} {entry.action.id} {entry.action.label} {entry.action.description}".casefold()


def draw_help(entries: Sequence[HelpEntry], width: int) -> list[Line]:
    """Return one line for each entry: keys, what it does, its name for the config file."""
    return [draw_entry(entry, width) for entry in entries]


def draw_entry(entry: HelpEntry, width: int) -> Line:
    """Return the line of one entry; one that is not possible now with the reason."""
    keys = " ".join(key_name(key) for key in entry.keys)
    name_width = 21 if width >= 80 else 0
    text = f"{entry.action.description}" + (f" ({entry.why_not})" if entry.why_not else "")
    room = max(10, width - KEYS_WIDTH - name_width - (2 if name_width else 0))
    line = [
        Part(pad_text(keys, KEYS_WIDTH), "faint" if entry.why_not else "key"),
        Part(pad_text(text, room), "faint" if entry.why_not else ""),
    ]
    if name_width:
        line.append(Part(f"  {entry.action.id}", "faint"))
    return cut_line(line, width)
