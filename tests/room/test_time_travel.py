"""The room at earlier moments: it shows the journal up to that moment, and sends nothing."""

from collections.abc import Iterator

import pytest
from textual.pilot import Pilot

from swarm_tui.errors import UsageError
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import Pulled
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.requests import RequestKind
from swarm_tui.journal.snapshot import take_snapshot
from swarm_tui.journal.state import SweepState
from swarm_tui.model.formatting import wall_clock
from swarm_tui.model.results import Result
from swarm_tui.room.app import RoomApp
from swarm_tui.room.store import PastMoment, Store
from swarm_tui.room.view import plain_lines_of
from tests.room.scenes import NOW, Scene, fixed_sweep, open_store, press, resize, room_on, text_on_screen
from tests.waiting import eventually

WIDE = Scene("wide", (), 140, 36)


@pytest.fixture(scope="module")
def sweep() -> Iterator[SweepFolder]:
    with fixed_sweep(60) as folder:
        yield folder


@pytest.fixture
def folder() -> Iterator[SweepFolder]:
    with fixed_sweep(60) as folder:
        yield folder


async def go(app: RoomApp, pilot: Pilot[str], *keys: str) -> None:
    for key in keys:
        await press(pilot, key)
        await eventually(lambda: app.time_travel.is_at_rest, "the moment to be there")
    await pilot.pause()


def past_of(app: RoomApp) -> PastMoment:
    assert app.store.past is not None
    return app.store.past


def is_true(store: Store) -> bool:
    """Return whether the room shows the journal up to its moment."""
    assert store.past is not None
    whole = SweepState(store.opened.spec.tests)
    whole.apply_all(EventFollower(store.folder.events).read(store.past.offset).events)
    return take_snapshot(whole) == take_snapshot(store.state)


async def test_step_back_shows_moment_before_last_change(sweep: SweepFolder) -> None:
    async with room_on(sweep, WIDE) as (app, pilot):
        now = take_snapshot(app.store.state)
        await go(app, pilot, "left_square_bracket", "left_square_bracket")
        past = past_of(app)
        assert is_true(app.store)
        head = text_on_screen(app).split("\n")[0]
        assert f"{wall_clock(past.at)} · Esc now" in head
        assert "ago · ] later" in head
        await resize(pilot, 40, 10)
        await eventually(lambda: f"{wall_clock(past.at)} · Esc now" in text_on_screen(app), "the moment at 40x10")
        await resize(pilot, 140, 36)
        await go(app, pilot, "right_square_bracket")
        assert past_of(app).offset > past.offset
        assert is_true(app.store)
        await go(app, pilot, "escape")
        assert app.store.past is None
        assert take_snapshot(app.store.state) == now
        assert "Esc now" not in text_on_screen(app)


async def test_steps_go_to_beginning_and_back(sweep: SweepFolder) -> None:
    async with room_on(sweep, WIDE) as (app, pilot):
        for _ in range(21):
            app.time_travel.large_step(-1)
        await eventually(lambda: app.time_travel.is_at_rest, "the first moment")
        await go(app, pilot, "left_parenthesis")
        first = past_of(app)
        assert first.at == app.store.live_state.started_at
        assert app.store.state.counts["queued"] == 60
        assert "this is the first moment" in text_on_screen(app)
        seen = set()
        for _ in range(30):
            await go(app, pilot, "right_parenthesis")
            if app.store.past is None:
                break
            assert is_true(app.store)
            seen.add(past_of(app).offset)
        assert app.store.past is None
        assert len(seen) > 10
        assert "this is the present" in text_on_screen(app)


async def test_many_quick_steps_are_all_counted(sweep: SweepFolder) -> None:
    async with room_on(sweep, WIDE) as (app, pilot):
        for _ in range(7):
            app.time_travel.step(-1)
        await eventually(lambda: app.time_travel.is_at_rest, "the moment to be there")
        at_once = past_of(app).offset
        await go(app, pilot, "escape", *["left_square_bracket"] * 7)
        assert past_of(app).offset == at_once


async def test_given_moment_is_shown_on_every_screen(sweep: SweepFolder) -> None:
    async with room_on(sweep, WIDE) as (app, pilot):
        began = app.store.state.started_at or 0.0
        at = (began + app.store.state.last_at) / 2
        middle = wall_clock(at)
        await press(pilot, "colon", *"at", "space", *("colon" if sign == ":" else sign for sign in middle))
        await go(app, pilot, "enter")
        assert past_of(app).at == pytest.approx(at, abs=1.0)
        assert is_true(app.store)
        for key in ("2", "4", "5", "6", "8"):
            await go(app, pilot, key)
            assert middle in text_on_screen(app).split("\n")[0]
        for key, title in (("3", "Fixes"), ("7", "Tail")):
            await go(app, pilot, "1", key)
            assert f"{title}: files and commits in their present state" in text_on_screen(app)
            await go(app, pilot, "1", "escape")
            assert app.store.past is not None
        await go(app, pilot, "2")
        assert "below: the present" in text_on_screen(app)


async def test_past_moment_sends_no_requests(sweep: SweepFolder) -> None:
    async with room_on(sweep, WIDE) as (app, pilot):
        await go(app, pilot, "left_square_bracket", "left_square_bracket")
        reason = f"the room shows {wall_clock(past_of(app).at)}: press Esc to return to the present"
        place = past_of(app)
        for screen, keys in (("1", "a i m x less_than_sign greater_than_sign R L dollar_sign"), ("5", "y n A m l r x")):
            await go(app, pilot, screen)
            for key in keys.split():
                # Text typed after that does nothing.
                await go(app, pilot, key, *"oqkdemZ", "space", "enter", "right_square_bracket")
                assert reason in text_on_screen(app), key
                await go(app, pilot, "escape")
        assert past_of(app) is place
        assert not app.view.marks.tests
        assert not app.drafts
        with pytest.raises(UsageError):
            app.store.send_request(RequestKind.STOP_SWEEP)
        assert not sweep.requests.exists()


async def test_journal_is_followed_while_past_is_shown(folder: SweepFolder) -> None:
    async with room_on(folder, WIDE) as (app, pilot):
        await go(app, pilot, "left_square_bracket")
        shown = take_snapshot(app.store.state)
        test = next(record.test for record in app.store.live_state.tests() if not record.is_finished)
        with JournalWriter(folder.events, last_seq=app.store.live_state.last_seq, last_at=NOW) as journal:
            journal.append(Pulled(test=test, result=Result.ERROR, reason="it was killed"))
        await eventually(lambda: app.store.live_state.records[test].is_finished, "the new event")
        assert take_snapshot(app.store.state) == shown
        await go(app, pilot, "escape")
        assert app.store.state.records[test].result is Result.ERROR


def test_plain_lines_of_past_name_the_moment(sweep: SweepFolder) -> None:
    store = open_store(sweep)
    offset = store.opened.follower.offset
    store.show(PastMoment(offset, store.state.last_at, store.state))
    lines = list(plain_lines_of(store))
    assert lines[0] == f"Sweep 20261118-061200: at {wall_clock(store.state.last_at)}"
