"""Earlier moments: actions and movement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.history import JournalHistory
from swarm_tui.model.formatting import parse_moment, wall_clock
from swarm_tui.model.text import plain
from swarm_tui.room.grid.draw import short_name
from swarm_tui.room.store import EVERYTHING_CHANGED, PastMoment

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp
    from swarm_tui.room.screen import RoomScreen


NO_HISTORY: Final = "watched agents have no history"


def time_command(screen: RoomScreen, command: str, words: str) -> tuple[str, str, partial[None]] | None:
    """Return name, description and handler of the palette command `at 12:04`; None for other text."""
    state = screen.store.live_state
    if command != "at" or not words or state.started_at is None:
        return None
    if words == "now":
        return "at now", "Show the present", partial(screen.room.time_travel.go_to_now)
    last = screen.store.live_now
    try:
        at = parse_moment(words, state.started_at, last)
    except UsageError as error:
        return f"at {words}", str(error), partial(screen.show_message, str(error), "warning")
    return f"at {words}", "Show the sweep at that time", partial(screen.room.time_travel.go_to, at)


LARGE_STEPS: Final = 20
"""A large step is the duration of the sweep divided by this number."""
SAID_AFTER: Final = 0.3
NOW: Final = "this is the present"
FIRST: Final = "this is the first moment in the journal"


class _Goal(NamedTuple):
    """A moment that is not computed yet."""

    offset: int
    at: float | None = None
    """A time given by the user; None for the time of the last event."""


class _Reached(NamedTuple):
    place: _Goal | None
    """None for the present."""
    why_not: str = ""


Move = Callable[[JournalHistory, _Goal | None], _Reached]


class TimeTravel:
    """The moment that the room shows. Moves run one after the other, and only the last one is displayed."""

    def __init__(self, room: RoomApp) -> None:
        self._room = room
        self._history: JournalHistory | None = None
        self._moves: list[Move] = []
        self._is_moving = False
        self._progress = 0

    @property
    def is_at_rest(self) -> bool:
        return not self._moves and not self._is_moving

    def step(self, direction: int) -> None:
        """Go to the next earlier or later event that is in the log."""
        self._go(partial(self._one_step, direction))

    def large_step(self, direction: int) -> None:
        self._go(partial(self._jump, direction))

    def go_to(self, at: float) -> None:
        self._go(lambda history, _: _Reached(_Goal(history.moment_at(at), at)))

    def go_to_now(self) -> None:
        self._moves.clear()
        self._room.store.show(None)
        self._draw(NOW)

    def _go(self, move: Move) -> None:
        self._moves.append(move)
        if not self._is_moving:
            self._is_moving = True
            self._room.run_worker(self._work(), group="time travel", exit_on_error=False)

    async def _work(self) -> None:
        try:
            while self._moves:
                moves, self._moves = self._moves, []
                work = asyncio.ensure_future(asyncio.to_thread(self._make, moves, self._here()))
                while not (await asyncio.wait({work}, timeout=SAID_AFTER))[0]:
                    self._say(f"reading the journal: {self._progress} %")
                reached, past = work.result()
                if not self._moves:
                    self._show(reached, past)
        except SwarmError as error:
            self._say(str(error), "error")
        finally:
            self._is_moving = False

    def _here(self) -> _Goal | None:
        past = self._room.store.past
        return _Goal(past.offset, past.at) if past is not None else None

    def _make(self, moves: list[Move], here: _Goal | None) -> tuple[_Reached, PastMoment | None]:
        """Compute the moves, and the state at their end."""
        store = self._room.store
        if self._history is None:
            self._history = JournalHistory(store.folder, store.opened.spec)
        self._progress = 0
        reached = _Reached(here)
        for move in moves:
            reached = move(self._history, reached.place)
        if reached.place is None or reached.place == here:
            return reached, None
        state = self._history.state_at(reached.place.offset, self._keep_progress)
        at = state.last_at if reached.place.at is None else reached.place.at
        return reached, PastMoment(reached.place.offset, at, state)

    def _keep_progress(self, done: int, size: int) -> None:
        self._progress = 100 * done // max(1, size)

    def _one_step(self, direction: int, history: JournalHistory, here: _Goal | None) -> _Reached:
        if direction > 0:
            if here is None:
                return _Reached(None, NOW)
            later = history.step_after(here.offset)
            return _Reached(None if later is None else _Goal(later))
        offset = self._room.store.opened.follower.offset if here is None else here.offset
        earlier = history.step_before(offset)
        return _Reached(here, FIRST) if earlier is None else _Reached(_Goal(earlier))

    def _jump(self, direction: int, history: JournalHistory, here: _Goal | None) -> _Reached:
        state = self._room.store.live_state
        first, last = state.started_at or 0.0, state.last_at
        span = (last - first) / LARGE_STEPS
        at = last if here is None else history.time_at(here.offset) if here.at is None else here.at
        target = at + direction * span
        if direction > 0:
            if here is None:
                return _Reached(None, NOW)
            return _Reached(None) if target >= last else _Reached(_Goal(history.moment_at(target), target))
        if at <= first:
            return _Reached(here, FIRST)
        target = max(first, target)
        return _Reached(_Goal(history.moment_at(target), target))

    def _show(self, reached: _Reached, past: PastMoment | None) -> None:
        store = self._room.store
        if past is not None:
            store.show(past)
            self._draw(_what_happened(past))
        elif reached.place is None and not reached.why_not:
            self.go_to_now()
        if reached.why_not:
            self._say(reached.why_not, "warning")

    def _draw(self, text: str) -> None:
        screen = self._room.room_screen
        if screen is not None and screen.is_mounted:
            screen.apply_change(EVERYTHING_CHANGED)
            if text:
                screen.show_message(text)

    def _say(self, text: str, level: str = "info") -> None:
        if self._room.room_screen is not None:
            self._room.room_screen.show_message(text, level)


def _what_happened(past: PastMoment) -> str:
    """Return the log line of the event that leads to this moment, or ""."""
    log = past.state.log
    if not log or log[-1].at != past.state.last_at:
        return ""
    record = past.state.records.get(log[-1].test)
    name = f"{short_name(record)} " if record is not None else ""
    return plain(f"{wall_clock(log[-1].at)} {name}{log[-1].text}", 300)
