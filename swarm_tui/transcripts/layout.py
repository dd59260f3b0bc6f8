"""Entries as lines."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from rich.cells import cell_len

from swarm_tui.transcripts.entries import Entry, Role, looks_like_error


class TextStyle(StrEnum):
    """The role of a run of text; the room chooses its colours."""

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
    """Text of one style."""

    text: str
    style: TextStyle = TextStyle.PLAIN


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
    """Return the lines of a message as styled runs, without fences and markup."""
    lines: list[Runs] = []
    is_code = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            is_code = not is_code
        elif is_code:
            lines.append((StyledText("  " + line, TextStyle.CODE),))
        elif heading := _HEADING.match(line):
            lines.append((StyledText(heading.group(1), TextStyle.HEADING),))
        elif _RULE.match(line):
            lines.append((StyledText("─" * 8, TextStyle.DIM),))
        elif quote := _QUOTE.match(line):
            lines.append((StyledText("│ ", TextStyle.DIM), *_inline(line[quote.end() :])))
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
            runs.append(StyledText(code, TextStyle.CODE))
        elif label is not None:
            # Show the address of a link, because its label may be misleading.
            runs += [StyledText(label), StyledText(f" ({target})", TextStyle.DIM)]
        else:
            runs.append(StyledText(bold or emphasis, TextStyle.BOLD))
        position = found.end()
    if position < len(line) or not runs:
        runs.append(StyledText(line[position:]))
    return tuple(runs)


PREFIX_WIDTH: Final = 20
NARROW_PREFIX_WIDTH: Final = 11
NARROW: Final = 60
LINES_LIMIT: Final = 2_000
"""The maximum number of lines of a record."""


class Density(IntEnum):
    """How much of each entry is shown."""

    LINES = 0
    """One line per event."""
    READABLE = 1
    """Whole messages, folded tool results."""
    WHOLE = 2


class TextLine(NamedTuple):
    """A line on the screen: a prefix of fixed width, then styled runs."""

    prefix: str
    runs: Runs
    role: Role
    is_error: bool = False

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)


_FOLDS: Final[dict[Role, int]] = {
    Role.USER: 40,
    Role.AGENT: 60,
    Role.THINKING: 2,
    Role.CALL: 2,
    Role.RESULT: 3,
    Role.SYSTEM: 3,
    Role.TEXT: 8,
}
EDIT_FOLD: Final = 16
_SIGNS: Final = {"+": TextStyle.ADDED, "-": TextStyle.REMOVED, " ": TextStyle.DIM}
_LABELS: Final[dict[Role, str]] = {
    Role.USER: "user",
    Role.AGENT: "agent",
    Role.THINKING: "thinks",
    Role.CALL: "call",
    Role.RESULT: "result",
    Role.SYSTEM: "system",
    Role.TEXT: "",
}
_MARKDOWN_ROLES: Final = frozenset({Role.USER, Role.AGENT, Role.THINKING, Role.SYSTEM})


def lay_out(entries: Iterable[Entry], width: int, density: Density, *, is_file: bool = False) -> tuple[TextLine, ...]:
    """Return the lines of a record's entries; lines of a plain file have no time and role."""
    lines: list[TextLine] = []
    for entry in entries:
        lines += lay_out_entry(entry, width, density, is_file=is_file)
        if len(lines) >= LINES_LIMIT:
            break
    return tuple(lines[:LINES_LIMIT])


def lay_out_entry(entry: Entry, width: int, density: Density, *, is_file: bool = False) -> list[TextLine]:
    """Return the lines of one entry."""
    first = ("! " if entry.is_error else "  ") if is_file else _prefix(entry, width)
    room = max(8, width - len(first))
    fold = EDIT_FOLD if entry.is_edit else _FOLDS[entry.role]
    limit = {Density.LINES: 1, Density.READABLE: fold, Density.WHOLE: LINES_LIMIT}[density]
    wrapped: list[Runs] = []
    body = list(_body(entry, density))
    hidden = _error_line(entry, body, limit)
    for runs in body[hidden:]:
        if len(wrapped) >= limit:
            hidden += 1
            continue
        pieces = wrap_runs(runs, room)
        shown = pieces[: limit - len(wrapped)]
        if len(shown) < len(pieces):
            shown[-1] = _shortened(shown[-1], room - 1, "…")
        wrapped += shown
    if hidden:
        wrapped[-1] = _shortened(wrapped[-1], room, f" … (+{hidden} line{'s' if hidden > 1 else ''})")
    blank = " " * len(first)
    return [
        TextLine(first if index == 0 else blank, runs, entry.role, entry.is_error) for index, runs in enumerate(wrapped)
    ]


