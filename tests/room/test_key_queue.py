"""Keys typed faster than the room draws go to the screen that the previous key has opened."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from textual import events
from textual.pilot import Pilot

from swarm_tui.errors import UsageError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.requests import RequestFollower, RequestKind
from swarm_tui.review.review import Review
from swarm_tui.room.app import RoomApp
from swarm_tui.room.settings import Settings
from tests.room.scenes import (
    Scene,
    fixed_sweep,
    integrated_sweep,
    open_store,
    press,
    room_on,
    shows,
    text_on_screen,
    until_handled,
)
from tests.waiting import PATIENCE, eventually

WIDE = Scene("wide", (), 120, 36)
NAMES = {" ": "space", "\r": "enter", "\x1b": "escape", "/": "slash", ":": "colon", "?": "question_mark", "+": "plus"}


@pytest.fixture
def folder() -> Iterator[SweepFolder]:
    with fixed_sweep(125) as sweep:
        yield sweep


async def burst(pilot: Pilot[str], text: str) -> None:
    """Type a text that the terminal delivers in one read."""
    for character in text:
        pilot.app.post_message(events.Key(NAMES.get(character, character), character))
    are_read = asyncio.Event()
    pilot.app.call_later(are_read.set)
    await are_read.wait()
    await until_handled(pilot)


async def test_keys_after_screen_change_go_to_new_screen(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await burst(pilot, "4jj5j6q5jj")
        screen = app.room_screen
        assert screen is not None
        assert screen.NAME == "inbox"
        assert screen.focused_lines is not None
        assert screen.focused_lines.cursor == 3
        assert app.current_test == app.view.order[0], "nothing has moved in the grid"


async def test_dialog_receives_the_next_key(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        running = [record.test for record in app.store.state.tests() if record.mark == "running"][:2]
        app.view.marks = app.view.marks.changed_to(running)
        await burst(pilot, "xsy")
        ((request,), _) = RequestFollower(folder).read()
        assert (request.kind, set(request.tests)) == (RequestKind.STOP, set(running))


async def test_keys_after_palette_key_are_a_command(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (_, pilot):
        await burst(pilot, ":slots 9\r")
        ((request,), _) = RequestFollower(folder).read()
        assert request.slots == 9


async def test_keys_after_filter_key_are_a_filter(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await burst(pilot, "/config\rw")
        assert "match /config" in text_on_screen(app)
        assert all("config" in test for test in app.view.order)
        assert "need" in text_on_screen(app).splitlines()[-1]


async def test_many_keys_run_in_order(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await burst(pilot, "l" * 40 + "h" * 15)
        assert app.current_test == app.view.order[25]


async def test_keys_wait_while_fixes_are_loading() -> None:
    with integrated_sweep() as sweep:
        async with room_on(sweep, WIDE) as (app, pilot):
            await burst(pilot, "3yyj1")
            review = app.review_session
            assert review is not None
            assert [fix.rank for fix in review.review.open_fixes] == [5, 6, 7]
            assert app.room_screen is not None
            assert app.room_screen.NAME == "sweep"


async def test_keys_before_question_of_apply_are_not_verdicts() -> None:
    with integrated_sweep() as sweep:
        async with room_on(sweep, WIDE) as (app, pilot):
            await burst(pilot, "3j")
            review = app.review_session
            assert review is not None
            still_open = review.review.open_fixes
            await burst(pilot, "Adyy")
            await shows(pilot, "Your checkout is unchanged")
            assert review.review.open_fixes == still_open


@pytest.mark.parametrize("key", ["a", "i"])
async def test_keys_typed_while_attaching_are_not_commands(folder: SweepFolder, key: str) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        running = [record.test for record in app.store.state.tests() if record.mark == "running"]
        app.show_test(running[0])
        await burst(pilot, f"{key}xsy5")
        # The host of this agent is not one of the sweep, so attaching fails.
        await shows(pilot, "not a host of this sweep")
        await press(pilot, "6")
        assert app.room_screen is not None
        assert app.room_screen.NAME == "log", "what is typed afterwards is a command again"
        assert not RequestFollower(folder).read()[0]


async def test_keys_before_first_frame_are_run(folder: SweepFolder) -> None:
    app = RoomApp(open_store(folder), Settings(notify="none"))
    async with app.run_test(size=(120, 36)) as pilot:
        await burst(pilot, "jj5")
        assert app.room_screen is not None
        assert app.room_screen.NAME == "inbox"
        order = app.view.order
        assert app.current_test in order[1:], "j has moved the cursor of the grid"


async def test_escape_drops_waiting_keys(folder: SweepFolder) -> None:
    is_over = threading.Event()

    def open_slowly() -> Review:
        is_over.wait(PATIENCE)
        raise UsageError("missing branch")

    app = RoomApp(open_store(folder), Settings(notify="none"), home="fixes", given_review=open_slowly)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("y", "j")
        await eventually(lambda: app.key_queue.held == 2, "two keys to be held")
        await pilot.press("escape")
        assert app.key_queue.is_idle
        assert "dropped 2 waiting keys" in text_on_screen(app)
        is_over.set()
