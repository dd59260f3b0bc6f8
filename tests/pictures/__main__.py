"""Redraws the pictures: `python -m tests.pictures [NAME ...]`; `--colours SYSTEM` prints those in fewer colours."""

import asyncio
import json
import os
import sys
import time

from tests.pictures import FOLDER, pictures_in_colours
from tests.pictures.moving import cast, moving_svg
from tests.pictures.scenes import FEW_COLOURS, SCREENS, SINGLE, draw, draw_in_colours, draw_in_sizes, gallery_page
from tests.pictures.story import STILL, TITLE, tell_story


def keep(name: str, content: str) -> None:
    (FOLDER / name).write_text(content, encoding="utf-8")
    print(FOLDER / name, flush=True)


async def draw_all(names: list[str]) -> None:
    """Draw the pictures of these screens, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for scene in SINGLE.values():
        if not names or scene.name in names:
            keep(f"{scene.name}.svg", await draw(scene))
    for scene in SCREENS.values():
        if not names or scene.name in names:
            for name, picture in (await draw_in_sizes(scene, {})).items():
                keep(f"{name}.svg", picture)
    for system in FEW_COLOURS:
        if not names or system in names:
            for name, picture in (await pictures_in_colours(system)).items():
                keep(f"{name}.svg", picture)
    if not names or "room" in names:
        frames = await tell_story()
        keep("room.svg", moving_svg(frames, still=STILL, title=TITLE))
        keep("room.cast", cast(frames, title=TITLE))
    keep("README.md", gallery_page())


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    match sys.argv[1:]:
        case ["--colours", system]:
            expected = json.load(sys.stdin)
            print(json.dumps(asyncio.run(draw_in_colours(system, expected))))
        case names:
            asyncio.run(draw_all(names))
