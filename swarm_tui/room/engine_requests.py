"""Requests to the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Unpack

from swarm_tui.errors import SwarmError
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestDetails, RequestKind
from swarm_tui.model.formatting import counted
from swarm_tui.model.options import is_possible_budget, parse_dollars
from swarm_tui.model.results import State
from swarm_tui.money.events import limit_text
from swarm_tui.room.dialog import Choosable, ConfirmScreen
from swarm_tui.room.grid.draw import short_name
from swarm_tui.room.store import Store, SweepChanged

if TYPE_CHECKING:
    from swarm_tui.room.screen import RoomScreen


class TestRequest(NamedTuple):
    """A kind of request about tests."""

    kind: RequestKind
    key: str
    text: str
    detail: str
    is_possible: Callable[[TestRecord], bool]
    none_fits: str
    has_note: bool = False
    """Whether the user writes a note for the new agents."""


TEST_REQUESTS: Final = (
    TestRequest(
        RequestKind.STOP, "s", "stop", "stops the agents and keeps their work so far",
        lambda record: not record.is_finished, "all of them have finished",
    ),
    TestRequest(
        RequestKind.RETRY, "r", "retry", "launches new agents from the base commit",
        lambda record: record.is_finished, "none of them has finished",
    ),
    TestRequest(
        RequestKind.RETRY, "n", "retry with a note", "adds your decision or advice to the prompt of the new agents",
        lambda record: record.is_finished, "none of them has finished", has_note=True,
    ),
    TestRequest(
        RequestKind.HOLD, "h", "hold", "does not launch them until released",
        lambda record: record.state is State.QUEUED and not record.is_held, "none of them is in the queue",
    ),
    TestRequest(
        RequestKind.RELEASE, "l", "release", "allows them to launch again",
        lambda record: record.is_held, "none of them is held",
    ),
)  # fmt: skip


WATCH_REQUESTS: Final = (
    TEST_REQUESTS[0]._replace(detail="stops its program and keeps its copy; attaching starts it from the beginning"),
)


def requests_in(store: Store) -> tuple[TestRequest, ...]:
    return WATCH_REQUESTS if store.is_watch else TEST_REQUESTS


def why_no_tests(screen: RoomScreen) -> str:
    return "" if screen.current_tests() else f"no {screen.store.noun} is marked or under the cursor"


def choose_request(screen: RoomScreen) -> None:
    """Let the user choose a request for the current tests, confirm it, and send it to the engine."""
    records = screen.store.records_of(screen.current_tests())
    entries = []
    for request in requests_in(screen.store):
        number = sum(request.is_possible(record) for record in records)
        text = f"{request.text} {number:,}" if number else request.text
        why_not = "" if number else request.none_fits
        entries.append(Choosable(request.text, text, request.detail, key=request.key, why_not=why_not))
    title = short_name(records[0]) if len(records) == 1 else counted(len(records), screen.store.noun)

    def confirm(chosen: str) -> None:
        request = next(request for request in requests_in(screen.store) if request.text == chosen)
        _confirm(screen, request, [record.test for record in records if request.is_possible(record)])

    screen.choose(title, entries, confirm)


def ask_request(screen: RoomScreen, request: TestRequest) -> None:
    """Confirm a request about the current tests and send it. If it is unavailable, show why."""
    records = screen.store.records_of(screen.current_tests())
    tests = [record.test for record in records if request.is_possible(record)]
    reason = screen.store.why_only_now() or why_no_tests(screen) or ("" if tests else request.none_fits)
    if reason:
        screen.show_message(f"{request.text}: {reason}", "warning")
    else:
        _confirm(screen, request, tests)


def _confirm(screen: RoomScreen, request: TestRequest, tests: list[str]) -> None:
    if request.has_note:
        _write_note(screen, request, tests)
        return

    def send(is_yes: bool | None) -> None:
        if is_yes:
            send_request(screen, request.kind, tests=tests)
        else:
            screen.show_message("nothing was done")

    question = f"{request.text.capitalize()} {counted(len(tests), screen.store.noun)}?"
    screen.room.push_screen(ConfirmScreen(question, tests), send)


def _write_note(screen: RoomScreen, request: TestRequest, tests: list[str]) -> None:
    """Open a text box for the note. The request is sent when the user sends the text."""

    async def deliver(note: str) -> str:
        return _send(screen, request.kind, tests=tests, text=note)

    title = f"Retry {counted(len(tests), screen.store.noun)} with a note"
    screen.write_text(screen.store.records_of(tests), deliver, "nothing was retried", title=title)


def send_request(screen: RoomScreen, kind: RequestKind, **details: Unpack[RequestDetails]) -> None:
    """Send a request. The screen shows it as pending until the engine has answered."""
    if problem := _send(screen, kind, **details):
        screen.show_message(problem, "warning")


def _send(screen: RoomScreen, kind: RequestKind, **details: Unpack[RequestDetails]) -> str:
    """Send a request. Return why that failed, or ""."""
    store, tests = screen.store, tuple(details.get("tests", ()))
    if reason := store.why_no_requests():
        return reason
    try:
        store.send_request(kind, **details)
    except SwarmError as error:
        store.note("error", f"cannot request {kind.value}: {error}")
        return str(error)
    if tests:
        screen.show_message(f"{kind.value} requested for {counted(len(tests), store.noun)}")
    screen.apply_change(SweepChanged(tests=frozenset(tests)))
    return ""


def suggested_limits(total: float, spent: float) -> list[float]:
    """Return three round limits above the amount spent and above the current limit."""
    least = max(total, spent, 0.5)
    power = 1.0
    while power * 10 <= least:
        power *= 10
    steps = [factor * power * scale for scale in (0.1, 1.0, 10.0) for factor in (1, 1.5, 2, 3, 4, 5, 7)]
    return [step for step in steps if step > least][:3]


def budget_command(command: str, words: str) -> tuple[RequestKind, float, str] | None:
    """Return kind, amount and meaning of the palette command `budget 40`; None for other text."""
    kinds = {"budget": RequestKind.BUDGET, "budget-each": RequestKind.BUDGET_EACH}
    if command not in kinds or not words:
        return None
    try:
        dollars = 0.0 if words == "none" else parse_dollars(words)
    except ValueError:
        return None
    if words != "none" and not is_possible_budget(dollars):
        return None
    scope = "the sweep" if command == "budget" else "each test's agent"
    return kinds[command], dollars, f"{limit_text(dollars)} for {scope}" if dollars else f"No limit for {scope}"
