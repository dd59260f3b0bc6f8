"""How agents whose model does not answer, and those that are stuck, are shown; and the key that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.requests import RequestFollower
from swarm_tui.model.events import DialTurned, KnownEvent, LoginLost, Seen
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.trouble import Trouble, TroubleKind, time_of_day
from swarm_tui.room.draw.cells import Cell
from swarm_tui.room.draw.glyphs import glyph_of, role_of, word_of
from swarm_tui.room.draw.side import draw_side
from swarm_tui.room.draw.table import STATE, draw_table_row, table_of
from tests.room.scenes import NOW, Scene, fixed_sweep, press, room_on, text_on_screen

UNTIL = NOW + 3_600.0
CLOCK = time_of_day(UNTIL, NOW)
LIMITED = TestRecord(
    "a.py::test_a",
    state=State.RUNNING,
    since=NOW,
    launched_at=NOW,
    condition="You've hit your limit",
    trouble=Trouble(kind=TroubleKind.LIMITED, until=UNTIL, has_given_up=True),
    trouble_at=NOW,
)
LOOPING = LIMITED._replace(trouble=None, condition="", stuck="the same call 5 times: Bash ls")


def lines_of(record: TestRecord, width: int = 60) -> str:
    return "\n".join("".join(part.text for part in line) for line in draw_side(record, width, NOW))


def row_of(record: TestRecord, width: int) -> str:
    return "".join(part.text for part in draw_table_row(table_of([record]), Cell(record), width, NOW))


def test_a_limited_agent_says_until_when() -> None:
    assert (LIMITED.mark, glyph_of(LIMITED), word_of(LIMITED)) == ("hindered", "≈", f"limited until {CLOCK}")
    assert f"until {CLOCK}" in row_of(LIMITED, 80)[: STATE.width]
    assert "You've hit your limit" in row_of(LIMITED, 200)
    shown = lines_of(LIMITED)
    assert f"limited until {CLOCK}" in shown
    assert "it is told to go on when its model answers again" in shown
    assert word_of(LIMITED._replace(state=State.STOPPED)) == "stopped"


def test_a_stuck_agent_says_why() -> None:
    assert (word_of(LOOPING), role_of(LOOPING)) == ("stuck", "warning")
    assert "the same call 5 times: Bash ls" in row_of(LOOPING, 200)
    assert "stuck: the same call 5 times" in lines_of(LOOPING)
    assert "was told so" in lines_of(LOOPING._replace(is_nudged=True))


@contextmanager
def sweep_with(*events: KnownEvent) -> Iterator[SweepFolder]:
    """Return a simulated sweep in which these events came last."""
    with fixed_sweep() as folder:
        state = open_sweep(folder).state
        with JournalWriter(folder.events, last_seq=state.last_seq, last_at=state.last_at) as writer:
            for event in events:
                writer.append(event)
        yield folder


async def test_the_header_says_why_fewer_agents_work() -> None:
    dial = DialTurned(slots=6, cause="limited", until=UNTIL, is_halved=True)
    with sweep_with(dial) as folder:
        async with room_on(folder, Scene("dial", width=80, height=24)) as (app, _):
            header = text_on_screen(app).split("\n")[0]
    assert f"slots 6 of 24: limited until {CLOCK}" in header
    assert "left" not in header


async def test_a_lost_login_is_one_line_and_one_key_goes_on() -> None:
    test = "tests/e2e/test_a.py::test_a"
    lost = LoginLost(test=test, reason="403")
    refused = Seen(test=test, state=State.RUNNING, trouble=Trouble(kind=TroubleKind.LOGIN_LOST))
    with sweep_with(refused, lost) as folder:
        async with room_on(folder, Scene("login", width=80, height=24)) as (app, pilot):
            assert "login lost · L goes on" in text_on_screen(app).split("\n")[0]
            await press(pilot, "L")
        ((request,), _) = RequestFollower(folder).read()
    assert (request.kind, request.tests) == (RequestKind.RELEASE, ())
