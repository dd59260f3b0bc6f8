"""Where one is and can go: the line of screens, what comes next, the first lines, and the key that never leaves."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.room.app import RoomApp
from swarm_tui.room.draw.parts import text_of, width_of
from swarm_tui.room.draw.screen_line import NextFacts, ScreenFacts, draw_first_lines, draw_next, draw_screen_line
from swarm_tui.room.open_work import open_items
from swarm_tui.room.settings import read_settings
from tests.room.scenes import Scene, fixed_sweep, integrated_sweep, open_store, press, room_on, shows, text_on_screen
from tests.waiting import eventually

WIDE = Scene("wide", (), 120, 36)
SCREENS = [
    ScreenFacts("1", "sweep", "Sweep", 0, True),
    ScreenFacts("2", "agent", "Agent", 0),
    ScreenFacts("3", "fixes", "Fixes", 6),
    ScreenFacts("4", "patterns", "Patterns", 1),
    ScreenFacts("5", "inbox", "Inbox", 12),
]


@pytest.fixture
def folder() -> Iterator[SweepFolder]:
    with fixed_sweep(125) as sweep:
        yield sweep


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (80, " 1 Sweep  2 Agent  3 Fixes 6  4 Patterns 1  5 Inbox 12"),
        (40, " 1 Sw 2 Ag 3 Fi·6 4 Pa·1 5 In·12"),
        (24, " 1 2 3·6 4·1 5·12"),
    ],
)
def test_the_line_is_shortened_by_width(width: int, shown: str) -> None:
    assert text_of(draw_screen_line(SCREENS, width)) == shown


@pytest.mark.parametrize("width", range(1, 90))
def test_the_line_fits_every_width(width: int) -> None:
    assert width_of(draw_screen_line(SCREENS, width)) <= width


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        (NextFacts(6, 1, 2, 0, False, False), " Next 6 fixes are ready: 3 · 2 questions: 5"),
        (NextFacts(1, 0, 0, 3, False, False), " Next 1 fix is ready: 3 · 3 more need you: 5"),
        (NextFacts(0, 4, 1, 1, True, False),
         " Next every fix has its verdict, A applies them: 3 · 1 question: 5 · 1 more needs you: 5 · go on with it: R"),
        (NextFacts(0, 0, 0, 0, False, True), " Next the work could not be integrated: 3"),
        (NextFacts(0, 0, 0, 0, False, False), " Nothing is left to do here"),
    ],
)  # fmt: skip
def test_what_comes_next_is_said_with_its_keys(facts: NextFacts, shown: str) -> None:
    assert text_of(draw_next(facts, 200)) == shown


def test_three_lines_teach_five_keys() -> None:
    lines = draw_first_lines(200)
    keys = {part.text for line in lines for part in line if part.role == "key"}
    assert len(lines) == 3
    assert {"Enter", "w", "a", "?", "q"} <= keys


async def test_every_screen_says_where_one_is_and_how_much_is_open_where(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        for key, title in (("1", "Sweep"), ("2", "Agent"), ("3", "Fixes"), ("4", "Patterns"), ("5", "Inbox"),
                           ("6", "Log"), ("7", "Tail"), ("8", "Hosts")):  # fmt: skip
            await press(pilot, key)
            line = text_on_screen(app).splitlines()[2]
            assert f"4 Patterns {len(app.store.patterns())}  5 Inbox {len(open_items(app.store))}" in line
            here = next(part for part in app.room_screen.header._lines[2] if part.role == "here")  # type: ignore[union-attr]
            assert here.text == key, title


async def test_on_a_low_terminal_the_line_gives_way(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE._replace(height=15)) as (app, pilot):
        assert "1 Sweep" not in text_on_screen(app)
        await pilot.resize_terminal(80, 16)
        await shows(pilot, "1 Sweep  2 Agent")


async def test_a_click_in_the_line_goes_there(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        column = text_on_screen(app).splitlines()[2].index("Patterns")
        await pilot.click("#header", offset=(column, 2))
        await shows(pilot, "Patterns 5")
        assert app.room_screen is not None
        assert app.room_screen.NAME == "patterns"


async def test_escape_closes_clears_and_goes_back_but_never_leaves(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "space", "slash", *"config", "enter")
        await press(pilot, "escape")
        assert not app.marks.tests
        assert app.choice.words == "config"
        await press(pilot, "escape")
        assert app.choice.words == ""
        for _ in range(5):
            await press(pilot, "escape")
        assert "q leaves" in text_on_screen(app)
        await press(pilot, "z")
        assert len(app.marks.tests) == 1, "what Esc has cleared is brought back"
        await press(pilot, "4", "6", "escape", "escape", "escape", "escape")
        assert app.is_running
        assert app.room_screen is not None
        assert app.room_screen.NAME == "sweep"


async def test_a_sweep_that_has_ended_says_what_comes_next() -> None:
    with integrated_sweep() as folder:
        async with room_on(folder, WIDE) as (app, pilot):
            assert " Next 5 fixes are ready: 3" in text_on_screen(app)
            assert "3 Fixes 5" in text_on_screen(app)
            await press(pilot, "3")
            await shows(pilot, "8 fixes · 2 keep · 1 revert · 5 open")
            await press(pilot, "y")
            await shows(pilot, "3 Fixes 4")
            await press(pilot, "1")
            await shows(pilot, " Next 4 fixes are ready: 3")


async def test_the_first_lines_are_shown_once_in_a_life(folder: SweepFolder, tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    for time in (1, 2):
        app = RoomApp(open_store(folder), read_settings(environment))
        async with app.run_test(size=(120, 36)) as pilot:
            await pilot.pause()
            has_lines = "are the screens above" in text_on_screen(app)
            assert has_lines == (time == 1)
            await press(pilot, "escape")
            assert "are the screens above" not in text_on_screen(app)


async def test_a_menu_entry_that_cannot_be_chosen_says_why_and_swallows_no_key(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        running = next(record.test for record in app.store.state.tests() if record.mark == "running")
        app.show_test(running)
        await press(pilot, "x", "r")
        assert "retry: none of them has ended" in text_on_screen(app)
        await press(pilot, "4")
        assert app.room_screen is not None
        assert app.room_screen.NAME == "patterns"


def is_drawn_for(app: RoomApp, size: tuple[int, int]) -> bool:
    strips = app.screen._compositor.render_strips()
    return len(strips) == size[1] and all(strip.cell_length <= size[0] for strip in strips)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (("x",), "Esc closes"),
        (("f",), "Esc closes"),
        (("question_mark",), "type to search the keys"),
        (("colon",), "Everything"),
        (("asterisk", "x", "s"), "y yes"),
        (("slash", "a"), "a"),
    ],
)
async def test_a_dialog_lives_through_every_size(folder: SweepFolder, keys: tuple[str, ...], words: str) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, *keys)
        for size in ((200, 60), (80, 24), (40, 10), (60, 16), (30, 8), (120, 36)):
            await pilot.resize_terminal(*size)
            await eventually(partial(is_drawn_for, app, size), f"{size} to be drawn")
            text = await shows(pilot, words)
            assert max(len(line) for line in text.splitlines()) <= size[0]
            for line in text.splitlines():
                assert not re.search(r"[╭╰][^╮╯]*$", line), f"a border is cut at {size}: {line}"
