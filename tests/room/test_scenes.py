"""Each screen as text, on a small and a large terminal. `SWARM_WRITE_SCENES=1` writes the current screens."""

import os
import time
from pathlib import Path

import pytest

from tests.room.scenes import Scene, fixed_sweep, room_on, sweep_of, text_on_screen
from tests.waiting import PATIENCE

SHOWN = Path(__file__).parent / "shown"
KEYS = {
    "folders": ("minus", "minus", "minus", "w"),
    "dots": ("plus", "plus", "minus", "minus", "w"),
    "chips": ("plus", "plus", "minus", "w"),
    "rows": ("plus", "plus", "w"),
    "fixes": ("3",),
    "patterns": ("4",),
    "inbox": ("5",),
    "log": ("6",),
    "help": ("question_mark",),
}


pytestmark = pytest.mark.usefixtures("utc")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60)])
@pytest.mark.parametrize("name", KEYS)
async def test_screen_matches_expected_text(name: str, width: int, height: int) -> None:
    path = SHOWN / f"{name}-{width}x{height}.txt"
    is_writing = bool(os.environ.get("SWARM_WRITE_SCENES"))
    expected = "" if is_writing else path.read_text(encoding="utf-8")
    scene = Scene(name, KEYS[name], width, height, is_integrated=name == "fixes")
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