def prefix_width(width: int) -> int:
    return PREFIX_WIDTH if width >= NARROW else NARROW_PREFIX_WIDTH


def wrap_runs(runs: Runs, room: int) -> list[Runs]:
    """Break styled runs into lines of at most `room` cells, at spaces where there are some."""
    text = "".join(run.text for run in runs)
    if len(text) <= room and (text.isascii() or cell_len(text) <= room):
        return [runs]
    return [_slice(runs, start, stop) for start, stop in wrap(text, room)]


def wrap(text: str, room: int) -> Iterator[tuple[int, int]]:
    """Yield the (start, stop) of each line, without the spaces at line breaks."""
    start, length = 0, len(text)
    while start < length:
        stop = _end_of_line(text, start, room)
        if stop < length:
            space = text.rfind(" ", start + room // 2, stop + 1)
            if space > start:
                yield start, space
                start = space + 1
                continue
        yield start, stop
        start = stop


def _end_of_line(text: str, start: int, room: int) -> int:
    """Return the end of the longest line from `start` that fits, at least one character."""
    piece = text[start : start + room]
    if piece.isascii():
        return start + len(piece)
    used = 0
    for index, character in enumerate(piece):
        used += _cells(character)
        if used > room:
            return start + max(1, index)
    return start + len(piece)


@lru_cache(maxsize=4096)
def _cells(character: str) -> int:
    return cell_len(character)


def _slice(runs: Runs, start: int, stop: int) -> Runs:
    cut = []
    position = 0
    for run in runs:
        low, high = max(start - position, 0), min(stop - position, len(run.text))
        if low < high:
            cut.append(StyledText(run.text[low:high], run.style))
        position += len(run.text)
    return tuple(cut)


def _shortened(runs: Runs, room: int, ending: str) -> Runs:
    """Return the runs with `ending` appended, cut so that both fit."""
    text = "".join(run.text for run in runs)
    allowed = max(0, room - cell_len(ending))
    if cell_len(text) > allowed:
        runs = _slice(runs, 0, _end_of_line(text, 0, allowed)) if allowed else ()
    return (*runs, StyledText(ending, TextStyle.DIM))


def _error_line(entry: Entry, body: list[Runs], limit: int) -> int:
    """Return the number of the first line of an error that looks like one; 0 for other entries."""
    if not entry.is_error or len(body) <= limit or entry.role not in (Role.RESULT, Role.TEXT):
        return 0
    for index, runs in enumerate(body):
        if looks_like_error("".join(run.text for run in runs)):
            return min(index, len(body) - 1)
    return 0


def _body(entry: Entry, density: Density) -> Iterator[Runs]:
    note: Runs = (StyledText(f"({entry.note}) ", TextStyle.NOTE),) if entry.note else ()
    lines: list[Runs]
    if entry.role is Role.CALL:
        styles = _SIGNS if entry.is_edit else {}
        lines = [(StyledText(line, styles.get(line[:1], TextStyle.PLAIN)),) for line in entry.text.split("\n")]
        lines[0] = (StyledText(f"{entry.tool}  ", TextStyle.TOOL), *lines[0])
    elif entry.role in _MARKDOWN_ROLES:
        lines = read_markdown(entry.text)
    else:
        style = TextStyle.ERROR if entry.is_error else TextStyle.PLAIN
        lines = [(StyledText(line, style),) for line in entry.text.rstrip("\n").split("\n")]
        if entry.tool:
            lines[0] = (StyledText(f"{entry.tool}  ", TextStyle.TOOL), *lines[0])
    if density is Density.LINES:
        # A single line must not be blank.
        while len(lines) > 1 and not any(run.text.strip() for run in lines[0]):
            lines.pop(0)
    if note:
        lines[0:1] = [(*note, *lines[0])] if lines else [note]
    yield from lines or [(StyledText(""),)]


def _prefix(entry: Entry, width: int) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(entry.at)) if entry.at is not None else " " * 8
    mark = "!" if entry.is_error else " "
    if prefix_width(width) == NARROW_PREFIX_WIDTH:
        return f"{clock} {mark} "
    return f"{clock} {mark} {_LABELS[entry.role]:8} "
