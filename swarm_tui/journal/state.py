"""Fold events into the state of a sweep. All views and reports use this state."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import structs

from swarm_tui.failures.events import Alert
from swarm_tui.hosts.events import HostState
from swarm_tui.integrator.events import Integration
from swarm_tui.journal.events import RequestAnswered
from swarm_tui.journal.record import NAMES, TestRecord
from swarm_tui.limits.events import ApiAccess
from swarm_tui.model.event import INTEGRATOR_KEY, Event, LogLine
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import AnswerRule
from swarm_tui.model.results import ACTIVE_MARKS, State
from swarm_tui.model.spec import SweptTest
from swarm_tui.money.events import NO_BUDGET, NOTHING_SPENT, Budget, Spending

LOG_LINES_KEPT: Final = 5_000


def foreign_lines_text(number: int) -> str:
    """Return the warning about lines that other programs added to the journal."""
    return f"ignored {counted(number, 'line')} in the journal from another program"


def record_of_swept(test: SweptTest) -> TestRecord:
    """Return the record of a test before its first launch."""
    return TestRecord(**{name: getattr(test, name) for name in NAMES})


@dataclass
class StoredState:
    """What a snapshot stores of the state of a sweep."""

    records: dict[str, TestRecord] = field(default_factory=dict)
    not_queued: set[str] = field(default_factory=set)
    """Tests in sweep.json without an event so far."""
    slots: int = 0
    access: ApiAccess = field(default_factory=ApiAccess)
    is_held: bool = False
    budget: Budget = NO_BUDGET
    alerts: dict[str, Alert] = field(default_factory=dict)
    """The alerts, by cause."""
    spending: Spending = NOTHING_SPENT
    """The usage of all agents, including earlier launches and integrators."""
    started_at: float | None = None
    ended_at: float | None = None
    ended_why: str | None = None
    ended_reason: str = ""
    engine_machine: str = ""
    integration: Integration = field(default_factory=Integration)
    integrator: TestRecord | None = None
    """The record of the latest integrating agent."""
    rules: dict[str, AnswerRule] = field(default_factory=dict)
    rules_made: int = 0
    rule_uses: Counter[str] = field(default_factory=Counter)
    log: deque[LogLine] = field(default_factory=lambda: deque(maxlen=LOG_LINES_KEPT))
    last_seq: int = 0
    last_at: float = 0.0
    unknown_events: int = 0
    lost_events: int = 0
    """The number of events that are missing according to the sequence numbers."""
    broken_lines: int = 0
    foreign_lines: int = 0
    """The number of ignored lines from other programs."""
    stale_reason: str = ""
    checkout_changes: tuple[str, ...] = ()
    """Changes in the user's repository since launch, one sentence each."""
    hosts: dict[str, HostState] = field(default_factory=dict)
    """The hosts of the agents; empty if they run on this machine."""


