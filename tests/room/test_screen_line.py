"""The line of screens, the next steps, the introduction, and the key that never leaves."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.room.app import RoomApp
from swarm_tui.room.draw.frame import NextFacts, ScreenFacts, draw_first_lines, draw_next, draw_screen_line
from swarm_tui.room.draw.spans import text_of, width_of
from swarm_tui.room.settings import read_settings
from swarm_tui.room.view import open_items
from tests.room.scenes import (
    Scene,
    fixed_sweep,
    integrated_sweep,
    open_store,
    press,
    resize,
    room_on,
    shows,
    text_on_screen,
)

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
def test_screen_line_is_shortened_by_width(width: int, shown: str) -> None:
    assert text_of(draw_screen_line(SCREENS, width)) == shown


@pytest.mark.parametrize("width", range(1, 90))
def test_screen_line_fits_every_width(width: int) -> None:
    assert width_of(draw_screen_line(SCREENS, width)) <= width


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        (NextFacts(6, 1, "", 2, 0, False, False), " Next 6 fixes are ready: 3 · 2 questions: 5"),
        (NextFacts(1, 0, "", 0, 3, False, False), " Next 1 fix is ready: 3 · 3 more need you: 5"),
        (NextFacts(0, 4, "swarm/1/reviewed", 0, 0, False, False), " Next applied on swarm/1/reviewed: 3"),
        (NextFacts(0, 4, "", 1, 1, True, False),
         " Next every fix has a verdict, A applies them: 3 · 1 question: 5 · "
         "1 more needs you: 5 · resume the sweep: R"),
        (NextFacts(0, 0, "", 0, 0, False, True), " Next integration failed: 3"),
        (NextFacts(0, 0, "", 0, 0, False, False), " Nothing left to do here"),
    ],
)  # fmt: skip
def test_next_steps_have_keys(facts: NextFacts, shown: str) -> None:
    assert text_of(draw_next(facts, 200)) == shown


def test_introduction_has_three_lines() -> None:
    lines = draw_first_lines(200)
    keys = {part.text for line in lines for part in line if part.role == "key"}
    assert len(lines) == 3
    assert {"Enter", "w", "a", "?", "q"} <= keys


async def test_every_screen_shows_screen_line_with_counts(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        for key, title in (("1", "Sweep"), ("2", "Agent"), ("3", "Fixes"), ("4", "Patterns"), ("5", "Inbox"),
                           ("6", "Log"), ("7", "Tail"), ("8", "Hosts")):  # fmt: skip
            await press(pilot, key)
            line = text_on_screen(app).splitlines()[2]
            assert f"4 Patterns {len(app.store.patterns())}  5 Inbox {len(open_items(app.store))}" in line
            here = next(part for part in app.room_screen.header._lines[2] if part.role == "here")  # type: ignore[union-attr]
            assert here.text == key, title


async def test_low_terminal_hides_screen_line(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE._replace(height=15)) as (app, pilot):
        assert "1 Sweep" not in text_on_screen(app)
        await resize(pilot, 80, 16)
        await shows(pilot, "1 Sweep  2 Agent")


async def test_click_in_screen_line_opens_screen(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        column = text_on_screen(app).splitlines()[2].index("Patterns")
        await pilot.click("#header", offset=(column, 2))
        await shows(pilot, "Patterns 5")
        assert app.room_screen is not None
        assert app.room_screen.NAME == "patterns"


async def test_escape_goes_back_but_never_leaves(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "space", "slash", *"config", "enter")
        await press(pilot, "escape")
        assert not app.view.marks.tests
        assert app.view.options.words == "config"
        await press(pilot, "escape")
        assert app.view.options.words == ""
        for _ in range(5):
            await press(pilot, "escape")
        assert "press q to leave" in text_on_screen(app)
        await press(pilot, "z")
        assert len(app.view.marks.tests) == 1, "what Esc has cleared is brought back"
        await press(pilot, "4", "6", "escape", "escape", "escape", "escape")
        assert app.is_running
        assert app.room_screen is not None
        assert app.room_screen.NAME == "sweep"


async def test_finished_sweep_shows_next_steps() -> None:
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


async def test_introduction_is_shown_once(folder: SweepFolder, tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    for time in (1, 2):
        app = RoomApp(open_store(folder), read_settings(environment))
        async with app.run_test(size=(120, 36)) as pilot:
            await pilot.pause()
            has_lines = "switch screens" in text_on_screen(app)
            assert has_lines == (time == 1)
            await press(pilot, "escape")
            assert "switch screens" not in text_on_screen(app)


async def test_disabled_menu_entry_shows_reason_and_closes_menu(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        running = next(record.test for record in app.store.state.tests() if record.mark == "running")
        app.show_test(running)
        await press(pilot, "x", "r")
        assert "retry: none of them has finished" in text_on_screen(app)
        await press(pilot, "4")
        assert app.room_screen is not None
        assert app.room_screen.NAME == "patterns"


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
async def test_dialog_draws_at_every_size(folder: SweepFolder, keys: tuple[str, ...], words: str) -> None:
    async with room_on(folder, WIDE) as (_, pilot):
        await press(pilot, *keys)
        for size in ((200, 60), (80, 24), (40, 10), (60, 16), (30, 8), (120, 36)):
            await resize(pilot, *size)
            text = await shows(pilot, words)
            assert max(len(line) for line in text.splitlines()) <= size[0]
            for line in text.splitlines():
                assert not re.search(r"[╭╰][^╮╯]*$", line), f"a border is cut at {size}: {line}"
