"""Draws the pictures of the documentation anew: `python -m tests.pictures [NAME ...]`."""

import asyncio
import os
import sys
import time

from tests.pictures import FOLDER
from tests.pictures.moving import cast, moving_svg
from tests.pictures.scenes import PICTURES, draw
from tests.pictures.story import STILL, TITLE, tell_story


async def draw_all(names: list[str]) -> None:
    """Draw the pictures of these names, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for scene in PICTURES.values():
        if not names or scene.name in names:
            (FOLDER / f"{scene.name}.svg").write_text(await draw(scene), encoding="utf-8")
            print(FOLDER / f"{scene.name}.svg", flush=True)
    if not names or "room" in names:
        frames = await tell_story()
        (FOLDER / "room.svg").write_text(moving_svg(frames, still=STILL, title=TITLE), encoding="utf-8")
        (FOLDER / "room.cast").write_text(cast(frames, title=TITLE), encoding="utf-8")
        print(FOLDER / "room.svg")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    asyncio.run(draw_all(sys.argv[1:]))
