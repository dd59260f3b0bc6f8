"""Agents with API errors: when the throttle changes, when launching stops, and which agent is told to continue.

When the model or this machine is overloaded, the number of agents that may run at the same time is halved once for each
burst of API errors. Each minute without errors adds one agent, up to the number that the user has set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec import structs

from swarm_tui.adapters.machine import MachineState
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.limits.events import (
    HOLDING,
    ApiError,
    ApiErrorKind,
    LoginLost,
    LoginRestored,
    Throttle,
    ThrottleChanged,
    api_error_text,
)
from swarm_tui.model.results import Result, State

BURST: Final = 60.0
"""API errors within this many seconds after a halving belong to the same burst."""
QUIET: Final = 60.0
"""Seconds without API errors after which one more agent may run."""
FRESH: Final = 5.0
TOO_MANY_HOLDS: Final = 1_800.0
"""For this many seconds, swarm-tui stays below a number of agents that overloaded the model."""


@dataclass(frozen=True, slots=True)
class ThrottleInputs:
    """The observations that decide about the throttle."""

    now: float
    wanted: int
    """The slots that the user has set."""
    active: int
    """The number of agents that use a slot."""
    given_up: int = 0
    """Active agents that wait for permission to continue."""
    api_errors: tuple[ApiError, ...] = ()
    """The API errors of agents that end without the user."""
    api_error_at: float = 0.0
    """When an agent last had such an error."""
    machine: MachineState | None = None


def throttled_slots(throttle: Throttle, inputs: ThrottleInputs) -> ThrottleChanged | None:
    """Return the next change of the throttle, or None."""
    slots = inputs.wanted if throttle.slots is None else min(throttle.slots, inputs.wanted)
    is_in_effect = inputs.active - inputs.given_up <= slots
    cause, detail = _cause_to_halve(throttle, inputs)
    if cause and is_in_effect:
        in_use = max(1, min(slots, inputs.active))
        until = _latest_end(inputs)
        # If a single agent is refused, the number of agents is not the reason.
        is_too_many = cause == ApiErrorKind.LIMITED and until is None and inputs.active - inputs.given_up > 1
        turned = ThrottleChanged(
            slots=max(1, in_use // 2),
            cause=cause,
            detail=detail,
            until=until,
            is_halved=True,
            too_many=in_use if is_too_many else None,
        )
        if not _is_as_before(turned, throttle):
            return turned
    return _later_end(throttle, inputs) or _rise(throttle, inputs)


def _is_as_before(turned: ThrottleChanged, throttle: Throttle) -> bool:
    """Return whether the throttle already has these values, because only one agent was left."""
    said = (turned.slots, turned.cause, turned.until, turned.too_many)
    return said == (throttle.slots, throttle.cause, throttle.until, throttle.too_many)


def _cause_to_halve(throttle: Throttle, inputs: ThrottleInputs) -> tuple[str, str]:
    now = inputs.now
    is_new = inputs.api_error_at > throttle.halved_at + BURST and now - inputs.api_error_at <= FRESH
    if is_new and inputs.api_errors:
        # A limit is more specific than an overloaded server, which a limited agent also reports.
        kinds = {api_error.kind for api_error in inputs.api_errors}
        return min(kinds, key=list(ApiErrorKind).index).value, ""
    if inputs.machine is not None and now - throttle.halved_at >= BURST and inputs.active > 1:
        return inputs.machine.strain
    return "", ""


def _latest_end(inputs: ThrottleInputs) -> float | None:
    ends = [api_error.until for api_error in inputs.api_errors if api_error.until is not None]
    return max((end for end in ends if end > inputs.now), default=None)


def _later_end(throttle: Throttle, inputs: ThrottleInputs) -> ThrottleChanged | None:
    """Return the throttle with the end of the limit, if that is newly known."""
    until = _latest_end(inputs)
    if throttle.slots is None or until is None or until <= (throttle.until or 0.0):
        return None
    return ThrottleChanged(slots=throttle.slots, cause=ApiErrorKind.LIMITED, until=until, too_many=throttle.too_many)


def _rise(throttle: Throttle, inputs: ThrottleInputs) -> ThrottleChanged | None:
    now = inputs.now
    has_retries = any(not api_error.has_given_up for api_error in inputs.api_errors)
    if throttle.slots is None or has_retries or now < (throttle.until or 0.0):
        return None
    if now - max(throttle.changed_at, inputs.api_error_at) < QUIET or not _has_room(throttle, inputs.machine):
        return None
    slots = throttle.slots + 1
    if throttle.too_many is not None and slots >= throttle.too_many and now - throttle.halved_at < TOO_MANY_HOLDS:
        return None
    if slots >= inputs.wanted:
        return ThrottleChanged(cause=throttle.cause)
    return ThrottleChanged(slots=slots, cause=throttle.cause, detail=throttle.detail, too_many=throttle.too_many)


def _has_room(throttle: Throttle, machine: MachineState | None) -> bool:
    if machine is None:
        return True
    is_by_machine = throttle.cause not in set(ApiErrorKind)
    return machine.is_relaxed if is_by_machine else not any(machine.strain)


CONTINUE: Final = "The API did not answer you ({words}). It works again. Continue where you stopped."
GOT_THROUGH: Final = "an agent whose login was refused and that works again"
FIRST_PAUSE: Final = 15.0
"""Seconds without an API error before an agent is told to continue. The pause doubles after each failure."""
LONGEST_PAUSE: Final = 120.0
PROVEN_AFTER: Final = 10.0
"""An agent that has run for these seconds after it was told to continue shows that other agents can continue too."""
WORKS_AFTER: Final = 20.0
"""Seconds after its launch in which an agent has used the API."""
CONTINUES_WITHIN: Final = 10.0
"""Seconds after the end of a limit in which an agent continues without a message."""
TOLD_AGAIN_AFTER: Final = 60.0
TOLD_AT_MOST: Final = 5
"""An agent that was told to continue so often, without success, no longer prevents launches."""
LATE_NEWS: Final = 5.0
"""Errors from before a login was restored may be read in the seconds after it."""


class Relaunch(NamedTuple):
    """A test to launch again, with the reason."""

    test: str
    reason: str


class TellToContinue(NamedTuple):
    """A message to send to an agent. Report the outcome with `Recovery.told`."""

    test: str
    text: str


Due = ThrottleChanged | LoginLost | LoginRestored | Relaunch | TellToContinue


@dataclass(slots=True)
class _Told:
    """How often an agent was told to continue, and when it was last told."""

    times: int = 0
    at: float = 0.0
    problems: int = 0


@dataclass(slots=True)
class Recovery:
    """The agents of one sweep with API errors. It decides from the state and the time, and starts nothing."""

    state: SweepState
    _live: Collection[str] = ()
    """The tests whose agents are running, as of the last call."""
    _told: dict[str, _Told] = field(default_factory=dict)
    _ended: dict[str, int] = field(default_factory=dict)
    """How many agents of a test have stopped because of an API error."""
    _relaunched: set[tuple[str, int]] = field(default_factory=set)
    """Tests and launches of agents whose login was still refused after a release."""
    _refused_at: dict[str, float] = field(default_factory=dict)
    """When the login of a test's agent was last refused, since a login was lost."""
    _old_login_at: float = 0.0
    """The release after which that was so."""
    _told_last: float = float("-inf")
    _pause: float = FIRST_PAUSE
    _is_telling: bool = False

    def due(self, live: Collection[str], now: float, machine: MachineState | None) -> Iterator[Due]:
        """Yield what is due. Record each event before you ask for the next, because later ones depend on the state."""
        self._live = live
        self._forget_recovered(now)
        yield from self._due_throttle(now, machine)
        yield from self._due_hold()
        yield from self._due_end_of_hold(now)
        yield from self._due_message(now)

    def may_launch(self, now: float) -> bool:
        """Return whether tests may be launched: no login is lost, no limit applies, no agent must continue first."""
        if self.state.access.is_holding(now):
            return False
        if self._waits_for_proof(now):
            return True
        return not any(
            record.api_error and record.api_error.has_given_up and self._told_of(record).times < TOLD_AT_MOST
            for record in self._believed()
        )

    def released(self) -> None:
        """Shorten the pause before the next message, because the user released the queue."""
        self._pause = FIRST_PAUSE

    def pause_before_relaunch(self, test: str) -> float:
        """Return the pause before the next launch of a test whose agent stopped because of an API error."""
        times = self._ended[test] = self._ended.get(test, 0) + 1
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(times - 1, 10))

    def told(self, test: str, problem: str) -> Relaunch | None:
        """Note the outcome of a message. Return the test to launch again if several messages could not be sent."""
        self._is_telling = False
        told = self._told.setdefault(test, _Told())
        told.problems = told.problems + 1 if problem else 0
        if told.problems <= 2:
            return None
        del self._told[test]
        return Relaunch(test, f"it could not be told to continue: {problem}")

    def _agents_with_errors(self) -> list[TestRecord]:
        return [record for record in map(self.state.record_of, self._live) if record.has_api_error]

    def _given_up(self) -> list[TestRecord]:
        return [
            record
            for record in self._agents_with_errors()
            if record.api_error is not None and record.api_error.has_given_up
        ]

    def _error_of(self, record: TestRecord) -> ApiError | None:
        """Return the API error of an agent, without its end if the user has released the queue since."""
        is_released = record.api_error_at < self.state.access.restored_at
        error = record.api_error
        return structs.replace(error, until=None) if error is not None and is_released else error

    def _believed(self) -> list[TestRecord]:
        """Return the agents whose API error concerns all agents.

        An error that only an agent reports counts if another agent has an error of the same kind.
        """
        found = [(record, record.api_error) for record in self._agents_with_errors() if record.api_error is not None]
        needed = min(2, self.state.slots)
        times = Counter(error.kind for _, error in found)
        return [record for record, error in found if not error.is_claim or times[error.kind] >= needed]

    def _believed_errors(self) -> Iterator[ApiError]:
        """Yield the API errors of these agents. One that an agent reports does not end later than all others."""
        found = [(record, error) for record in self._believed() if (error := self._error_of(record)) is not None]
        for record, error in found:
            ends = [each.until or 0.0 for other, each in found if other is not record]
            if error.is_claim and ends:
                yield structs.replace(error, until=min(error.until or 0.0, max(ends)) or None)
            else:
                yield error

    def _told_of(self, record: TestRecord) -> _Told:
        return self._told.get(record.test, _Told())

    def _forget_recovered(self, now: float) -> None:
        with_errors = {record.test for record in self._agents_with_errors()}
        for test, told in list(self._told.items()):
            if test not in with_errors and now - told.at >= TOLD_AGAIN_AFTER:
                del self._told[test]

    def _due_throttle(self, now: float, machine: MachineState | None) -> Iterator[Due]:
        state = self.state
        inputs = ThrottleInputs(
            now=now,
            wanted=state.slots,
            active=state.active,
            given_up=len(self._given_up()),
            api_errors=tuple(error for error in self._believed_errors() if error.kind not in HOLDING),
            api_error_at=state.access.api_error_at,
            machine=machine,
        )
        changed = throttled_slots(state.access.throttle, inputs)
        if changed is not None:
            yield changed

    def _due_hold(self) -> Iterator[Due]:
        """Stop launching because of the first agent whose login is refused. Others report the same."""
        access = self.state.access
        if access.lost:
            return
        for record in self._believed():
            is_new = record.api_error_at > access.restored_at + LATE_NEWS
            if not is_new or record.api_error is None or record.api_error.kind not in HOLDING:
                continue
            if self._keeps_old_login(record):
                self._relaunched.add((record.test, record.launch))
                self._old_login_at = access.restored_at
                yield Relaunch(record.test, "the login that it began with is still refused")
            elif (record.test, record.launch) not in self._relaunched:
                yield LoginLost(kind=record.api_error.kind, test=record.test, reason=record.status_detail)
                return

    def _due_end_of_hold(self, now: float) -> Iterator[Due]:
        """Continue launching if a refused agent has got through since: some programs try again without a message."""
        if not self.state.access.lost:
            self._refused_at.clear()
            return
        with_errors = self._agents_with_errors()
        refused = [record.test for record in with_errors if record.api_error and record.api_error.kind in HOLDING]
        self._refused_at.update(dict.fromkeys(refused, now))
        is_quiet = not refused and now - max(self._refused_at.values(), default=now) >= WORKS_AFTER
        if is_quiet and any(map(self._has_result_or_works, self._refused_at)):
            yield LoginRestored(by=GOT_THROUGH)

    def _has_result_or_works(self, test: str) -> bool:
        record = self.state.record_of(test)
        works = record.state is State.RUNNING and not record.has_api_error and test in self._live
        return works or record.result not in (None, Result.ERROR)

    def _keeps_old_login(self, record: TestRecord) -> bool:
        """Return whether an agent was told to continue after a release and its own login is still refused."""
        restored_at = self.state.access.restored_at
        is_old = self._told_of(record).at > restored_at > (record.launched_at or 0.0)
        return is_old and (record.test, record.launch) not in self._relaunched

    def _waits_for_proof(self, now: float) -> bool:
        """Return whether only an agent that is launched from now on can show that the new login works."""
        restored_at = self.state.access.restored_at
        if self._old_login_at != restored_at or not restored_at:
            return False
        new = [record for record in self.state.tests() if (record.launched_at or 0.0) > restored_at]
        return not any(not record.has_api_error and now - (record.launched_at or now) >= WORKS_AFTER for record in new)

    def _due_message(self, now: float) -> Iterator[Due]:
        """Yield a message to one agent that stopped retrying, if the API seems to work again."""
        state, given_up = self.state, self._given_up()
        self._judge_last(now)
        if not given_up or self._is_telling or state.access.lost or self._waits_for_proof(now):
            return
        is_full = state.active - len(given_up) >= state.open_slots
        is_too_early = now - state.access.api_error_at < self._pause
        if is_full or is_too_early or now - self._told_last < min(self._pause, PROVEN_AFTER):
            return
        ready = [record for record in given_up if self._is_ready(record, now)]
        if not ready:
            return
        first = min(ready, key=lambda record: (self._told_of(record).times, record.api_error_at))
        told = self._told.setdefault(first.test, _Told())
        told.times, told.at = told.times + 1, now
        self._is_telling, self._told_last = True, now
        words = api_error_text(first.api_error.kind, None, now) if first.api_error is not None else ""
        yield TellToContinue(first.test, CONTINUE.format(words=words))

    def _judge_last(self, now: float) -> None:
        """Shorten the pause if the agent that was told last is running, and lengthen it after another error."""
        if self.state.access.api_error_at > self._told_last > 0:
            self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * self._pause))
            self._told_last = float("-inf")
        elif now - self._told_last >= PROVEN_AFTER and self._told_last > 0:
            self._pause = 1.0

    def _is_ready(self, record: TestRecord, now: float) -> bool:
        error = self._error_of(record)
        if error is not None and error.until is not None and now < error.until + CONTINUES_WITHIN:
            return False
        told = self._told_of(record)
        return now - told.at >= TOLD_AGAIN_AFTER * max(1, 2 * (told.times - TOLD_AT_MOST))
