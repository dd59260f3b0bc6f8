"""The pictures of single screens, from the fixed sweeps of the room's tests."""

from __future__ import annotations

import contextlib
import re
from typing import Final

from swarm_tui.room.app import RoomApp
from tests.room.scenes import Scene, room_on, sweep_of, text_on_screen
from tests.waiting import eventually

PATIENCE: Final = 15.0
PICTURES: Final = {
    "Every test is a cell, the side panel tells of the one under the cursor": Scene(
        "sweep-chips", ("minus", "minus", "plus", "w"), 160, 40
    ),
    "The same as a table, with tries, time, cost and last words": Scene("sweep-rows", ("plus", "plus", "w"), 160, 40),
    "On a small terminal": Scene("sweep-80x24", ("w",), 80, 24),
    "In a light theme": Scene("sweep-light", ("plus", "w"), theme="textual-light"),
    "The merge view: ranked fixes, and the diff of the one under the cursor": Scene(
        "fixes", ("3",), is_integrated=True
    ),
    "What speaks for a fix": Scene("fixes-evidence", ("3", "G", "k", "e"), 100, 30, is_integrated=True),
    "A fix that others build on, and the ways out": Scene(
        "fixes-conflict", ("3", "k", "n", "k", "c"), 100, 30, is_integrated=True
    ),
    "What fails alike, and what sets it apart": Scene("patterns", ("4",)),
    "All that needs a person": Scene("inbox", ("5",)),
    "What has happened": Scene("log", ("6",)),
}
"""What each picture shows, and its scene."""


def gallery_page() -> str:
    """Return the page of all pictures as Markdown."""
    shown = [f"## {title}\n\n![{title}](pictures/{scene.name}.svg)\n" for title, scene in PICTURES.items()]
    moving = "![A sweep of the demo, from its first agent to the branch that is applied](pictures/room.svg)"
    play = "The same as a recording: `asciinema play docs/pictures/room.cast`."
    return f"# Pictures\n\nMade by `python -m tests.pictures`.\n\n{moving}\n\n{play}\n\n" + "\n".join(shown)


async def draw(scene: Scene, expected: str = "") -> str:
    """Return the picture of a scene, once it is the expected one; where none is expected, once it stands still."""
    with sweep_of(scene) as folder:
        async with room_on(folder, scene) as (app, pilot):
            if expected:
                with contextlib.suppress(AssertionError):
                    await eventually(lambda: picture_of(app) == expected, f"the picture {scene.name}", PATIENCE)
            shown = ""
            while not expected and shown != (shown := text_on_screen(app)):
                await pilot.pause(0.3)
            return picture_of(app)


def picture_of(app: RoomApp) -> str:
    """Return the screen as SVG, without a font from the network, and with its spaces whatever draws it.

    rich gives it an id by all that was drawn, the folders that links lead to among it: pictures have none.
    """
    drawn = app.export_screenshot(title="swarm-tui").replace("<svg ", '<svg xml:space="preserve" ', 1)
    drawn = re.sub(r"\bterminal-\d+\b", "terminal", drawn)
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
