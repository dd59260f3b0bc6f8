"""What is asked of the engine about tests: stop, retry, hold, release; shown with names before it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from swarm_tui.errors import SwarmError
from swarm_tui.model.formatting import counted
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.room.draw.cells import short_name
from swarm_tui.room.screens.base import RESET, RoomScreen
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen


class Wish(NamedTuple):
    """One thing that can be asked for tests."""

    kind: RequestKind
    key: str
    text: str
    detail: str
    is_possible: Callable[[TestRecord], bool]
    none_fits: str


WISHES: Final = (
    Wish(
        RequestKind.STOP, "s", "stop", "the agent is stopped, what it did so far is kept",
        lambda record: not record.is_finished, "all of them have ended",
    ),
    Wish(
        RequestKind.RETRY, "r", "retry", "a new agent begins from the base commit",
        lambda record: record.is_finished, "none of them has ended",
    ),
    Wish(
        RequestKind.HOLD, "h", "hold", "not launched until it is released",
        lambda record: record.state is State.QUEUED and not record.is_held, "none of them is in the queue",
    ),
    Wish(
        RequestKind.RELEASE, "l", "release", "may be launched again",
        lambda record: record.is_held, "none of them is held",
    ),
)  # fmt: skip


def ask_about(screen: RoomScreen, tests: Sequence[str]) -> None:
    """Let the person pick what to ask for these tests, confirm it, and ask the engine."""
    store = screen.store
    records = [record for test in tests if (record := store.record(test)) is not None]
    entries = []
    for wish in WISHES:
        number = sum(wish.is_possible(record) for record in records)
        entries.append(
            Choosable(
                value=wish.kind.value,
                text=f"{wish.text} {number:,}" if number else wish.text,
                detail=wish.detail,
                key=wish.key,
                why_not="" if number else wish.none_fits,
            )
        )
    title = short_name(records[0]) if len(records) == 1 else counted(len(records), "test")

    def picked(values: tuple[str, ...] | None) -> None:
        if values:
            wish = next(wish for wish in WISHES if wish.kind.value == values[0])
            _confirm(screen, wish, [record for record in records if wish.is_possible(record)])

    screen.app.push_screen(PickScreen(title, entries), picked)


def _confirm(screen: RoomScreen, wish: Wish, records: list[TestRecord]) -> None:
    names = [record.test for record in records]

    def answered(is_yes: bool | None) -> None:
        if is_yes:
            ask_engine(screen, wish.kind, names)
        else:
            screen.say("nothing was done")

    question = f"{wish.text.capitalize()} {counted(len(names), 'test')}?"
    screen.app.push_screen(ConfirmScreen(question, names), answered)


def ask_engine(screen: RoomScreen, kind: RequestKind, tests: Sequence[str] = (), *, slots: int | None = None) -> None:
    """Ask the engine; what is on the screen shows the wish at once and the truth when the engine has answered."""
    reason = screen.store.why_not_ask()
    if reason:
        screen.say(reason, "warning")
        return
    try:
        screen.store.ask(kind, tests, slots=slots)
    except SwarmError as error:
        screen.store.note("error", f"{kind.value} could not be asked: {error}")
        screen.say(str(error), "error")
        return
    if tests:
        screen.say(f"{kind.value}: asked for {counted(len(tests), 'test')}")
    screen.take_in(RESET)
