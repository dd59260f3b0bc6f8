"""What can be done with the sweep as a whole: slots, holding the queue, stopping and resuming."""

from __future__ import annotations

from functools import partial

from swarm_tui.model.formatting import counted
from swarm_tui.model.requests import RequestKind
from swarm_tui.room.actions import OF_NO_SWEEP, Action
from swarm_tui.room.screens.budget_commands import BudgetCommands
from swarm_tui.room.screens.dialog import ConfirmScreen
from swarm_tui.room.screens.engine_requests import EngineRequests
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.store import EngineState


class SweepCommands:
    """The actions on the whole sweep."""

    def __init__(self, screen: ScreenServices, requests: EngineRequests) -> None:
        self._screen = screen
        self._requests = requests

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("sweep.fewer_slots", ("<",), "", "One slot less: fewer agents at once", partial(self._add_slots, -1),
                   self.why_not_fewer_slots, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            Action("sweep.more_slots", (">",), "", "One slot more: more agents at once", partial(self._add_slots, 1),
                   self._why_no_engine, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            *BudgetCommands(self._screen, self._requests).actions(),
            Action("sweep.hold_queue", (), "", "Hold the queue: nothing further is launched",
                   partial(self._requests.send, RequestKind.HOLD), self.why_not_hold, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            Action("sweep.release_queue", ("L",), "", "Release the queue; go on after a lost login or a limit",
                   partial(self._requests.send, RequestKind.RELEASE), self.why_not_release, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            Action("sweep.stop_sweep", (), "", "Stop the sweep: its engine ends, what was harvested stays", self.stop,
                   self._why_no_engine, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            Action("sweep.resume", ("R",), "", "Resume the sweep: start an engine that goes on with it", self.resume,
                   self.why_not_resume, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
        )  # fmt: skip

    def _why_no_engine(self) -> str:
        return self._screen.store.why_no_requests()

    def _add_slots(self, number: int) -> None:
        slots = max(0, self._screen.store.wanted_slots + number)
        self._requests.send(RequestKind.SLOTS, slots=slots)

    def why_not_fewer_slots(self) -> str:
        return self._why_no_engine() or ("" if self._screen.store.wanted_slots > 0 else "there are no slots any more")

    def why_not_hold(self) -> str:
        return self._why_no_engine() or ("the queue is held already" if self._screen.store.state.is_held else "")

    def why_not_release(self) -> str:
        store = self._screen.store
        is_holding = store.state.is_held or store.state.access.is_holding(store.clock())
        return self._why_no_engine() or ("" if is_holding else "the queue is not held")

    def stop(self) -> None:
        def send(is_yes: bool | None) -> None:
            if is_yes:
                self._requests.send(RequestKind.STOP_SWEEP)

        active = counted(self._screen.store.state.active, "agent")
        question = f"Stop the sweep? {active} will be stopped; what was harvested stays, and it can be resumed."
        self._screen.room.push_screen(ConfirmScreen(question), send)

    def why_not_resume(self) -> str:
        if why := self._screen.store.opened.spec.why_not_continued:
            return why
        return "its engine lives" if self._screen.store.engine is EngineState.RUNNING else ""

    def resume(self) -> None:
        self._screen.show_message(self._screen.room.resume_sweep())
