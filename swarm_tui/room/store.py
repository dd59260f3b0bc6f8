"""Keeps the state of one sweep for the room: folds new events, and collects what changed since the last call.

All that the screens show of the sweep comes from here. A screen never changes it: it sends a request to the engine
(`send_request`), and the engine's events change the state.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final, TypeVar, Unpack, cast

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.insight.alarm import with_held
from swarm_tui.insight.host_lines import HostLine
from swarm_tui.insight.inbox import ItemGroup, group_items, with_open_reviews
from swarm_tui.insight.insights import Insights
from swarm_tui.insight.patterns import Pattern
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_at_snapshot
from swarm_tui.journal.progress_file import integration_progress
from swarm_tui.journal.put_off import PutOff
from swarm_tui.journal.requests import append_request
from swarm_tui.model.formatting import wall_clock
from swarm_tui.model.progress import Progress
from swarm_tui.model.requests import Request, RequestDetails, RequestKind, request_words
from swarm_tui.model.state import LogLine, TestRecord
from swarm_tui.model.states import State

Insight = TypeVar("Insight")

SLICE: Final = 1 << 18
"""How many bytes of a journal are read at once: 10 ms of work, so that keys are handled while a long one loads."""


class EngineState(StrEnum):
    """What is known of the engine of the sweep."""

    RUNNING = "running"
    GONE = "gone"
    """No engine holds the lock of the sweep, and the last one has recorded no end."""
    ENDED = "ended"
    ELSEWHERE = "elsewhere"
    """It ran on another machine, so that its lock says nothing here."""
    PAST = "past"
    """The room shows an earlier moment, about which no engine can be asked for anything."""


@dataclass(frozen=True, slots=True)
class PastMoment:
    """An earlier moment of the sweep, as it is shown."""

    offset: int
    """Where it is in the journal."""
    at: float
    state: SweepState


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request that the engine has not answered yet."""

    request: Request
    at: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine answered to a request of this room, as a sentence."""

    text: str
    is_done: bool


class ChangeScope(Enum):
    """What has changed besides single tests."""

    EVERYTHING = "everything"
    """The journal was opened or replaced, or another screen is shown."""
    JOURNAL = "journal"
    """Something was appended, possibly only a line of the log."""
    VIEW = "view"
    """The filter, the options, or the size of the terminal. The sweep itself has not changed."""


@dataclass(frozen=True, slots=True)
class SweepChanged:
    """What has changed since the screen was updated last; empty when only time has passed."""

    tests: frozenset[str] = frozenset()
    """Tests with another record, another mark or another pending request."""
    scopes: frozenset[ChangeScope] = frozenset()
    answers: tuple[Answer, ...] = ()

    @property
    def is_everything(self) -> bool:
        return ChangeScope.EVERYTHING in self.scopes

    @property
    def is_view(self) -> bool:
        return ChangeScope.VIEW in self.scopes


NO_AGENTS: Final = "mngr knows no agent that is to be shown: `mngr create NAME claude` makes one"
NOT_WATCHED: Final = "the agents are not watched any more: `swarm-tui watch` begins anew"
EVERYTHING_CHANGED: Final = SweepChanged(scopes=frozenset({ChangeScope.EVERYTHING}))
VIEW_CHANGED: Final = SweepChanged(scopes=frozenset({ChangeScope.VIEW}))


class Store:
    """The state of one sweep as this room sees it."""

    def __init__(self, folder: SweepFolder, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.live_clock = clock
        self.opened = open_at_snapshot(folder)
        self.past: PastMoment | None = None
        """The earlier moment that is shown in place of the present one."""
        self._live_engine = EngineState.ENDED
        self.problem = ""
        self.is_loaded = False
        self.pending: dict[str, PendingRequest] = {}
        self.room_log: list[LogLine] = []
        self.wake: Callable[[], object] = lambda: None
        """Is called when there is something to drain that no event of the journal brings."""
        self._scopes: set[ChangeScope] = {ChangeScope.EVERYTHING}
        self._answers: list[Answer] = []
        self._slice = SLICE
        self._live_insights = Insights()
        self._uncounted = set(self.live_state.records)
        self._past_insights = Insights()
        self._past_records: dict[str, TestRecord] = {}
        self._changed: set[str] = set()
        self.put_off = PutOff(folder)
        self._inbox: tuple[object, list[ItemGroup]] | None = None
        self._insights: dict[str, tuple[float, int, Any]] = {}
        self.check_engine()

    @property
    def state(self) -> SweepState:
        """The state that is shown."""
        return self.opened.state if self.past is None else self.past.state

    @property
    def live_state(self) -> SweepState:
        """The present state, whatever is shown."""
        return self.opened.state

    @property
    def is_watch(self) -> bool:
        """Whether this is no sweep, but agents of mngr that are watched."""
        return self.opened.spec.is_watch

    @property
    def noun(self) -> str:
        """What there is one of for each record: a test, or in a watch an agent."""
        return "agent" if self.is_watch else "test"

    @property
    def engine(self) -> EngineState:
        return self._live_engine if self.past is None else EngineState.PAST

    @property
    def insights(self) -> Insights:
        """What follows from the state that is shown, counted when somebody wants to know it."""
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
        """Show an earlier moment, or the present again."""
        self.past = past
        if past is not None:
            records, before = past.state.records, self._past_records
            if not before.keys() <= records.keys():
                self._past_insights, before = Insights(), {}
            self._past_insights.update(record for test, record in records.items() if before.get(test) is not record)
            self._past_records = dict(records)
        self._insights, self._inbox = {}, None
        self._scopes.add(ChangeScope.EVERYTHING)

    @property
    def is_from_newer_version(self) -> bool:
        """Whether a newer swarm-tui wrote this sweep, so that parts of it may be unknown here."""
        return self.opened.spec.is_newer_format or self.state.unknown_events > 0

    def record(self, test: str | None) -> TestRecord | None:
        return self.state.records.get(test) if test is not None else None

    def records_of(self, tests: Iterable[str]) -> list[TestRecord]:
        """Return the records of these tests, without those that the sweep does not have."""
        return [record for test in tests if (record := self.state.records.get(test)) is not None]

    def log(self) -> list[LogLine]:
        """Return the journal's log and the room's own lines in the order of time."""
        if not self.room_log or self.past is not None:
            return list(self.state.log)
        return sorted([*self.state.log, *self.room_log], key=lambda line: line.at)

    # Reading.

    def read_new_events(self) -> bool:
        """Read a slice of the new events; return whether there are more."""
        offset = self.opened.follower.offset
        try:
            is_restarted = self.opened.read_new_events(self._slice)
            size = self.folder.events.stat().st_size
        except FileNotFoundError:
            self._set_problem("" if self.folder.root.is_dir() else f"{self.folder.root} has vanished")
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
            # The earlier moments of another journal are not those of this one.
            self.show(None)
            self._live_insights, self._uncounted = Insights(), set()
        changed = self.live_state.drain_changed()
        self._uncounted |= changed
        self._changed |= changed
        has_more = size > self.opened.follower.offset
        if has_more and not has_moved and size - offset > self._slice:
            # A line is longer than the slice. An incomplete last line is shorter: its end will be read later.
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
        """Check whether the engine runs; return whether its state has changed."""
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
        return self._cached("patterns", lambda: with_held(self.insights.patterns(), state.alarms, state.records))

    def inbox(self) -> list[ItemGroup]:
        """Return what needs a person, computed anew for each event and each second."""
        now, later = self.now, self.put_off.items()
        decided = self.decided_fixes() if self.state.integration.fixes else 0
        state_of = (self.state.last_seq, int(now), later, decided)
        if self._inbox is None or self._inbox[0] != state_of:
            items = with_open_reviews(self.insights.items(self.state, now), self.state.integration.fixes - decided)
            self._inbox = state_of, group_items(items, later)
        return self._inbox[1]

    @property
    def now(self) -> float:
        """The time of what is shown; where no engine works any more that of the last event: nothing gets older then."""
        return self.live_now if self.past is None else self.past.at

    @property
    def live_now(self) -> float:
        """The present time, or that of the last event where no engine works any more."""
        return self.live_clock() if self._live_engine is EngineState.RUNNING else self.live_state.last_at

    def decided_fixes(self) -> int:
        """Return how many fixes have a verdict in this sweep's folder, read at most once a second."""
        from swarm_tui.triage.store import count_decided, review_of_sweep

        return self._cached("decided", lambda: count_decided(review_of_sweep(self.folder.root)), is_of_journal=False)

    def hosts(self) -> list[HostLine]:
        """Return what is known of the hosts, computed at most once a second."""
        return self._cached("hosts", lambda: self.insights.hosts.lines(self.opened.spec, self.state.hosts))

    def integration_progress(self) -> Progress | None:
        """Return how far an integration is that is at work now, looked at once a second."""
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
        known = self._insights.get(name)
        is_same = known is not None and is_of_journal and known[1] == self.state.last_seq
        if known is not None and (is_same or 0 <= now - known[0] < 1.0):
            return cast(Insight, known[2])
        insight = compute()
        self._insights[name] = (now, self.state.last_seq, insight)
        return insight

    # Requests.

    def why_only_now(self) -> str:
        """Return why agents, fixes and files cannot be reached while an earlier moment is shown, or ""."""
        return f"you look at {wall_clock(self.past.at)}: Esc leads back to now" if self.past is not None else ""

    def why_no_requests(self) -> str:
        """Return the reason why the engine cannot get requests now, or ""."""
        if self.opened.spec.why_not_continued:
            return self.opened.spec.why_not_continued
        match self.engine:
            case EngineState.RUNNING:
                return self.opened.why_engine_is_silent
            case EngineState.PAST:
                return self.why_only_now()
            case EngineState.ENDED:
                return "the sweep is over: `swarm-tui resume` goes on with it"
            case EngineState.GONE if self.is_watch:
                return NOT_WATCHED
            case EngineState.GONE:
                return "the engine of this sweep is gone: R starts one that goes on with it"
            case EngineState.ELSEWHERE:
                return (
                    f"the engine runs on {self.state.engine_machine or 'another machine'}: this is a view of its folder"
                )

    def send_request(self, kind: RequestKind, **details: Unpack[RequestDetails]) -> Request:
        """Send a request to the engine; its answer comes with a later `drain`."""
        if self.past is not None:
            raise UsageError(self.why_only_now())
        request = append_request(self.folder, kind, **details)
        self.pending[request.id] = PendingRequest(request, self.live_clock())
        return request

    def pending_for(self, test: str) -> RequestKind | None:
        """Return the kind of a request about this test that the engine has not answered yet.

        A message that has reached its agent is no longer on its way, though the engine says so only when all have it.
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
        """Return the items to which answers are on their way."""
        return frozenset(item for pending in self.pending.values() for item in pending.request.items)

    @property
    def wanted_slots(self) -> int:
        """The number of slots when all pending requests are carried out."""
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
                # The engine is at it: what was asked for is done when the tests show it.
                continue
            pending = self.pending.pop(name)
            what = request_words(pending.request, self.noun)
            if answer.is_done:
                text = f"{what}: done" + (f", {answer.detail}" if answer.detail else "")
            else:
                text = f"{what}: {answer.detail or 'the engine could not'}"
            self._answers.append(Answer(text, answer.is_done))
            self._changed.update(pending.request.tests)
