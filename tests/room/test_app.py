"""The keys of the room."""

import dataclasses
import shutil
from collections.abc import Iterator

import pytest

from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import AgentStateChanged, RequestAnswered, SlotsChanged
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.requests import RequestFollower, RequestKind
from swarm_tui.model.results import State
from swarm_tui.room.app import RoomApp
from swarm_tui.room.grid.draw_layout import Zoom
from swarm_tui.room.grid.screen import GridScreen
from tests.room.scenes import Scene, fixed_sweep, press, resize, room_on, shows, text_on_screen
from tests.waiting import eventually

WIDE = Scene("wide", (), 120, 36)


@pytest.fixture
def folder() -> Iterator[SweepFolder]:
    with fixed_sweep(125) as sweep:
        yield sweep


def home(app: RoomApp) -> GridScreen:
    screen = app.room_screen
    assert isinstance(screen, GridScreen)
    return screen


def name_of(app: RoomApp) -> str:
    assert app.room_screen is not None
    return app.room_screen.NAME


def zoom_of(app: RoomApp) -> Zoom:
    return app.view.options.zoom


async def test_cursor_moves_only_to_tests(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        grid = home(app).grid
        order = app.view.order
        assert grid.test == order[0]
        await press(pilot, "l", "l", "h")
        assert grid.test == order[1]
        await press(pilot, "G")
        assert grid.test == order[-1]
        await press(pilot, "g", "k", "pageup")
        assert grid.test == order[0]
        await press(pilot, "right_curly_bracket")
        first_of_second = next(test for test in order if test.split("::")[0] != order[0].split("::")[0])
        assert grid.test == first_of_second
        await press(pilot, "left_curly_bracket")
        assert grid.test == order[0]


async def test_cursor_stays_on_test_in_all_zooms(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "j", "l", "l")
        test = home(app).grid.test
        for key, zoom in (("plus", Zoom.CHIPS), ("plus", Zoom.ROWS), ("minus", Zoom.CHIPS), ("minus", Zoom.DOTS)):
            await press(pilot, key)
            assert zoom_of(app) is zoom
            assert home(app).grid.test == test


async def test_w_visits_waiting_then_blocked_then_others(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        grid, records = home(app).grid, app.store.state.records
        needing = app.store.insights.tests_needing_person()
        await press(pilot, "j", "j")
        walked: list[str] = []
        for _ in needing:
            await press(pilot, "w")
            walked.append(grid.test or "")
        marks = [records[test].mark for test in walked]
        classes = [{"waiting": 0, "blocked": 1}.get(mark, 2) for mark in marks]
        assert classes[0] == 0
        assert classes == sorted(classes)
        assert set(marks) == {"waiting", "blocked", "unresolved"}
        assert {record.test for record in needing} == set(walked)
        order = app.view.order
        ranks = [(kind, order.index(test)) for kind, test in zip(classes, walked, strict=True)]
        assert ranks == sorted(ranks)
        await press(pilot, "w")
        assert grid.test == walked[0]


async def test_w_visits_newly_waiting_test_first(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        waiting = app.store.state.counts["waiting"]
        for _ in range(waiting + 1):
            await press(pilot, "w")
        assert "blocked ·" in text_on_screen(app)
        asking = next(record.test for record in app.store.state.tests() if record.state is State.RUNNING)
        journal = JournalWriter(folder.events, last_seq=app.store.state.last_seq)
        journal.append(AgentStateChanged(test=asking, state=State.WAITING, question="Which of the two?"))
        journal.close()
        await eventually(lambda: app.store.state.counts["waiting"] > waiting, "one more that waits")
        await press(pilot, "w")
        assert home(app).grid.test == asking
        assert "waits for your answer: press m" in text_on_screen(app)


async def test_filter_narrows_and_escape_restores_position(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "j", "j", "l")
        test = home(app).grid.test
        await press(pilot, "slash", *"config")
        assert "match /config" in text_on_screen(app)
        assert all("config" in test for test in app.view.order)
        await press(pilot, "escape")
        assert home(app).grid.test == test
        assert len(app.view.order) == 125


async def test_digits_open_screens_and_q_returns(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        for key, name in (("4", "patterns"), ("5", "inbox"), ("6", "log")):
            await press(pilot, key)
            assert app.room_screen is not None
            assert name == app.room_screen.NAME
        await press(pilot, "q")
        assert name_of(app) == "inbox"
        await press(pilot, "q", "q")
        assert name_of(app) == "sweep"


async def test_q_at_home_leaves_with_message(folder: SweepFolder) -> None:
    folder.write_spec(dataclasses.replace(folder.read_spec(), agent_type="claude"))
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "q")
        assert not app.is_running
        assert "The agents keep running" in (app.return_value or "")


async def test_ctrl_q_and_ctrl_c_do_not_leave(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "ctrl+q")
        assert app.is_running
        assert "Press q to leave the room" in text_on_screen(app)
        await press(pilot, "ctrl+c")
        assert app.is_running


async def test_stop_needs_confirmation_by_y(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        requests = RequestFollower(folder)
        running = [record.test for record in app.store.state.tests() if record.mark == "running"][:2]
        app.view.marks = app.view.marks.changed_to(running)
        await press(pilot, "x", "s")
        assert "Stop 2 tests?" in text_on_screen(app)
        await press(pilot, "enter")
        assert "Stop 2 tests?" in text_on_screen(app)
        await press(pilot, "n")
        assert requests.read() == ([], [])
        await press(pilot, "x", "s", "y")
        ((request,), _) = requests.read()
        assert (request.kind, set(request.tests)) == (RequestKind.STOP, set(running))
        assert app.store.pending_for(running[0]) is RequestKind.STOP


async def test_slots_are_pending_until_engine_answers(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "greater_than_sign", "greater_than_sign")
        assert "/24→26" in text_on_screen(app)
        journal = JournalWriter(folder.events, last_seq=app.store.state.last_seq)
        journal.append(SlotsChanged(slots=26))
        for request in RequestFollower(folder).read()[0]:
            journal.append(RequestAnswered(request=request.id))
        journal.close()
        await shows(pilot, "/26 ")
        await press(pilot, "colon", *"slots", "space", *"9", "enter")
        assert RequestFollower(folder).read()[0][-1].slots == 9


async def test_unavailable_action_shows_reason(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "R")
        assert "its engine is running" in text_on_screen(app)
        await press(pilot, "z")
        assert "nothing to undo" in text_on_screen(app)


async def test_help_lists_keys_and_runs_chosen_action(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "question_mark")
        assert "sweep.wanted" in text_on_screen(app)
        await press(pilot, *"chips")
        assert "sweep.wanted" not in text_on_screen(app)
        await press(pilot, "enter")
        assert zoom_of(app) is Zoom.CHIPS


async def test_enter_on_pattern_shows_its_tests(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "4", "enter")
        pattern = app.store.patterns()[0]
        assert set(app.view.order) == set(pattern.tests)
        await press(pilot, "escape")
        assert len(app.view.order) == 125


async def test_log_follows_until_cursor_moves_up(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await press(pilot, "6")
        assert "following" in text_on_screen(app)
        await press(pilot, "k", "E")
        assert "paused" in text_on_screen(app)
        await press(pilot, "F")
        assert "following" in text_on_screen(app)


async def test_config_remaps_keys(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE._replace(config_keys={"sweep.zoom_in": ("W",)})) as (app, pilot):
        await press(pilot, "plus")
        assert zoom_of(app) is Zoom.DOTS
        await press(pilot, "W")
        assert zoom_of(app) is Zoom.CHIPS


async def test_click_on_pill_filters_and_on_test_selects(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        line = text_on_screen(app).split("\n")[1]
        await pilot.click(offset=(line.index("◆"), 1))
        await eventually(lambda: app.view.options.pills == {"impl_fix"}, "the filter")
        await pilot.click(offset=(line.index("◆"), 1))
        await eventually(lambda: not app.view.options.pills, "all tests")
        grid = home(app).grid
        row, x = grid.cells.places[app.view.order[3]]
        await pilot.click("#grid", offset=(x + 2, row + 1))
        await eventually(lambda: grid.test == app.view.order[3], "the cursor where it was clicked")


async def test_room_survives_any_size(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        before = text_on_screen(app)
        for size in ((20, 5), (10, 3), (200, 60)):
            for keys in (("4",), ("5",), ("6",), ("1", "plus"), ("plus",), ("minus", "minus")):
                await resize(pilot, *size)
                await press(pilot, *keys)
                text_on_screen(app)
                await resize(pilot, 120, 36)
            await eventually(lambda: text_on_screen(app) == before, f"the screen as it was before {size}")


async def test_missing_sweep_folder_is_reported(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        shutil.rmtree(folder.root)
        await shows(pilot, "folder gone")
        await press(pilot, "j", "plus", "4", "6")
        assert "folder not found" in text_on_screen(app)
        await press(pilot, "1", "greater_than_sign")
        assert app.is_running
        folder.root.mkdir()
