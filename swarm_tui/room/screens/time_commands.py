"""What can be done with the time of the sweep: back and forth by steps, to a time that is named, back to now."""

from __future__ import annotations

from functools import partial
from typing import Final

from swarm_tui.model.moments import parse_moment
from swarm_tui.room.actions import Action
from swarm_tui.room.screens.services import ScreenServices

ONLY_NOW: Final = "a watch keeps only what is so now"


class TimeCommands:
    """The actions that show an earlier moment."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("sweep.earlier", ("[",), "", "The sweep as it was one change earlier; Esc leads back to now",
                   partial(self._step, -1), self.why_not_earlier, why_not_in_watch=ONLY_NOW),
            Action("sweep.later", ("]",), "", "One change later, and at last back to now", partial(self._step, 1),
                   self.why_not_later, why_not_in_watch=ONLY_NOW),
            Action("sweep.much_earlier", ("(",), "", "Earlier by a twentieth of its time; `:at 12:04` names a moment",
                   partial(self._large_step, -1), self.why_not_earlier, why_not_in_watch=ONLY_NOW),
            Action("sweep.much_later", (")",), "", "Later by a twentieth", partial(self._large_step, 1),
                   self.why_not_later, why_not_in_watch=ONLY_NOW),
        )  # fmt: skip

    def why_not_earlier(self) -> str:
        return "" if self._screen.store.live_state.started_at is not None else "nothing has happened yet"

    def why_not_later(self) -> str:
        return "" if self._screen.store.past is not None else "this is now: [ leads back in time"

    def _step(self, direction: int) -> None:
        self._screen.room.time_travel.step(direction)

    def _large_step(self, direction: int) -> None:
        self._screen.room.time_travel.large_step(direction)


def time_command(screen: ScreenServices, command: str, words: str) -> tuple[str, str, partial[None]] | None:
    """Return what `at 12:04` in the palette is: its name, its meaning and what does it; None for other words."""
    state = screen.store.live_state
    if command != "at" or not words or state.started_at is None:
        return None
    if words == "now":
        return "at now", "The sweep as it is", partial(screen.room.time_travel.go_to_now)
    last = screen.store.live_now
    try:
        at = parse_moment(words, state.started_at, last)
    except ValueError as error:
        return f"at {words}", str(error), partial(screen.show_message, str(error), "warning")
    return f"at {words}", "The sweep as it was then", partial(screen.room.time_travel.go_to, at)
