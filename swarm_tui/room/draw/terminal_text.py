"""Makes styled segments of a terminal's text with colours; every other escape sequence in it is dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from swarm_tui.model.text import plain_lines

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
    """Return the lines of a captured screen as segments; a style holds on to the next line, as terminals do it."""
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
