"""Display of agents with API errors and of stuck agents, and the key to resume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import structs

from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import AgentStateChanged
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestFollower, RequestKind
from swarm_tui.limits.events import ApiError, ApiErrorKind, LoginLost, ThrottleChanged, time_of_day
from swarm_tui.model.event import Event
from swarm_tui.model.results import State
from swarm_tui.room.draw.glyphs import glyph_of, role_of, word_of
from swarm_tui.room.grid.draw import STATE, Cell, draw_table_row, table_of
from swarm_tui.room.grid.side import draw_side
from tests.room.scenes import NOW, Scene, fixed_sweep, press, room_on, text_on_screen

UNTIL = NOW + 3_600.0
CLOCK = time_of_day(UNTIL, NOW)
LIMITED = TestRecord(
    "a.py::test_a",
    state=State.RUNNING,
    since=NOW,
    launched_at=NOW,
    status_detail="You've hit your limit",
    api_error=ApiError(kind=ApiErrorKind.LIMITED, until=UNTIL, has_given_up=True),
    api_error_at=NOW,
)
LOOPING = structs.replace(LIMITED, api_error=None, status_detail="", stuck="the same call 5 times: Bash ls")


def lines_of(record: TestRecord, width: int = 60) -> str:
    return "\n".join("".join(part.text for part in line) for line in draw_side(record, width, NOW))


def row_of(record: TestRecord, width: int) -> str:
    return "".join(part.text for part in draw_table_row(table_of([record]), Cell(record), width, NOW))


def test_limited_agent_shows_time() -> None:
    assert (LIMITED.mark, glyph_of(LIMITED), word_of(LIMITED)) == ("api_error", "≈", f"limited until {CLOCK}")
    assert f"until {CLOCK}" in row_of(LIMITED, 80)[: STATE.width]
    assert "You've hit your limit" in row_of(LIMITED, 200)
    shown = lines_of(LIMITED)
    assert f"limited until {CLOCK}" in shown
    assert "it will be told to continue when its model answers" in shown
    assert word_of(structs.replace(LIMITED, state=State.STOPPED)) == "stopped"


def test_stuck_agent_shows_reason() -> None:
    assert (word_of(LOOPING), role_of(LOOPING)) == ("stuck", "warning")
    assert "the same call 5 times: Bash ls" in row_of(LOOPING, 200)
    assert "stuck: the same call 5 times" in lines_of(LOOPING)
    assert "was notified" in lines_of(structs.replace(LOOPING, is_nudged=True))


@contextmanager
def sweep_with(*events: Event) -> Iterator[SweepFolder]:
    """Return a simulated sweep whose last events are these."""
    with fixed_sweep() as folder:
        state = open_sweep(folder).state
        with JournalWriter(folder.events, last_seq=state.last_seq, last_at=state.last_at) as writer:
            for event in events:
                writer.append(event)
        yield folder


async def test_header_shows_throttle_reason() -> None:
    throttle = ThrottleChanged(slots=6, cause="limited", until=UNTIL, is_halved=True)
    with sweep_with(throttle) as folder:
        async with room_on(folder, Scene("throttle", width=80, height=24)) as (app, _):
            header = text_on_screen(app).split("\n")[0]
    assert f"slots 6 of 24: limited until {CLOCK}" in header
    assert "left" not in header


async def test_lost_login_is_in_header_and_l_resumes() -> None:
    test = "tests/e2e/test_a.py::test_a"
    lost = LoginLost(test=test, reason="403")
    refused = AgentStateChanged(test=test, state=State.RUNNING, api_error=ApiError(kind=ApiErrorKind.LOGIN_LOST))
    with sweep_with(refused, lost) as folder:
        async with room_on(folder, Scene("login", width=80, height=24)) as (app, pilot):
            assert "login lost · L resumes" in text_on_screen(app).split("\n")[0]
            await press(pilot, "L")
        ((request,), _) = RequestFollower(folder).read()
    assert (request.kind, request.tests) == (RequestKind.RELEASE, ())
