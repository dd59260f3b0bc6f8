"""Lines of transcripts, log, tail and terminals."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from swarm_tui.model.event import LogLine
from swarm_tui.model.formatting import Progress, bar
from swarm_tui.model.results import MARKS
from swarm_tui.model.spec import name_of_test
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.draw.spans import Line, Span, cut_line, cut_middle, pad_text, width_of
from swarm_tui.transcripts.entries import Role
from swarm_tui.transcripts.layout import TextLine, TextStyle
from swarm_tui.transcripts.merged import MergedEntry

SMALL_BAR: Final = 10
LONG_BAR: Final = 40


def progress_parts(progress: Progress, bar_width: int = SMALL_BAR) -> list[Span]:
    """Return the operation, a bar of this width if the total is known, and the numbers."""
    parts = [Span(progress.doing, "running")]
    if bar_width and progress.part is not None:
        done, rest = bar(progress.part, bar_width)
        parts += [Span(" "), Span(done, "running"), Span(rest, "faint")]
        return [*parts, Span(f" {progress.numbers}" if progress.numbers else "", "running")]
    return [Span(progress.words, "running")]


def draw_progress(progress: Progress, width: int) -> Line:
    """Return a progress line with the widest bar that fits."""
    words = width_of(progress_parts(progress, 0)) + 3
    bar_width = min(LONG_BAR, width - words)
    parts = [Span(" "), *progress_parts(progress, bar_width if bar_width >= SMALL_BAR // 2 else 0)]
    return cut_line(parts, width)


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
    TextStyle.PLAIN: "",
    TextStyle.HEADING: "strong",
    TextStyle.BOLD: "bold",
    TextStyle.CODE: "launching",
    TextStyle.DIM: "faint",
    TextStyle.TOOL: "key",
    TextStyle.ERROR: "",
    TextStyle.NOTE: "warning",
    TextStyle.ADDED: "added",
    TextStyle.REMOVED: "removed",
}


def draw_transcript_line(line: TextLine, found: str = "") -> Line:
    """Return the line as parts. The words in `found` are highlighted."""
    role = ROLE_OF[line.role]
    parts = [Span(line.prefix, "error" if line.is_error and line.prefix.strip() else "faint")]
    for run in line.runs:
        style = (
            "unresolved"
            if line.is_error and run.style in (TextStyle.PLAIN, TextStyle.ERROR)
            else STYLE_OF[run.style] or role
        )
        parts += _highlighted(run.text, style, found) if found else [Span(run.text, style)]
    return parts


def _highlighted(text: str, role: str, found: str) -> list[Span]:
    folded, words = text.casefold(), found.casefold()
    if len(folded) != len(text):
        # Some letters become several letters in lower case. Positions would not match then.
        return [Span(text, role)]
    parts = []
    start = 0
    while (at := folded.find(words, start)) >= 0:
        parts += [Span(text[start:at], role), Span(text[at : at + len(words)], "match")]
        start = at + len(words)
    return [*parts, Span(text[start:], role)]


LEVELS: Final = {"info": ("·", "faint"), "warning": ("▲", "warning"), "error": ("!", "error")}
ROLE_OF_WORD: Final = {mark.word: mark.role for mark in MARKS.values()}
TEST_WIDTH: Final = 44
AGENT_WIDTH: Final = 24
_LABELS: Final = {Role.THINKING: "thinks", Role.TEXT: ""}


def draw_log_line(line: LogLine, width: int) -> Line:
    sign, role = LEVELS.get(line.level, ("·", "faint"))
    text = plain(line.text)
    if line.level == "info":
        role = ROLE_OF_WORD.get(text.split(":", 1)[0], "")
    parts = [Span(time.strftime("%H:%M:%S ", time.localtime(line.at)), "faint"), Span(f"{sign} ", role or "faint")]
    if line.test:
        name = plain(name_of_test(line.test), 300)
        size = min(TEST_WIDTH, max(8, width // 3))
        parts.append(Span(f"{pad_text(cut_middle(name, size), size)}  ", "dim"))
    parts.append(Span(text, role))
    return cut_line(parts, width)


def draw_tail_line(merged: MergedEntry, name: str, width: int) -> Line:
    entry = merged.first.entry
    clock = time.strftime("%H:%M:%S", time.localtime(merged.first.at)) if merged.first.at else " " * 8
    who = f"{len(merged.agents)} agents" if merged.is_shared else cut_middle(plain(name, 200), AGENT_WIDTH)
    lines = [line for line in entry.text.split("\n") if line.strip()]
    words = plain(lines[0], 600) if lines else ""
    more = f" … (+{len(lines) - 1})" if len(lines) > 1 else ""
    parts = [
        Span(f"{clock} "),
        Span("! " if entry.is_error else "  ", "error"),
        Span(pad_text(who, AGENT_WIDTH if width >= 80 else 12), "marked" if merged.is_shared else "accent"),
        Span(f" {_LABELS.get(entry.role, entry.role.value):7}", "faint"),
        Span(f"{entry.tool}  " if entry.tool else "", "key"),
        Span(words, "unresolved" if entry.is_error else ROLE_OF[entry.role]),
        Span(more, "faint"),
    ]
    if merged.is_shared:
        parts.append(Span(f"  same line from {len(merged.agents)} agents", "dim"))
    return cut_line([part for part in parts if part.text], width)


_COLOURING: Final = re.compile(r"\x1b\[([\d;:]*)m")
_FLAGS: Final = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 5: "blink", 7: "reverse", 9: "strike"}
_ENDS: Final = {
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    25: ("blink",),
    27: ("reverse",),
    29: ("strike",),
}
LINE_LIMIT: Final = 1_000


def read_terminal_text(text: str) -> list[list[Segment]]:
    """Return the lines of a captured screen as segments. As in a terminal, a style continues on the next line."""
    lines = []
    state: dict[str, str | bool] = {}
    for line in text.split("\n"):
        segments = []
        for piece, codes in _pieces(line[: 20 * LINE_LIMIT]):
            words = plain_lines(piece).replace("\n", "")[:LINE_LIMIT]
            if words:
                segments.append(Segment(words, _style(tuple(sorted(state.items())))))
            if codes is not None:
                _apply_codes(state, codes)
        lines.append(segments)
    return lines


def _pieces(line: str) -> Iterator[tuple[str, str | None]]:
    position = 0
    for found in _COLOURING.finditer(line):
        yield line[position : found.start()], found.group(1)
        position = found.end()
    yield line[position:], None


def _apply_codes(state: dict[str, str | bool], codes: str) -> None:
    numbers = [int(code) if code.isdigit() and len(code) < 4 else 0 for code in re.split("[;:]", codes)]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            state.clear()
        elif code in _FLAGS:
            state[_FLAGS[code]] = True
        elif code in _ENDS:
            for flag in _ENDS[code]:
                state.pop(flag, None)
        elif code in (38, 48):
            colour = _wide_colour(numbers)
            if colour:
                state["color" if code == 38 else "bgcolor"] = colour
        elif code in (39, 49):
            state.pop("color" if code == 39 else "bgcolor", None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            state["color"] = f"color({code - 30 if code < 40 else code - 82})"
        elif 40 <= code <= 47 or 100 <= code <= 107:
            state["bgcolor"] = f"color({code - 40 if code < 50 else code - 92})"


def _wide_colour(numbers: list[int]) -> str:
    kind = numbers.pop(0) if numbers else 0
    if kind == 5 and numbers:
        return f"color({min(255, numbers.pop(0))})"
    if kind == 2 and len(numbers) >= 3:
        red, green, blue = (min(255, numbers.pop(0)) for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    return ""


@lru_cache(maxsize=512)
def _style(state: tuple[tuple[str, str | bool], ...]) -> Style:
    colours = {name: Color.parse(value) for name, value in state if isinstance(value, str)}
    flags = " ".join(name for name, value in state if value is True)
    return Style(color=colours.get("color"), bgcolor=colours.get("bgcolor")) + Style.parse(flags)
