"""The pictures of single screens, from the fixed sweeps of the room's tests."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from typing import Final

from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from textual.pilot import Pilot

from swarm_tui.room.app import RoomApp
from tests.room.scenes import Scene, resize, room_on, sweep_of, text_on_screen, until_computed
from tests.waiting import finally_shown

SIZES: Final = ((80, 24), (120, 35), (200, 60))
SINGLE: Final = {
    "Every test as a cell, and the side panel of the selected test": Scene(
        "sweep-chips", ("minus", "minus", "plus", "w"), 160, 40
    ),
    "The same tests as a table, with tries, time, cost and last output": Scene(
        "sweep-rows", ("plus", "plus", "w"), 160, 40
    ),
    "In a light theme": Scene("sweep-light", ("plus", "w"), theme="textual-light"),
    "The fixes in a light theme": Scene("fixes-light", ("3",), theme="textual-light", is_integrated=True),
    "The evidence for a fix": Scene("fixes-evidence", ("3", "G", "k", "e"), 100, 30, is_integrated=True),
    "A conflict of a revert, and its solutions": Scene(
        "fixes-conflict", ("3", "k", "n", "k", "c"), 100, 30, is_integrated=True
    ),
}
"""The scenes with one picture, by title."""
SCREENS: Final = {
    "The sweep: the state of every test": Scene("sweep", ("w",)),
    "An agent: its screen, its transcript, its tries": Scene("agent", ("w", "enter")),
    "The ranked fixes, and the diff of the selected one": Scene("fixes", ("3",), is_integrated=True),
    "Patterns: failures with the same cause, and what these tests have in common": Scene("patterns", ("4",)),
    "The inbox: everything that needs you": Scene("inbox", ("5",)),
    "The log: the events of the sweep": Scene("log", ("6",)),
    "The tail: the output of all agents": Scene("tail", ("7",)),
    "Help: the keys of a screen": Scene("help", ("question_mark",)),
}
"""The screens of the room, by title, each drawn in all sizes."""
FEW_COLOURS: Final = {"256": "In 256 colours", "standard": "In 16 colours", "none": "Without colours"}
"""Colour systems of terminals, and their titles."""
_COLOURED: Final = ("sweep", "fixes")
_SYSTEMS: Final = {"256": ColorSystem.EIGHT_BIT, "standard": ColorSystem.STANDARD}


def names_of(scene: Scene) -> list[str]:
    """Return the names of the pictures of a screen, one for each size."""
    return [f"{scene.name}-{width}x{height}" for width, height in SIZES]


def gallery_page() -> str:
    """Return the page of all pictures as Markdown."""
    lines = ["# Pictures", "", "Created by `python -m tests.pictures`.", ""]
    lines += ["![A sweep of the demo, from the first agent to the applied plan](room.svg)", ""]
    lines += ["As a recording: `asciinema play screenshots/room.cast`.", ""]
    shown = {title: [scene.name] for title, scene in SINGLE.items()}
    shown |= {title: names_of(scene) for title, scene in SCREENS.items()}
    shown |= {title: [f"{name}-{system}" for name in _COLOURED] for system, title in FEW_COLOURS.items()}
    for title, names in shown.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += [f"![{title}]({name}.svg)", ""]
    return "\n".join(lines)


async def draw(scene: Scene, expected: str = "", colours: str = "") -> str:
    """Return the picture of a scene when it is as expected or no longer changes."""
    with sweep_of(scene) as folder:
        async with room_on(folder, scene) as (app, pilot):
            return await _once_drawn(app, pilot, expected, colours)


async def draw_in_sizes(scene: Scene, expected: Mapping[str, str]) -> dict[str, str]:
    """Return the pictures of one screen in all sizes by their names, of one room that is resized."""
    pictures = {}
    with sweep_of(scene) as folder:
        async with room_on(folder, scene) as (app, pilot):
            for name, size in zip(names_of(scene), SIZES, strict=True):
                await resize(pilot, *size)
                await until_computed(app, pilot)
                pictures[name] = await _once_drawn(app, pilot, expected.get(name, ""))
    return pictures


async def draw_in_colours(system: str, expected: Mapping[str, str]) -> dict[str, str]:
    """Return the pictures in fewer colours by their names; the environment of this process says so to the room."""
    pictures = {}
    for scene in (scene for scene in SCREENS.values() if scene.name in _COLOURED):
        name = f"{scene.name}-{system}"
        seen = scene._replace(name=name, width=120, height=35, theme="")
        pictures[name] = await draw(seen, expected.get(name, ""), system)
    return pictures


async def _once_drawn(app: RoomApp, pilot: Pilot[str], expected: str, colours: str = "") -> str:
    if expected:
        return await finally_shown(lambda: picture_of(app, colours), expected)
    shown = ""
    while not expected and shown != (shown := text_on_screen(app)):
        await pilot.pause(0.3)
    return picture_of(app, colours)


def picture_of(app: RoomApp, colours: str = "") -> str:
    """Return the screen as SVG, in fewer colours where a terminal has no more, and without a font from the network.

    It has its spaces, whatever draws it. rich gives it an id by all that was drawn, the folders that links lead to
    among it: pictures have none.
    """
    width, height = app.size
    console = Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True, color_system="truecolor", record=True
    )
    segments: list[Segment] = []
    for strip in app.screen._compositor.render_strips():
        segments += _in_colours(strip, _SYSTEMS.get(colours))
        segments.append(Segment.line())
    console.print(Segments(segments), end="")
    drawn = console.export_svg(title="swarm-tui")
    drawn = drawn.replace("<svg ", '<svg xml:space="preserve" ', 1)
    drawn = re.sub(r"\bterminal-\d+\b", "terminal", drawn)
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def _in_colours(segments: Iterable[Segment], system: ColorSystem | None) -> Iterable[Segment]:
    """Return the segments in the nearest colours that a terminal has."""
    for text, style, _ in segments:
        if style is None or system is None:
            yield Segment(text, style)
            continue
        colour, ground = (each and each.downgrade(system) for each in (style.color, style.bgcolor))
        yield Segment(text, style + Style(color=colour, bgcolor=ground))
