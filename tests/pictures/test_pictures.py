"""The pictures show the current room; `python -m tests.pictures` redraws them."""

import json
import re
from collections.abc import Mapping

import pyte
import pytest

from tests.pictures import FOLDER, pictures_in_colours
from tests.pictures.moving import cast, moving_svg
from tests.pictures.scenes import FEW_COLOURS, SCREENS, SINGLE, draw, draw_in_sizes, gallery_page
from tests.pictures.story import COLUMNS, LINES, STILL, TITLE, Frame, tell_story

AGAIN = "`python -m tests.pictures` redraws them"


pytestmark = pytest.mark.usefixtures("utc")


def kept(name: str) -> str:
    return (FOLDER / f"{name}.svg").read_text(encoding="utf-8")


def assert_as_kept(drawn: Mapping[str, str]) -> None:
    for name, picture in drawn.items():
        assert picture.splitlines() == kept(name).splitlines(), AGAIN


def all_kept() -> dict[str, str]:
    return {path.stem: kept(path.stem) for path in FOLDER.glob("*.svg")}


@pytest.mark.parametrize("title", SINGLE)
async def test_picture_shows_current_screen(title: str) -> None:
    scene = SINGLE[title]
    assert_as_kept({scene.name: await draw(scene, kept(scene.name))})


@pytest.mark.parametrize("title", SCREENS)
async def test_pictures_in_all_sizes_are_current(title: str) -> None:
    assert_as_kept(await draw_in_sizes(SCREENS[title], all_kept()))


@pytest.mark.parametrize("system", FEW_COLOURS)
async def test_pictures_with_few_colours_are_current(system: str) -> None:
    assert_as_kept(await pictures_in_colours(system, all_kept()))


def text_of(frame: Frame) -> str:
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in frame.lines)


def screens_of_cast() -> list[str]:
    """Return the screen of the recording after each frame."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.Stream(screen)
    shown = []
    header, *events = (FOLDER / "room.cast").read_text(encoding="utf-8").splitlines()
    assert json.loads(header)["width"] == COLUMNS
    for line in events:
        stream.feed(json.loads(line)[2])
        shown.append("\n".join(row.rstrip() for row in screen.display))
    return shown[:-1]


async def test_animation_is_current() -> None:
    recorded = screens_of_cast()
    frames = await tell_story(recorded)
    for frame, expected in zip(frames, recorded, strict=True):
        assert text_of(frame) == expected, AGAIN


def test_animation_is_small_and_needs_no_network() -> None:
    picture = (FOLDER / "room.svg").read_text(encoding="utf-8")
    assert len(picture.encode()) < 500_000
    assert picture.count("http") == 1, "its namespace"
    for line in screens_of_cast()[STILL].splitlines():
        for word in line.split():
            if word.isalnum():
                assert word in picture


def test_gallery_lists_exactly_all_pictures() -> None:
    page = gallery_page()
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == page, AGAIN
    shown = set(re.findall(r"\((.*?\.svg)\)", page))
    assert {path.name for path in FOLDER.iterdir()} == shown | {"README.md", "room.cast"}


def test_unchanged_lines_are_drawn_once() -> None:
    from rich.segment import Segment

    stays, goes, comes = ((Segment(word),) for word in ("stays", "goes ", "comes"))
    frames = [Frame((stays, goes), 1.0), Frame((stays, comes), 1.0), Frame((stays, goes), 2.0)]
    picture = moving_svg(frames, still=1, title="a <b>")
    assert [picture.count(f">{word}<") for word in ("stays", "goes", "comes")] == [1, 1, 1]
    assert "<title>a &lt;b&gt;</title>" in picture
    assert "0%{visibility:visible}25%{visibility:hidden}50%{visibility:visible}" in picture
    events = [json.loads(line) for line in cast(frames, title=TITLE).splitlines()[1:]]
    assert [event[0] for event in events] == [0.0, 1.0, 2.0, 4.0]
    assert "stays" not in events[1][2]
