"""Draws the head of the agent screen: the test, the state of its agent, and the tabs. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len

from swarm_tui.model.formatting import duration
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.draw.glyphs import glyph_of, role_of, word_of
from swarm_tui.room.draw.parts import Line, Part, cut_middle, cut_text, spread, width_of


def draw_about(record: TestRecord, now: float, width: int) -> list[Line]:
    """Return one line about the test, and one with the question when its agent asks something."""
    facts = [Part(f"{glyph_of(record)} {word_of(record)}", role_of(record))]
    if record.launched_at is not None:
        facts.append(Part(f" · {duration((record.ended_at or now) - record.launched_at)}", "dim"))
    name = cut_middle(plain(record.test, 500), max(20, width * 2 // 3))
    room_left = width - cell_len(name) - width_of(facts) - 6
    if record.reason and room_left > 20:
        facts.append(Part(f" · {cut_text(plain(record.reason, 500), room_left)}", "dim"))
    lines: list[Line] = [spread([Part(f" {name}", "strong")], [*facts, Part(" ")], width)]
    if record.question:
        question = [Part(" asks: ", "waiting"), Part(plain(record.question, 500))]
        lines.append(spread(question, [Part("m answers ", "key")], width))
    return lines


def draw_tabs(words: Mapping[str, str], shown: str) -> Line:
    parts = [Part(" ")]
    for name, word in words.items():
        parts += [Part(f" {plain(word, 60)} ", "key underline" if name == shown else "dim", f"tab:{name}"), Part(" ")]
    return parts
