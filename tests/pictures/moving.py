"""Makes a moving picture of frames: as SVG that moves by CSS alone, and as an asciicast. Pure.

A line that stays the same over several frames is drawn once, and shown while they last.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Final

from rich.cells import cell_len
from rich.color import blend_rgb
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME

from tests.pictures.story import Frame

CELL: Final = 8.4
LINE: Final = 17
FONT: Final = 14
MARGIN: Final = 10
_STILL: Final = -1.0
Line = tuple[Segment, ...]


def moving_svg(frames: Sequence[Frame], *, still: int, title: str) -> str:
    """Return the frames as an SVG that goes on for ever; `still` is shown to those who want nothing to move."""
    columns = sum(segment.cell_length for segment in frames[0].lines[0])
    width, height = columns * CELL + 2 * MARGIN, len(frames[0].lines) * LINE + 2 * MARGIN
    starts = _starts(frames)
    classes: dict[str, str] = {}
    shown: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for row in range(len(frames[0].lines)):
        for line, spans in _spans([frame.lines[row] for frame in frames]).items():
            drawn = _drawn(line, row, classes)
            if drawn:
                shown.setdefault(spans, []).append(drawn)
    rules = [f".{name}{{{rule}}}" for rule, name in classes.items()]
    groups = []
    for number, (spans, drawn_lines) in enumerate(shown.items()):
        if spans != ((0, len(frames)),):
            rules += _timing(f"t{number}", spans, starts, is_still=any(a <= still < b for a, b in spans))
        groups.append(f'<g class="t{number}">{"".join(drawn_lines)}</g>')
    end = starts[-1]
    style = (
        f"text{{font:{FONT}px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:#e0e0e0}}"
        f"g{{animation:{end:g}s step-end infinite}}"
        "@media(prefers-reduced-motion:reduce){g{animation:none!important}}" + "".join(rules)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img"><title>{escape(title)}</title>\n<style>{style}</style>\n'
        f'<rect width="100%" height="100%" rx="6" fill="#121212"/>\n' + "\n".join(groups) + "\n</svg>\n"
    )


def cast(frames: Sequence[Frame], *, title: str) -> str:
    """Return the frames as an asciicast, version 2: each line is written again when it changes."""
    columns = sum(segment.cell_length for segment in frames[0].lines[0])
    header = {"version": 2, "width": columns, "height": len(frames[0].lines), "title": title}
    events = [json.dumps(header, ensure_ascii=False)]
    before: Sequence[Line] = [()] * len(frames[0].lines)
    for frame, start in zip(frames, _starts(frames), strict=False):
        changed = [
            f"\x1b[{row};1H{''.join(_escaped(segment) for segment in line)}"
            for row, (line, old) in enumerate(zip(frame.lines, before, strict=True), 1)
            if line != old
        ]
        events.append(json.dumps([round(start, 2), "o", "".join(["\x1b[?25l", *changed])], ensure_ascii=False))
        before = frame.lines
    events.append(json.dumps([round(_starts(frames)[-1], 2), "o", "\x1b[?25h"]))
    return "\n".join(events) + "\n"


def _escaped(segment: Segment) -> str:
    style = segment.style
    if style is None:
        return segment.text
    foreground, background = _colours(style)
    codes = [code for code, is_on in (("1", style.bold), ("3", style.italic), ("4", style.underline)) if is_on]
    codes += [f"38;2;{foreground.red};{foreground.green};{foreground.blue}"]
    codes += [f"48;2;{background.red};{background.green};{background.blue}"] if background is not None else []
    return f"\x1b[{';'.join(codes)}m{segment.text}\x1b[0m"


def _starts(frames: Sequence[Frame]) -> list[float]:
    """Return when each frame begins, and when the last one ends."""
    starts = [0.0]
    for frame in frames:
        starts.append(starts[-1] + frame.seconds)
    return starts


def _spans(lines: Sequence[Line]) -> dict[Line, tuple[tuple[int, int], ...]]:
    """Return each line that a row ever has, with the runs of frames in which it has it: from, up to."""
    edges = [0, *(place for place in range(1, len(lines)) if lines[place] != lines[place - 1]), len(lines)]
    found: dict[Line, tuple[tuple[int, int], ...]] = {}
    for begin, end in pairwise(edges):
        found[lines[begin]] = (*found.get(lines[begin], ()), (begin, end))
    return found


def _timing(name: str, spans: Sequence[tuple[int, int]], starts: Sequence[float], *, is_still: bool) -> tuple[str, str]:
    """Return the rules that show a group while its frames last."""
    end = starts[-1]
    steps = {0.0: "hidden"}
    for first, last in spans:
        steps[round(100 * starts[first] / end, 3)] = "visible"
        if last < len(starts) - 1:
            steps[round(100 * starts[last] / end, 3)] = "hidden"
    moments = "".join(f"{at:g}%{{visibility:{word}}}" for at, word in steps.items())
    visibility = "visible" if is_still else "hidden"
    return f"@keyframes {name}{{{moments}}}", f".{name}{{visibility:{visibility};animation-name:{name}}}"


def _drawn(line: Line, row: int, classes: dict[str, str]) -> str:
    """Return a line as rectangles and texts; what is only spaces has no text."""
    drawn, column = [], 0
    top = MARGIN + row * LINE
    for segment in line:
        width = segment.cell_length
        foreground, background = _colours(segment.style or Style())
        x, long = MARGIN + column * CELL, width * CELL
        if background is not None and background != _SCREEN:
            drawn.append(f'<rect x="{x:g}" y="{top}" width="{long:g}" height="{LINE}" fill="{background.hex}"/>')
        text = segment.text.strip(" ")
        if text:
            name = _class_of(segment.style or Style(), foreground, classes)
            start = x + (len(segment.text) - len(segment.text.lstrip(" "))) * CELL
            place = f'x="{start:g}" y="{top + 13}" textLength="{cell_len(text) * CELL:g}"'
            drawn.append(f'<text class="{name}" {place}>{escape(text)}</text>')
        column += width
    return "".join(drawn)


_SCREEN: Final = ColorTriplet(18, 18, 18)


def _class_of(style: Style, foreground: ColorTriplet, classes: dict[str, str]) -> str:
    rule = f"fill:{foreground.hex}"
    rule += ";font-weight:bold" if style.bold else ""
    rule += ";font-style:italic" if style.italic else ""
    rule += ";text-decoration:underline" if style.underline else ""
    return classes.setdefault(rule, f"c{len(classes)}")


def _colours(style: Style) -> tuple[ColorTriplet, ColorTriplet | None]:
    """Return the colours of the text and of what is behind it, as a terminal would show them."""
    theme = SVG_EXPORT_THEME
    foreground = style.color.get_truecolor(theme) if style.color and not style.color.is_default else None
    background = (
        style.bgcolor.get_truecolor(theme, foreground=False) if style.bgcolor and not style.bgcolor.is_default else None
    )
    text = foreground or ColorTriplet(224, 224, 224)
    if style.reverse:
        text, background = background or _SCREEN, text
    if style.dim:
        text = blend_rgb(text, background or _SCREEN, 0.5)
    return text, background
