"""Lines of styled text as plain data: parts with a role, which `colours.py` turns into styles.

A role is one or more words, for example "running" or "running cursor"; `colours.py` lists them all.
A spot is the name of what a click on the part means; it is "" for text that is only read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Part(NamedTuple):
    """A piece of one line."""

    text: str
    role: str = ""
    spot: str = ""


Line = Sequence[Part]


def width_of(line: Line) -> int:
    return sum(cell_len(part.text) for part in line)


def spot_at(line: Line, x: int) -> str:
    """Return the spot of the part at a cell of the line; "" where there is none."""
    for part in line:
        x -= cell_len(part.text)
        if x < 0:
            return part.spot
    return ""


def text_of(line: Line) -> str:
    return "".join(part.text for part in line)


def cut_text(text: str, width: int) -> str:
    """Return the text in at most `width` cells; an ellipsis where something was cut."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    return set_cell_size(text, width - 1).rstrip() + "…"


def cut_middle(text: str, width: int) -> str:
    """Return the text in at most `width` cells, its two ends kept: of a node id both matter."""
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


def cut_line(line: Line, width: int) -> list[Part]:
    kept: list[Part] = []
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


def spread(left: Line, right: Line, width: int) -> list[Part]:
    """Return `left` and `right` at the two ends of one line; what does not fit is cut from `left`."""
    right_width = width_of(right)
    if right_width >= width:
        return cut_line(left, width)
    kept = cut_line(left, width - right_width)
    return [*kept, Part(" " * (width - right_width - width_of(kept))), *right]


def whole_entries(entries: Iterable[Line], width: int, gap: int = 2) -> list[Part]:
    """Join entries with a gap between; an entry that does not fit whole is left out, and so are all after it."""
    joined: list[Part] = []
    used = 0
    for entry in entries:
        size = width_of(entry) + (gap if joined else 0)
        if used + size > width:
            break
        if joined:
            joined.append(Part(" " * gap))
        joined.extend(entry)
        used += size
    return joined


def wrap_text(text: str, width: int, limit: int = 1_000) -> list[str]:
    """Break the text into lines of at most `width` cells, at spaces where there are some."""
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
    """Return a line of any length as lines that fit; all but the first begin with a mark that they go on."""
    width = max(width, 3)
    rows: list[list[Part]] = [[]]
    left = width
    for part in line:
        rest = part.text
        while cell_len(rest) > left and len(rows) < limit:
            head = _head(rest, left)
            head = head if cell_len(head) <= left else ""
            rows[-1].append(part._replace(text=head))
            rest = rest[len(head) :]
            rows.append([Part("…", "faint")])
            left = width - 1
        rows[-1].append(part._replace(text=rest))
        left -= min(left, cell_len(rest))
    return [row if width_of(row) <= width else cut_line(row, width) for row in rows]


def _head(text: str, width: int) -> str:
    # At least one character, even one wider than the line: the loop above must end.
    size, used = 0, 0
    for character in text:
        size += cell_len(character)
        if size > width and used:
            break
        used += 1
    return text[:used]
