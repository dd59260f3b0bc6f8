"""The mouse: click headings to sort, select text to copy it, click locations to open the editor."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import Pulled, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.pulled import Escalation, Location, PulledWork
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.room.app import RoomApp
from swarm_tui.room.colours import link_to
from swarm_tui.room.fixes.screen import FixesScreen
from swarm_tui.room.grid.screen import GridScreen
from swarm_tui.room.grid.side import draw_side
from swarm_tui.room.widgets.border import LARGEST, SMALLEST, _shares
from tests.room.scenes import Scene, fixed_sweep, press, resize, room_on, shows, sweep_of, text_on_screen

ROWS = Scene("rows", ("plus", "plus"), 120, 36)


@pytest.fixture
def folder() -> Iterator[SweepFolder]:
    with fixed_sweep(60) as sweep:
        yield sweep


async def click_word(app: RoomApp, pilot: Pilot[str], word: str, line: int) -> None:
    await pilot.click(offset=(text_on_screen(app).splitlines()[line].index(word), line))


async def test_click_on_column_heading_sorts_and_sorts_back(folder: SweepFolder) -> None:
    async with room_on(folder, ROWS) as (app, pilot):
        await click_word(app, pilot, "time", 4)
        assert app.view.options.sort == "duration"
        await shows(pilot, "time↑")
        await click_word(app, pilot, "time↑", 4)
        assert app.view.options.sort == "file"


async def test_selected_panel_text_is_copied(folder: SweepFolder) -> None:
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


def test_location_link_escapes_file_name() -> None:
    record = TestRecord("tests/a b\x1b\\é.py::test_x", file="tests/a b\x1b\\é.py", line=7)
    (part,) = [part for line in draw_side(record, 80, 0.0, repository="/home/p") for part in line if part.spot]
    assert part.spot == "file:7:/home/p/tests/a b\x1b\\é.py"
    assert link_to(part.spot).link == "file:///home/p/tests/a%20b%1B%5C%C3%A9.py#7"


async def test_missing_file_is_reported(folder: SweepFolder) -> None:
    async with room_on(folder, ROWS) as (app, pilot):
        await press(pilot, "o")
        assert "is not on this machine" in text_on_screen(app)


async def test_locations_have_reasons_and_stay_in_repository(tmp_path: Path) -> None:
    long_name = f"docs/{'a long name of a document ' * 3}about prices.md"
    for name in ("test_shop.py", "prices.py", long_name):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n2\n")
    sweep, test = SweepFolder(tmp_path / "sweep"), "test_shop.py::test_total"
    mngr = MngrSettings(path="mngr")
    sweep.write_spec(SweepSpec(sweep="1", repository=str(tmp_path), base="a" * 40, created_at=1.0, mngr=mngr))
    names = ("prices.py", "prices.py", long_name, "/etc/passwd", "../x", "gone.py")
    locations = tuple(Location(path=name, line=2) for name in names)
    unclear = Escalation(kind="UNCLEAR_INTENT", title="Which price?", locations=locations)
    writer = JournalWriter(sweep.events, last_seq=0, last_at=0.0)
    for event in (
        Queued(test=test, agent="x", file="test_shop.py", line=1),
        Pulled(test=test, result=Result.UNRESOLVED, pulled=PulledWork(escalations=(unclear,))),
    ):
        writer.append(event)
    writer.close()
    async with room_on(sweep, Scene("places", (), 80, 24)) as (app, pilot):
        await press(pilot, "o")
        lines = text_on_screen(app).splitlines()
    first = next(number for number, line in enumerate(lines) if "Open in your editor" in line) + 1
    shown = [" ".join(line.strip("│ ").split()) for line in lines[first : first + 3]]
    assert shown[:2] == ["1 test_shop.py:1 the test", "2 prices.py:2 Which price? (unclear intent)"]
    assert re.fullmatch(r"3 docs/.+….+about prices\.md:2 Which price\? \(unclear intent\)", shown[2])
    assert "Enter picks" in lines[first + 3]


async def drag(pilot: Pilot[str], start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=end)
    await pilot.mouse_up(offset=end)
    await pilot.pause()


async def test_dragged_panel_border_is_saved(folder: SweepFolder) -> None:
    async with room_on(folder, Scene("wide", (), 120, 36)) as (app, pilot):
        screen = app.room_screen
        assert isinstance(screen, GridScreen)
        side = screen.side.lines
        before = side.region
        await drag(pilot, (before.x, before.y + 4), (before.x - 20, before.y + 4))
        assert abs(side.region.width - before.width - 20) <= 1
        assert side.region.right == before.right
        assert screen.grid.region.right == side.region.x
        dragged = side.region
        await drag(pilot, (dragged.x - 1, dragged.y + 4), (2, dragged.y + 4))
        assert screen.grid.region.width >= 120 * SMALLEST // 100, "both panels stay visible"
        await drag(pilot, (dragged.x + 5, dragged.y + 4), (dragged.x + 30, dragged.y + 4))
        kept = side.region
        await resize(pilot, 80, 24)
        assert (screen.grid.region.width, side.region.width) == (80, 80), "stacked panels have separate sizes"
        top = side.region.y
        await drag(pilot, (20, top), (20, top - 4))
        assert side.region.y == top - 4
        await resize(pilot, 120, 36)
        assert side.region == kept
        assert app.chosen.panels.split()[0].startswith("sweep=")
        assert app.chosen.panels.split()[1].startswith("sweep-stacked=")


async def test_fixes_border_is_dragged_in_both_layouts() -> None:
    scene = Scene("fixes", ("3",), 200, 60, is_integrated=True)
    with sweep_of(scene) as sweep:
        async with room_on(sweep, scene) as (app, pilot):
            screen = app.room_screen
            assert isinstance(screen, FixesScreen)
            fixes, reading = screen.lines, screen.reading
            await drag(pilot, (reading.region.x, 10), (reading.region.x + 25, 10))
            assert (fixes.region.right, reading.region.right) == (reading.region.x, 200)
            assert fixes.region.width >= 100
            kept = fixes.region
            await resize(pilot, 80, 40)
            before = fixes.region
            assert before.height < 20, "stacked panels have separate sizes"
            await drag(pilot, (20, reading.region.y), (20, reading.region.y + 6))
            assert reading.region.y == fixes.region.bottom
            assert fixes.region.height >= before.height + 5
            await resize(pilot, 200, 60)
            assert fixes.region == kept


async def test_drag_outside_border_does_nothing(folder: SweepFolder) -> None:
    async with room_on(folder, Scene("wide", (), 120, 36)) as (app, pilot):
        screen = app.room_screen
        assert isinstance(screen, GridScreen)
        before = screen.side.lines.region
        for start in ((before.x + 3, before.y + 3), (10, 10), (before.x, 0), (119, 10)):
            await drag(pilot, start, (30, 12))
        assert screen.side.lines.region == before


@given(st.text())
def test_invalid_saved_panel_sizes_are_ignored(text: str) -> None:
    assert all(SMALLEST <= share <= LARGEST for share in _shares(text).values())
    assert _shares(f"{text} sweep=40")["sweep"] == 40
    assert _shares("a=5 b=99 c=x d inbox=15 e=0040") == {"inbox": 15}
