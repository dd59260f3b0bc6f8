"""State of one sweep for the room."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final, TypeVar, Unpack, cast

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.failures.alerts import with_held
from swarm_tui.failures.patterns import Pattern, PatternIndex, with_overlaps
from swarm_tui.hosts.lines import HostLine, HostTally
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_at_snapshot
from swarm_tui.journal.progress_file import integration_progress
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import Request, RequestDetails, RequestKind, append_request, request_words
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import LogLine
from swarm_tui.model.formatting import Progress, wall_clock
from swarm_tui.model.results import ACTIVE_STATES, State
from swarm_tui.money.forecast import seconds_to_end
from swarm_tui.questions.deferred import DeferredItems
from swarm_tui.questions.inbox import (
    InboxIndex,
    Item,
    ItemGroup,
    attention_order,
    can_have_items,
    group_items,
    needs_person,
    with_open_reviews,
)


class SweepConclusions:
    """Conclusions from the records of a sweep. `update` must be called for every changed record."""

    def __init__(self) -> None:
        self._patterns = PatternIndex()
        self._edited: dict[str, TestRecord] = {}
        self._active: dict[str, TestRecord] = {}
        self._open: dict[str, TestRecord] = {}
        self._spans: dict[str, float] = {}
        self._held: set[str] = set()
        self.hosts = HostTally()
        self._inbox = InboxIndex()

    def update(self, records: Iterable[TestRecord]) -> None:
        """Count new or changed records."""
        for record in records:
            test = record.test
            self.hosts.count(record)
            self._patterns.update(record)
            _keep(self._edited, record, bool(record.edits))
            _keep(self._active, record, record.state in ACTIVE_STATES)
            _keep(self._open, record, can_have_items(record))
            self._spans.pop(test, None)
            if record.state is State.DONE and record.launched_at is not None and record.ended_at is not None:
                self._spans[test] = record.ended_at - record.launched_at
            self._held.discard(test)
            if record.is_held and record.state is State.QUEUED:
                self._held.add(test)

    def seconds_left(self, queued: int, slots: int, now: float) -> float | None:
        """Return the seconds until the last test finishes, or None without a forecast."""
        spent = [now - (record.launched_at or now) for record in self._active.values()]
        return seconds_to_end(tuple(self._spans.values()), spent, queued - len(self._held), slots)

    def patterns(self) -> list[Pattern]:
        """Return all patterns, including agents that edit the same lines, those with the most tests first."""
        return with_overlaps(self._patterns.patterns(), self._edited.values())

    def items(self, state: SweepState, now: float) -> list[Item]:
        """Return the items of the inbox."""
        return self._inbox.items(state, {**self._open, **self._active}.values(), now)

    def tests_needing_person(self) -> list[TestRecord]:
        """Return the tests that need the user, most urgent first."""
        candidates = {**self._open, **self._active}
        found = [record for record in candidates.values() if needs_person(record)]
        return sorted(found, key=lambda record: (attention_order(record), record.test))


def _keep(records: dict[str, TestRecord], record: TestRecord, is_kept: bool) -> None:
    if is_kept:
        records[record.test] = record
    else:
        records.pop(record.test, None)


Insight = TypeVar("Insight")

SLICE: Final = 1 << 18
"""Bytes of the journal to read at a time. A slice takes 10 ms, so keys are handled while a long journal loads."""


class EngineState(StrEnum):
    """State of the engine of the sweep."""

    RUNNING = "running"
    GONE = "gone"
    """The sweep is not locked by an engine, and the last engine did not record its exit."""
    ENDED = "ended"
    ELSEWHERE = "elsewhere"
    """The engine ran on another machine, so its lock is not visible here."""
    PAST = "past"
    """The room shows an earlier moment. Requests are impossible."""


@dataclass(frozen=True, slots=True)
class PastMoment:
    """An earlier moment of the sweep."""

    offset: int
    """Position in the journal."""
    at: float
    state: SweepState


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request that the engine has not answered yet."""

    request: Request
    at: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The engine's answer to a request of this room, as a sentence."""

    text: str
    is_done: bool


class ChangeScope(Enum):
    """Which changes besides those of single tests there are."""

    EVERYTHING = "everything"
    """The journal was opened or replaced, or another screen was opened."""
    JOURNAL = "journal"
    """The journal has grown, possibly only by a log line."""
    VIEW = "view"
    """The filter, the view settings or the size of the terminal changed, but not the sweep."""


