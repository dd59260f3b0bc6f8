"""Parses the markdown of messages into lines of text with a few styles; nothing in it acts as markup."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple


class Style(StrEnum):
    """What a run of text is; the room decides how it looks."""

    PLAIN = "plain"
    HEADING = "heading"
    BOLD = "bold"
    CODE = "code"
    DIM = "dim"
    TOOL = "tool"
    ERROR = "error"
    NOTE = "note"
    ADDED = "added"
    REMOVED = "removed"


class StyledText(NamedTuple):
    """Some text of one style."""

    text: str
    style: Style = Style.PLAIN


Runs = tuple[StyledText, ...]

_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_HEADING: Final = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_BULLET: Final = re.compile(r"^(\s*)[-*+]\s+(?=\S)")
_QUOTE: Final = re.compile(r"^\s*>\s?")
_RULE: Final = re.compile(r"^\s*([-*_])(?:\s*\1){2,}\s*$")
_INLINE: Final = re.compile(
    r"`([^`\n]+)`|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?!\w)|\[([^\]\n]+)\]\(([^)\s]+)\)"
)


def read_markdown(text: str) -> list[Runs]:
    """Return the lines of a message as styled runs, without fences and marks."""
    lines: list[Runs] = []
    is_code = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            is_code = not is_code
        elif is_code:
            lines.append((StyledText("  " + line, Style.CODE),))
        elif heading := _HEADING.match(line):
            lines.append((StyledText(heading.group(1), Style.HEADING),))
        elif _RULE.match(line):
            lines.append((StyledText("─" * 8, Style.DIM),))
        elif quote := _QUOTE.match(line):
            lines.append((StyledText("│ ", Style.DIM), *_inline(line[quote.end() :])))
        elif bullet := _BULLET.match(line):
            lines.append((StyledText(f"{bullet.group(1)}• "), *_inline(line[bullet.end() :])))
        else:
            lines.append(_inline(line))
    return lines


def _inline(line: str) -> Runs:
    runs = []
    position = 0
    for found in _INLINE.finditer(line):
        if found.start() > position:
            runs.append(StyledText(line[position : found.start()]))
        code, bold, emphasis, label, target = found.groups()
        if code is not None:
            runs.append(StyledText(code, Style.CODE))
        elif label is not None:
            # A label may lie, so the address of a link is shown.
            runs += [StyledText(label), StyledText(f" ({target})", Style.DIM)]
        else:
            runs.append(StyledText(bold or emphasis, Style.BOLD))
        position = found.end()
    if position < len(line) or not runs:
        runs.append(StyledText(line[position:]))
    return tuple(runs)
