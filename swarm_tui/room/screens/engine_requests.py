"""Requests to the engine: stop, retry, hold or release tests, each confirmed with the names of the tests; slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from swarm_tui.errors import SwarmError
from swarm_tui.model.formatting import counted
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.room.draw.cells import short_name
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.store import SweepChanged


class TestRequest(NamedTuple):
    """One kind of request about tests."""

    kind: RequestKind
    key: str
    text: str
    detail: str
    is_possible: Callable[[TestRecord], bool]
    none_fits: str


TEST_REQUESTS: Final = (
    TestRequest(
        RequestKind.STOP, "s", "stop", "the agent is stopped, what it did so far is kept",
        lambda record: not record.is_finished, "all of them have ended",
    ),
    TestRequest(
        RequestKind.RETRY, "r", "retry", "a new agent begins from the base commit",
        lambda record: record.is_finished, "none of them has ended",
    ),
    TestRequest(
        RequestKind.HOLD, "h", "hold", "not launched until it is released",
        lambda record: record.state is State.QUEUED and not record.is_held, "none of them is in the queue",
    ),
    TestRequest(
        RequestKind.RELEASE, "l", "release", "may be launched again",
        lambda record: record.is_held, "none of them is held",
    ),
)  # fmt: skip


WATCH_REQUESTS: Final = (
    TEST_REQUESTS[0]._replace(detail="its program is ended, its copy stays; attaching starts it from the beginning"),
)


class EngineRequests:
    """Sends requests about tests, or about the whole sweep, to the engine."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen

    def why_no_tests(self) -> str:
        return "" if self._screen.current_tests() else f"no {self._screen.store.noun} is marked or under the cursor"

    def choose(self) -> None:
        """Let the person choose what to ask for the current tests, confirm it, and send it to the engine."""
        records = self._screen.store.records_of(self._screen.current_tests())
        entries = []
        for request in WATCH_REQUESTS if self._screen.store.is_watch else TEST_REQUESTS:
            number = sum(request.is_possible(record) for record in records)
            entries.append(
                Choosable(
                    value=request.kind.value,
                    text=f"{request.text} {number:,}" if number else request.text,
                    detail=request.detail,
                    key=request.key,
                    why_not="" if number else request.none_fits,
                )
            )
        title = short_name(records[0]) if len(records) == 1 else counted(len(records), self._screen.store.noun)

        def confirm(values: tuple[str, ...] | None) -> None:
            for request in TEST_REQUESTS:
                if values == (request.kind.value,):
                    self._confirm(request, [record.test for record in records if request.is_possible(record)])

        self._screen.room.push_screen(PickScreen(title, entries), confirm)

    def _confirm(self, request: TestRequest, tests: list[str]) -> None:
        def send(is_yes: bool | None) -> None:
            if is_yes:
                self.send(request.kind, tests)
            else:
                self._screen.show_message("nothing was done")

        question = f"{request.text.capitalize()} {counted(len(tests), self._screen.store.noun)}?"
        self._screen.room.push_screen(ConfirmScreen(question, tests), send)

    def send(
        self,
        kind: RequestKind,
        tests: Sequence[str] = (),
        *,
        slots: int | None = None,
        dollars: float | None = None,
    ) -> None:
        """Send a request; the screen shows it as pending until the engine has answered."""
        store = self._screen.store
        reason = store.why_no_requests()
        if reason:
            self._screen.show_message(reason, "warning")
            return
        try:
            store.send_request(kind, tests=tests, slots=slots, dollars=dollars)
        except SwarmError as error:
            store.note("error", f"{kind.value} could not be asked: {error}")
            self._screen.show_message(str(error), "error")
            return
        if tests:
            self._screen.show_message(f"{kind.value}: asked for {counted(len(tests), store.noun)}")
        self._screen.apply_change(SweepChanged(tests=frozenset(tests)))