@dataclass(frozen=True, slots=True)
class SweepChanged:
    """Changes since the last update of the screen; empty if only time has passed."""

    tests: frozenset[str] = frozenset()
    """Tests with a changed record, mark or pending request."""
    scopes: frozenset[ChangeScope] = frozenset()
    answers: tuple[Answer, ...] = ()

    @property
    def is_everything(self) -> bool:
        return ChangeScope.EVERYTHING in self.scopes

    @property
    def is_view(self) -> bool:
        return ChangeScope.VIEW in self.scopes


NO_AGENTS: Final = "mngr has no agent to show: `mngr create NAME claude` creates one"
NOT_WATCHED: Final = "the agents are not watched any more: `swarm-tui watch` starts watching again"
EVERYTHING_CHANGED: Final = SweepChanged(scopes=frozenset({ChangeScope.EVERYTHING}))
VIEW_CHANGED: Final = SweepChanged(scopes=frozenset({ChangeScope.VIEW}))


class Store:
    def __init__(self, folder: SweepFolder, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.live_clock = clock
        self.opened = open_at_snapshot(folder)
        self.past: PastMoment | None = None
        """The earlier moment that is shown; None for the present."""
        self._live_engine = EngineState.ENDED
        self.problem = ""
        self.is_loaded = False
        self.pending: dict[str, PendingRequest] = {}
        self.room_log: list[LogLine] = []
        self.wake: Callable[[], object] = lambda: None
        """Called when there are changes to drain that did not come from the journal."""
        self._scopes: set[ChangeScope] = {ChangeScope.EVERYTHING}
        self._answers: list[Answer] = []
        self._slice = SLICE
        self._live_insights = SweepConclusions()
        self._uncounted = set(self.live_state.records)
        self._past_insights = SweepConclusions()
        self._past_records: dict[str, TestRecord] = {}
        self._changed: set[str] = set()
        self.put_off = DeferredItems(folder)
        self._inbox: tuple[object, list[ItemGroup]] | None = None
        self._insights: dict[str, tuple[float, int, Any]] = {}
        self.check_engine()

    @property
    def state(self) -> SweepState:
        """The state that is shown."""
        return self.opened.state if self.past is None else self.past.state

    @property
    def live_state(self) -> SweepState:
        """The present state, even while an earlier moment is shown."""
        return self.opened.state

    @property
    def is_watch(self) -> bool:
        """Whether the room watches agents of mngr outside a sweep."""
        return self.opened.spec.is_watch

    @property
    def noun(self) -> str:
        """The noun for a record: `test`, or `agent` outside a sweep."""
        return "agent" if self.is_watch else "test"

    @property
    def engine(self) -> EngineState:
        return self._live_engine if self.past is None else EngineState.PAST

    @property
    def insights(self) -> SweepConclusions:
        """Conclusions from the state that is shown, computed when needed."""
        if self.past is not None:
            return self._past_insights
        if self._uncounted:
            records = self.live_state.records
            self._live_insights.update(records[test] for test in self._uncounted if test in records)
            self._uncounted = set()
        return self._live_insights

    def clock(self) -> float:
        """Return the time of the moment that is shown."""
        return self.live_clock() if self.past is None else self.past.at

    def show(self, past: PastMoment | None) -> None:
        """Show an earlier moment, or the present."""
        self.past = past
        if past is not None:
            records, before = past.state.records, self._past_records
            if not before.keys() <= records.keys():
                self._past_insights, before = SweepConclusions(), {}
            self._past_insights.update(record for test, record in records.items() if before.get(test) is not record)
            self._past_records = dict(records)
        self._insights, self._inbox = {}, None
        self._scopes.add(ChangeScope.EVERYTHING)

    @property
    def is_from_newer_version(self) -> bool:
        """Whether a newer swarm-tui wrote this sweep, so that parts of it may be unsupported."""
        return self.opened.spec.is_newer_format or self.state.unknown_events > 0

    def record(self, test: str | None) -> TestRecord | None:
        return self.state.records.get(test) if test is not None else None

    def records_of(self, tests: Iterable[str]) -> list[TestRecord]:
        """Return the records of those of these tests that the sweep has."""
        return [record for test in tests if (record := self.state.records.get(test)) is not None]

    def log(self) -> list[LogLine]:
        """Return the journal's log and the room's own lines, in order of time."""
        if not self.room_log or self.past is not None:
            return list(self.state.log)
        return sorted([*self.state.log, *self.room_log], key=lambda line: line.at)

    # Reading.

    def read_new_events(self) -> bool:
        """Read a slice of the new events. Return whether there are more."""
        offset = self.opened.follower.offset
        try:
            is_restarted = self.opened.read_new_events(self._slice)
            size = self.folder.events.stat().st_size
        except FileNotFoundError:
            self._set_problem("" if self.folder.root.is_dir() else f"folder not found: {self.folder.root}")
            self.is_loaded = True
            return False
        except (JournalError, OSError) as error:
            self._set_problem(str(error))
            return False
        self._set_problem("")
        has_moved = self.opened.follower.offset != offset
        if has_moved:
            self._scopes.add(ChangeScope.JOURNAL)
        if is_restarted:
            # Moments of the previous journal are not valid in the new one.
            self.show(None)
            self._live_insights, self._uncounted = SweepConclusions(), set()
        changed = self.live_state.drain_changed()
        self._uncounted |= changed
        self._changed |= changed
        has_more = size > self.opened.follower.offset
        if has_more and not has_moved and size - offset > self._slice:
            # A line is longer than the slice. An incomplete last line is shorter and is read later.
            self._slice *= 4
            return True
        self._slice = SLICE
        has_more = has_more and has_moved
        self.is_loaded = self.is_loaded or not has_more
        self._collect_answers()
        return has_more

    def _set_problem(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._scopes.add(ChangeScope.JOURNAL)
            if problem:
                self.note("error", problem)

    def check_engine(self) -> bool:
        """Check whether the engine is running. Return whether its state has changed."""
        state = self.live_state
        if engine_process_id(self.folder.lock) is not None:
            engine = EngineState.RUNNING
        elif state.ended_why is not None or state.started_at is None:
            engine = EngineState.ENDED
        elif state.engine_machine and state.engine_machine != platform.node():
            engine = EngineState.ELSEWHERE
        else:
            engine = EngineState.GONE
        is_different = engine is not self._live_engine
        self._live_engine = engine
        return is_different

    def drain(self) -> SweepChanged:
        change = SweepChanged(frozenset(self._changed), frozenset(self._scopes), tuple(self._answers))
        self._changed, self._scopes, self._answers = set(), set(), []
        return change

    def patterns(self) -> list[Pattern]:
        """Return the patterns, computed at most once a second."""
        state = self.state
        return self._cached("patterns", lambda: with_held(self.insights.patterns(), state.alerts, state.records))

    def inbox(self) -> list[ItemGroup]:
        """Return the inbox, computed for each new event and at most once a second without one."""
        now, later = self.now, self.put_off.items()
        decided = self.decided_fixes() if self.state.integration.fixes else 0
        state_of = (self.state.last_seq, int(now), later, decided)
        if self._inbox is None or self._inbox[0] != state_of:
            items = with_open_reviews(self.insights.items(self.state, now), self.state.integration.fixes - decided)
            self._inbox = state_of, group_items(items, later)
        return self._inbox[1]

    @property
    def now(self) -> float:
        """The time of the moment that is shown. Without a running engine, the time of the last event."""
        return self.live_now if self.past is None else self.past.at

    @property
    def live_now(self) -> float:
        """The present time. Without a running engine, the time of the last event."""
        return self.live_clock() if self._live_engine is EngineState.RUNNING else self.live_state.last_at

    def decided_fixes(self) -> int:
        """Return the number of fixes with a verdict in this sweep's folder."""
        return self._reviewed()[0]

    def applied_branch(self) -> str:
        """Return the branch of the applied plan, or "" if a verdict was given since."""
        return self._reviewed()[1]

    def _reviewed(self) -> tuple[int, str]:
        """Read the verdicts and the applied branch, at most once a second."""
        # Late: 100 ms, for git and pydantic.
        from swarm_tui.review.verdicts import applied_branch_of, count_decided, review_of_sweep

        folder = review_of_sweep(self.folder.root)
        return self._cached("review", lambda: (count_decided(folder), applied_branch_of(folder)), is_of_journal=False)

    def hosts(self) -> list[HostLine]:
        """Return the state of the hosts, computed at most once a second."""
        return self._cached("hosts", lambda: self.insights.hosts.lines(self.opened.spec, self.state.hosts))

    def integration_progress(self) -> Progress | None:
        """Return the progress of a running integration, read once a second."""
        if self.engine is not EngineState.RUNNING or self.state.integration.state != "integrating":
            return None
        integration, now = self.state.integration, self.clock()
        return self._cached(
            "integration", lambda: integration_progress(self.folder, integration, now), is_of_journal=False
        )

    def seconds_left(self) -> float | None:
        queued = self.state.counts[State.QUEUED.value]
        if self.engine is not EngineState.RUNNING or (queued and self.state.is_waiting(self.clock())):
            return None
        return self._cached("left", lambda: self.insights.seconds_left(queued, self.state.open_slots, self.clock()))

    def _cached(self, name: str, compute: Callable[[], Insight], *, is_of_journal: bool = True) -> Insight:
        now = self.clock()
        cached = self._insights.get(name)
        is_same = cached is not None and is_of_journal and cached[1] == self.state.last_seq
        if cached is not None and (is_same or 0 <= now - cached[0] < 1.0):
            return cast(Insight, cached[2])
        insight = compute()
        self._insights[name] = (now, self.state.last_seq, insight)
        return insight

    # Requests.

    def why_only_now(self) -> str:
        """Return why agents, fixes and files are unavailable while an earlier moment is shown, or ""."""
        if self.past is None:
            return ""
        return f"the room shows {wall_clock(self.past.at)}: press Esc to return to the present"

    def why_no_requests(self) -> str:
        """Return why the engine cannot receive requests now, or ""."""
        match self.engine:
            case EngineState.RUNNING:
                return self.opened.why_engine_is_silent
            case EngineState.PAST:
                return self.why_only_now()
            case EngineState.ENDED:
                return "the sweep has finished: `swarm-tui resume` continues it"
            case EngineState.GONE if self.is_watch:
                return NOT_WATCHED
            case EngineState.GONE:
                return "the engine of this sweep is not running: press R to resume it"
            case EngineState.ELSEWHERE:
                return (
                    f"the engine runs on {self.state.engine_machine or 'another machine'}: its folder is read-only here"
                )

    def send_request(self, kind: RequestKind, **details: Unpack[RequestDetails]) -> Request:
        """Send a request to the engine. Its answer arrives with a later `drain`."""
        if self.past is not None:
            raise UsageError(self.why_only_now())
        request = append_request(self.folder, kind, **details)
        self.pending[request.id] = PendingRequest(request, self.live_clock())
        return request

    def pending_for(self, test: str) -> RequestKind | None:
        """Return the kind of the unanswered request about this test, or None.

        A message that has reached its agent does not count as pending, even if the engine is still sending it to other
        agents.
        """
        record = self.live_state.records.get(test)
        for pending in self.pending.values() if self.past is None else ():
            is_message = pending.request.kind is RequestKind.MESSAGE
            has_moved = is_message and record is not None and record.since > pending.at
            if test in pending.request.tests and not has_moved:
                return pending.request.kind
        return None

    def tests_of(self, name: str) -> list[str]:
        """Return the tests of this sweep that a pending request names."""
        return [test for test in self.pending[name].request.tests if test in self.live_state.records]

    def _has_moved(self, pending: PendingRequest, test: str) -> bool:
        record, kind = self.live_state.records[test], pending.request.kind
        if kind is RequestKind.STOP:
            return record.is_finished
        return kind is not RequestKind.RETRY or not record.is_finished or record.since > pending.at

    def answering(self) -> frozenset[str]:
        """Return the items with answers that are being delivered."""
        return frozenset(item for pending in self.pending.values() for item in pending.request.items)

    @property
    def wanted_slots(self) -> int:
        """The number of slots after all pending requests."""
        if self.past is not None:
            return self.state.slots
        wanted = [pending.request.slots for pending in self.pending.values() if pending.request.slots is not None]
        return wanted[-1] if wanted else self.state.slots

    def note(self, level: str, text: str, test: str = "") -> None:
        """Add a line to the log of this room, such as the details of an error."""
        self.room_log.append(LogLine(self.live_clock(), level, text, test))
        del self.room_log[:-1000]
        self._scopes.add(ChangeScope.JOURNAL)
        self.wake()

    def _collect_answers(self) -> None:
        for name in [name for name in self.pending if name in self.live_state.answers]:
            answer = self.live_state.answers[name]
            if answer.is_done and not all(self._has_moved(self.pending[name], test) for test in self.tests_of(name)):
                # The engine has accepted the request. It is complete when the tests show it.
                continue
            pending = self.pending.pop(name)
            what = request_words(pending.request, self.noun)
            if answer.is_done:
                text = f"{what}: done" + (f", {answer.detail}" if answer.detail else "")
            else:
                text = f"{what}: {answer.detail or 'the engine could not'}"
            self._answers.append(Answer(text, answer.is_done))
            self._changed.update(pending.request.tests)
