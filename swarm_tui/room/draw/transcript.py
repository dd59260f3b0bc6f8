"""Draws the lines of a transcript: pure, from what the transcripts core lays out to parts with roles."""

from __future__ import annotations

from typing import Final

from swarm_tui.room.draw.parts import Line as DrawnLine
from swarm_tui.room.draw.parts import Part
from swarm_tui.transcripts.entries import Role
from swarm_tui.transcripts.layout import Line
from swarm_tui.transcripts.markdown import Style

ROLE_OF: Final = {
    Role.USER: "accent",
    Role.AGENT: "",
    Role.THINKING: "faint",
    Role.CALL: "running",
    Role.RESULT: "dim",
    Role.SYSTEM: "dim",
    Role.TEXT: "",
}
STYLE_OF: Final = {
    Style.PLAIN: "",
    Style.HEADING: "strong",
    Style.BOLD: "bold",
    Style.CODE: "launching",
    Style.DIM: "faint",
    Style.TOOL: "key",
    Style.ERROR: "",
    Style.NOTE: "warning",
    Style.ADDED: "added",
    Style.REMOVED: "removed",
}


def draw_transcript_line(line: Line, found: str = "") -> DrawnLine:
    """Return the line as parts; `found` are words that are highlighted where they occur."""
    role = ROLE_OF[line.role]
    parts = [Part(line.prefix, "failed" if line.is_error and line.prefix.strip() else "faint")]
    for run in line.runs:
        style = (
            "unresolved" if line.is_error and run.style in (Style.PLAIN, Style.ERROR) else STYLE_OF[run.style] or role
        )
        parts += _highlighted(run.text, style, found) if found else [Part(run.text, style)]
    return parts


def _highlighted(text: str, role: str, found: str) -> list[Part]:
    folded, words = text.casefold(), found.casefold()
    if len(folded) != len(text):
        # Some letters have more than one letter in lower case: then places do not match.
        return [Part(text, role)]
    parts = []
    start = 0
    while (at := folded.find(words, start)) >= 0:
        parts += [Part(text[start:at], role), Part(text[at : at + len(words)], "match")]
        start = at + len(words)
    return [*parts, Part(text[start:], role)]