class SweepState(StoredState):
    """The state of one sweep after all events applied so far. It reads neither clock nor disk.

    Records are immutable and are replaced as a whole. `drain_changed` returns the tests with a new record, so that a
    view can redraw only those.
    """

    def __init__(self, tests: Iterable[SweptTest] = ()) -> None:
        """Start with the tests in sweep.json, because their first events may be missing in the journal."""
        super().__init__({test.test: record_of_swept(test) for test in tests})
        self.not_queued = set(self.records)
        self.counts: Counter[str] = Counter({State.QUEUED.value: len(self.records)} if self.records else {})
        self.answers: dict[str, RequestAnswered] = {}
        self.is_cut_short = False
        """Whether the end of the journal is missing according to a snapshot."""
        self._changed: set[str] = set()

    def apply(self, event: Event) -> None:
        """Fold one event into the state. An event with an old sequence number is a copy and is ignored."""
        if event.seq:
            if event.seq <= self.last_seq:
                self.ignore_lines(1)
                return
            self.lost_events += event.seq - self.last_seq - 1
        self.last_seq = event.seq
        self.last_at = event.at
        event.apply(self)
        line = event.log_line()
        if line is not None:
            self.log.append(line)

    def apply_all(self, events: Iterable[Event]) -> SweepState:
        """Fold many events into the state and return it."""
        for event in events:
            self.apply(event)
        return self

    def ignore_lines(self, foreign: int) -> None:
        """Count lines of the journal from other programs, and log them."""
        self.foreign_lines += foreign
        self.log.append(LogLine(self.last_at, "error", foreign_lines_text(foreign)))

    def drain_changed(self) -> set[str]:
        changed, self._changed = self._changed, set()
        return changed

    def tests(self) -> Iterator[TestRecord]:
        """Return all records, in the order of the first `queued` events."""
        return iter(self.records.values())

    def record_of(self, test: str) -> TestRecord:
        """Return the record of a test, or of the integrator for INTEGRATOR_KEY."""
        return self.find_or_new(test) if test == INTEGRATOR_KEY else self.records[test]

    @property
    def active(self) -> int:
        """The number of running agents, without waiting ones."""
        return sum(self.counts[mark] for mark in ACTIVE_MARKS)

    @property
    def slots_in_use(self) -> int:
        """The number of slots used by running or waiting agents. Agents beyond the number of slots are not counted."""
        return max(self.active, min(self.slots, self.active + self.counts[State.WAITING.value]))

    @property
    def launches_nothing(self) -> bool:
        """Whether launching is stopped until the user acts: queue held, budget spent or login lost."""
        return self.is_held or self.budget.is_used_up or bool(self.access.lost)

    def is_waiting(self, now: float) -> bool:
        """Return whether launching is stopped until the user acts or a rate limit ends."""
        return self.launches_nothing or self.access.is_holding(now)

    @property
    def open_slots(self) -> int:
        """The number of agents that may run: the configured slots, or fewer while throttled."""
        throttle = self.access.throttle
        return self.slots if throttle.slots is None else min(self.slots, throttle.slots)

    @property
    def is_over(self) -> bool:
        """Whether the engine has exited, according to the journal."""
        return self.ended_why is not None

    # What events change. Only `put` replaces records.

    def find(self, test: str) -> TestRecord | None:
        """Return the record of a test, or of the integrator for INTEGRATOR_KEY; None if there is none."""
        return self.integrator if test == INTEGRATOR_KEY else self.records.get(test)

    def find_or_new(self, test: str) -> TestRecord:
        return self.find(test) or TestRecord(test=test)

    def change(self, test: str, **fields: Any) -> None:
        """Replace fields of a record."""
        if test == INTEGRATOR_KEY:
            self.integrator = structs.replace(self.find_or_new(test), **fields)
        else:
            # Without a record, the `queued` event of the test is missing in the journal.
            self.put(structs.replace(self.find_or_new(test), **fields))

    def put(self, new: TestRecord) -> None:
        """Replace or add the record of a test."""
        test, counts = new.test, self.counts
        old, self.records[test] = self.records.get(test), new
        self.not_queued.discard(test)
        if old is None:
            counts[new.mark] += 1
        elif old.state is not new.state or old.result is not new.result or old.api_error is not new.api_error:
            counts[old.mark] -= 1
            counts[new.mark] += 1
        self._changed.add(test)

    def hold(self, tests: tuple[str, ...], *, is_held: bool, cause: str = "") -> None:
        """Hold or release tests, or the queue if `tests` is empty."""
        if not tests:
            self.is_held = is_held
        for test in tests:
            if test in self.records:
                self.change(test, is_held=is_held, held_for=cause)

    def begin_integrator(self, agent: str, branch: str, launch_number: int, at: float) -> None:
        """Replace the record of the integrating agent."""
        before = self.find_or_new(INTEGRATOR_KEY)
        launch_number = max(launch_number, before.launch)
        self.integrator = TestRecord(
            INTEGRATOR_KEY, agent, branch, since=at, launch=launch_number, spent_before=before.spending
        )

    def end_integrator(self, at: float) -> None:
        if self.integrator is not None:
            self.change(INTEGRATOR_KEY, state=State.DONE, since=at, ended_at=at)
