"""Lines of styled text as plain data: parts with a role. `colours.py` converts roles to styles.

A role is one or more words, for example "running" or "running cursor". `colours.py` has the list. A spot names the
target of a click on the part; "" if the part is not clickable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Span(NamedTuple):
    """A piece of one line."""

    text: str
    role: str = ""
    spot: str = ""


Line = Sequence[Span]


def width_of(line: Line) -> int:
    return sum(cell_len(part.text) for part in line)


def spot_at(line: Line, x: int) -> str:
    """Return the spot of the part at a cell of the line, or ""."""
    for part in line:
        x -= cell_len(part.text)
        if x < 0:
            return part.spot
    return ""


def text_of(line: Line) -> str:
    return "".join(part.text for part in line)


def cut_text(text: str, width: int) -> str:
    """Return the text in at most `width` cells. An ellipsis replaces the end of longer texts."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    return set_cell_size(text, width - 1).rstrip() + "…"


def cut_middle(text: str, width: int) -> str:
    """Return the text in at most `width` cells, cut in the middle: both ends of a node id matter."""
    if cell_len(text) <= width:
        return text
    if width < 8:
        return cut_text(text, width)
    tail_width = (width - 1) * 3 // 5
    head = set_cell_size(text, width - 1 - tail_width)
    tail = text[-tail_width:]
    while cell_len(tail) > tail_width:
        tail = tail[1:]
    return f"{head}…{tail}"


def pad_text(text: str, width: int) -> str:
    return set_cell_size(cut_text(text, width), width)


def align_right(text: str, width: int) -> str:
    text = cut_text(text, width)
    return " " * (width - cell_len(text)) + text


def cut_line(line: Line, width: int) -> list[Span]:
    kept: list[Span] = []
    left = width
    for place, part in enumerate(line):
        size = cell_len(part.text)
        if size < left or (size == left and place == len(line) - 1):
            kept.append(part)
            left -= size
            continue
        is_last = not any(rest.text for rest in line[place + 1 :])
        if size == left and is_last:
            kept.append(part)
        elif left > 0:
            kept.append(part._replace(text=set_cell_size(part.text, left - 1) + "…"))
        break
    return kept


def spread(left: Line, right: Line, width: int) -> list[Span]:
    """Return a line with `left` and `right` at its two ends. If it is too long, `left` is cut."""
    right_width = width_of(right)
    if right_width >= width:
        return cut_line(left, width)
    kept = cut_line(left, width - right_width)
    return [*kept, Span(" " * (width - right_width - width_of(kept))), *right]


def whole_entries(entries: Iterable[Line], width: int, gap: int = 2) -> list[Span]:
    """Join entries with a gap. The first entry that does not fit and all entries after it are left out."""
    joined: list[Span] = []
    used = 0
    for entry in entries:
        size = width_of(entry) + (gap if joined else 0)
        if used + size > width:
            break
        if joined:
            joined.append(Span(" " * gap))
        joined.extend(entry)
        used += size
    return joined


def wrap_text(text: str, width: int, limit: int = 1_000) -> list[str]:
    """Break the text into lines of at most `width` cells, at spaces if possible."""
    width = max(width, 1)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        rest = paragraph.rstrip()
        while cell_len(rest) > width and len(lines) < limit:
            head = _head(rest, width)
            space = head.rfind(" ")
            if space > width // 3 and rest[len(head) : len(head) + 1] != " ":
                head = head[:space]
            lines.append(head.rstrip())
            rest = rest[len(head) :].lstrip()
        lines.append(rest)
        if len(lines) >= limit:
            break
    return lines[:limit]


def fold_line(line: Line, width: int, limit: int = 20) -> list[Line]:
    """Break a line into lines that fit. All lines but the first begin with a continuation mark."""
    width = max(width, 3)
    rows: list[list[Span]] = [[]]
    left = width
    for part in line:
        rest = part.text
        while cell_len(rest) > left and len(rows) < limit:
            head = _head(rest, left)
            head = head if cell_len(head) <= left else ""
            rows[-1].append(part._replace(text=head))
            rest = rest[len(head) :]
            rows.append([Span("…", "faint")])
            left = width - 1
        rows[-1].append(part._replace(text=rest))
        left -= min(left, cell_len(rest))
    return [row if width_of(row) <= width else cut_line(row, width) for row in rows]


def _head(text: str, width: int) -> str:
    # Take at least one character, even if it is wider than the line, so that the loop above ends.
    size, used = 0, 0
    for character in text:
        size += cell_len(character)
        if size > width and used:
            break
        used += 1
    return text[:used]
