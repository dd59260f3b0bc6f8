"""What the mouse does: heads sort, text is selected and copied, locations lead to the editor."""

from collections.abc import Iterator

import pytest
from textual.pilot import Pilot

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.state import TestRecord
from swarm_tui.room.app import RoomApp
from swarm_tui.room.colours import link_to
from swarm_tui.room.draw.side import draw_side
from tests.room.scenes import Scene, fixed_sweep, press, room_on, shows, text_on_screen

ROWS = Scene("rows", ("plus", "plus"), 120, 36)


@pytest.fixture
def folder() -> Iterator[SweepFolder]:
    with fixed_sweep(60) as sweep:
        yield sweep


async def click_word(app: RoomApp, pilot: Pilot[str], word: str, line: int) -> None:
    await pilot.click(offset=(text_on_screen(app).splitlines()[line].index(word), line))


async def test_the_head_of_a_column_sorts_and_sorts_back(folder: SweepFolder) -> None:
    async with room_on(folder, ROWS) as (app, pilot):
        await click_word(app, pilot, "time", 4)
        assert app.choice.sort == "duration"
        await shows(pilot, "time↑")
        await click_word(app, pilot, "time↑", 4)
        assert app.choice.sort == "file"


async def test_text_of_a_panel_is_selected_and_copied(folder: SweepFolder) -> None:
    async with room_on(folder, ROWS) as (app, pilot):
        await press(pilot, "6")
        await pilot.mouse_down(offset=(2, 5))
        await pilot.hover(offset=(40, 7))
        await pilot.mouse_up(offset=(40, 7))
        shown = [line[2:-1].strip() for line in text_on_screen(app).splitlines()[5:7]]
        await press(pilot, "ctrl+c")
        assert "copied" in text_on_screen(app)
        copied = app.clipboard.splitlines()
        assert [line.strip() for line in copied[:2]] == [line.removesuffix("▁").strip() for line in shown]


def test_a_location_is_a_link_that_no_name_breaks_out_of() -> None:
    record = TestRecord("tests/a b\x1b\\é.py::test_x", file="tests/a b\x1b\\é.py", line=7)
    (part,) = [part for line in draw_side(record, 80, 0.0, repository="/home/p") for part in line if part.spot]
    assert part.spot == "file:7:/home/p/tests/a b\x1b\\é.py"
    assert link_to(part.spot).link == "file:///home/p/tests/a%20b%1B%5C%C3%A9.py#7"


async def test_a_file_that_is_not_here_is_said(folder: SweepFolder) -> None:
    async with room_on(folder, ROWS) as (app, pilot):
        await press(pilot, "o")
        assert "is not on this machine" in text_on_screen(app)
