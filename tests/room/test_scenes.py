"""Each screen as text, on a small or a large terminal. `SWARM_WRITE_SCENES=1` writes the current screens."""

import os
import time
from pathlib import Path

import pytest

from tests.room.scenes import Scene, fixed_sweep, room_on, sweep_of, text_on_screen
from tests.waiting import PATIENCE

SHOWN = Path(__file__).parent / "shown"
SMALL, LARGE = (80, 24), (200, 60)
SCREENS = {
    "folders": (SMALL, ("minus", "minus", "minus", "w")),
    "dots": (LARGE, ("plus", "plus", "minus", "minus", "w")),
    "chips": (SMALL, ("plus", "plus", "minus", "w")),
    "rows": (LARGE, ("plus", "plus", "w")),
    "fixes": (LARGE, ("3",)),
    "patterns": (SMALL, ("4",)),
    "inbox": (SMALL, ("5",)),
    "log": (SMALL, ("6",)),
    "help": (SMALL, ("question_mark",)),
}


pytestmark = pytest.mark.usefixtures("utc")


@pytest.mark.parametrize("name", SCREENS)
async def test_screen_matches_expected_text(name: str) -> None:
    (width, height), keys = SCREENS[name]
    path = SHOWN / f"{name}-{width}x{height}.txt"
    is_writing = bool(os.environ.get("SWARM_WRITE_SCENES"))
    expected = "" if is_writing else path.read_text(encoding="utf-8")
    scene = Scene(name, keys, width, height, is_integrated=name == "fixes")
    with sweep_of(scene) as folder:
        async with room_on(folder, scene) as (app, pilot):
            deadline = time.monotonic() + (2.0 if is_writing else PATIENCE)
            while (shown := text_on_screen(app)) != expected and time.monotonic() < deadline:
                await pilot.pause(0.05)
    if is_writing:
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


async def test_ascii_room_draws_only_ascii() -> None:
    with fixed_sweep() as folder:
        for keys in (("w",), ("plus", "w"), ("plus", "plus"), ("4",), ("5",), ("6",)):
            async with room_on(folder, Scene("ascii", keys, is_ascii=True)) as (app, _):
                text = text_on_screen(app)
                assert text.isascii(), {character for character in text if not character.isascii()}
