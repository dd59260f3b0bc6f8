"""Fold events into the state of a sweep. All views and reports use this state."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from msgspec import structs

from swarm_tui.journal.budget_events import BudgetEvent, after_budget_event
from swarm_tui.journal.decode import KNOWN_EVENTS
from swarm_tui.journal.fold_questions import changes_by
from swarm_tui.journal.log_lines import log_line_of
from swarm_tui.journal.pattern_events import after_pattern_event
from swarm_tui.journal.record import Integration, LogLine, TestRecord, Try
from swarm_tui.model import events as happened
from swarm_tui.model.alerts import Alert
from swarm_tui.model.api_error_events import AccessEvent, ApiAccess
from swarm_tui.model.budget import NO_BUDGET
from swarm_tui.model.event import Event
from swarm_tui.model.formatting import counted
from swarm_tui.model.hosts import HostEvent, HostState, after_host_event
from swarm_tui.model.money import NOTHING_SPENT
from swarm_tui.model.questions import AnswerRule
from swarm_tui.model.results import ACTIVE_MARKS, State
from swarm_tui.model.spec import INTEGRATOR_KEY, SweptTest

TRIES_KEPT: Final = 50
LOG_LINES_KEPT: Final = 5_000
# A resumed engine compares requests with these, so that no request is carried out twice.
ANSWERS_KEPT: Final = 100_000

FIRST_LINE_LOST: Final = "its first event is missing in the journal"
END_LOST: Final = "unknown result because lines of the journal are missing; run `swarm-tui resume` to check again"
# Fields that both sweep.json and the `queued` event contain.
_NAMES: Final = ("test", "agent", "branch", "file", "line", "block", "group", "baseline", "traits")

NOTHING_ASKED: Final[dict[str, Any]] = {
    "question": "",
    "options": (),
    "condition": "",
    "needs_terminal": False,
    "trouble": None,
    "asks": (),
    "stuck": "",
}


def foreign_lines_text(number: int) -> str:
    """Return the warning about lines that other programs added to the journal."""
    return f"ignored {counted(number, 'line')} in the journal from another program"


def record_of_swept(test: SweptTest) -> TestRecord:
    """Return the record of a test before its first launch."""
    return TestRecord(**{name: getattr(test, name) for name in _NAMES})


class SweepState:
    """The state of one sweep after all events applied so far. It reads neither clock nor disk.

    Records are immutable and are replaced as a whole. `drain_changed` returns the tests with a new record, so that a
    view can redraw only those.
    """

    def __init__(self, tests: Iterable[SweptTest] = ()) -> None:
        """Start with the tests in sweep.json, because their first events may be missing in the journal."""
        self.records = {test.test: record_of_swept(test) for test in tests}
        self.not_queued = set(self.records)
        """Tests in sweep.json without an event so far."""
        self.counts: Counter[str] = Counter({State.QUEUED.value: len(self.records)} if self.records else {})
        self.slots = 0
        self.access = ApiAccess()
        self.is_held = False
        self.budget = NO_BUDGET
        self.alarms: dict[str, Alert] = {}
        """The alerts, by cause."""
        self.spending = NOTHING_SPENT
        """The usage of all agents, including earlier launches and integrators."""
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.ended_why: str | None = None
        self.ended_reason = ""
        self.engine_machine = ""
        self.integration = Integration()
        self.integrator: TestRecord | None = None
        """The record of the latest integrating agent."""
        self.answers: dict[str, happened.RequestAnswered] = {}
        self.rules: dict[str, AnswerRule] = {}
        self.rules_made = 0
        self.rule_uses: Counter[str] = Counter()
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES_KEPT)
        self.last_seq = 0
        self.last_at = 0.0
        self.unknown_events = 0
        self.lost_events = 0
        """The number of events that are missing according to the sequence numbers."""
        self.is_cut_short = False
        """Whether the end of the journal is missing according to a snapshot."""
        self.broken_lines = 0
        self.foreign_lines = 0
        """The number of ignored lines from other programs."""
        self.stale_reason = ""
        self.checkout_changes: tuple[str, ...] = ()
        """Changes in the user's repository since launch, one sentence each."""
        self.hosts: dict[str, HostState] = {}
        """The hosts of the agents; empty if they run on this machine."""
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
        handler = _HANDLERS.get(type(event))
        if handler is None:
            self.unknown_events += 1
            return
        handler(self, event)
        line = log_line_of(event)
        if line is not None:
            self.log.append(line)

    def apply_all(self, events: Iterable[happened.Event]) -> SweepState:
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
        if test == INTEGRATOR_KEY:
            return self.integrator or TestRecord(test=test)
        return self.records[test]

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
        dial = self.access.dial
        return self.slots if dial.slots is None else min(self.slots, dial.slots)

    @property
    def is_over(self) -> bool:
        """Whether the engine has exited, according to the journal."""
        return self.ended_why is not None

    # One method for each event type. Only `_put` replaces records.

    def _change(self, test: str, **fields: Any) -> None:
        if test == INTEGRATOR_KEY:
            self.integrator = (self.integrator or TestRecord(test=test))._replace(**fields)
            return
        record = self.records.get(test)
        self.not_queued.discard(test)
        if record is None:
            # The `queued` event of this test is missing in the journal.
            record = TestRecord(test=test, state=State.QUEUED)
            self.counts[record.mark] += 1
        self._put(record, record._replace(**fields))

    def _put(self, old: TestRecord, new: TestRecord) -> None:
        self.records[old.test] = new
        before, after = old.mark, new.mark
        if before != after:
            self.counts[before] -= 1
            self.counts[after] += 1
        self._changed.add(old.test)

    def _engine_started(self, event: happened.EngineStarted) -> None:
        if self.started_at is None:
            self.started_at = event.at
        for test in self.not_queued:
            # All tests are queued before an engine starts.
            self._put(self.records[test], self.records[test]._replace(reason=FIRST_LINE_LOST))
        self.not_queued.clear()
        self.ended_at = self.ended_why = None
        self.ended_reason = ""
        self.engine_machine = event.machine
        self.slots = event.slots or self.slots
        self.budget = self.budget._replace(total=event.budget, each=event.budget_each)

    def _engine_ended(self, event: happened.EngineEnded) -> None:
        self.ended_at, self.ended_why, self.ended_reason = event.at, event.why, event.reason
        if event.why == "finished" and self.lost_events:
            for record in list(self.records.values()):
                if not record.is_finished:
                    self._change(record.test, reason=END_LOST)

    def _queued(self, event: happened.Queued) -> None:
        old = self.records.get(event.test)
        if old is None or event.test in self.not_queued:
            names = {name: getattr(event, name) for name in _NAMES}
            fresh = TestRecord(**names, reason=event.reason, since=event.at)
            self.not_queued.discard(event.test)
            if old is not None:
                self._put(old, fresh)
                return
            self.records[event.test] = fresh
            self.counts[State.QUEUED.value] += 1
            self._changed.add(event.test)
            return
        # Queued again: drop the results of the earlier launch.
        fresh = TestRecord(
            test=old.test,
            agent=event.agent or old.agent,
            branch=event.branch or old.branch,
            file=old.file,
            line=old.line,
            block=old.block,
            group=old.group,
            baseline=old.baseline,
            reason=event.reason,
            since=event.at,
            attempt=old.attempt,
            is_held=old.is_held,
            held_for=old.held_for,
            spent_before=old.spending,
            traits=old.traits,
            # An interrupted revision still has to be completed.
            revision=event.revision or (None if old.harvest.end else old.revision),
            note=event.note or ("" if old.harvest.end else old.note),
        )
        self._put(old, fresh)

    def _launching(self, event: happened.Launching) -> None:
        # Older journals do not name the host before launch.
        host = {"host": event.host} if event.host else {}
        self._change(
            event.test,
            state=State.LAUNCHING,
            since=event.at,
            attempt=event.attempt,
            number=event.number,
            reason="",
            source="engine",
            **host,
        )

    def _launched(self, event: happened.Launched) -> None:
        record = self.integrator if event.test == INTEGRATOR_KEY else self.records.get(event.test)
        keeps_start = event.is_adopted and record is not None and record.launched_at is not None
        self._change(
            event.test,
            state=State.RUNNING,
            since=event.at,
            launched_at=record.launched_at if keeps_start and record else event.at,
            agent_id=event.agent_id,
            host=event.host,
            work_dir=event.work_dir,
            state_dir=event.state_dir,
            own_folder=event.own_folder or (record.own_folder if record is not None else ""),
            reason="resumed" if event.is_adopted else "",
            source="engine",
        )

    def _launch_failed(self, event: happened.LaunchFailed) -> None:
        # A `Queued` or `Harvested` event follows.
        self._change(event.test, state=State.QUEUED, since=event.at, reason=event.reason, source="engine")

    def _seen(self, event: happened.Seen) -> None:
        record = self.integrator if event.test == INTEGRATOR_KEY else self.records.get(event.test)
        # A changed question or condition does not restart the time in the state.
        is_same_state = record is not None and record.state is event.state
        self.access = self.access.after_trouble(event.trouble, event.at)
        self._change(
            event.test,
            state=event.state,
            since=record.since if record is not None and is_same_state else event.at,
            source=event.source,
            question=event.question,
            options=event.options,
            condition=event.condition,
            trouble=event.trouble,
            trouble_at=event.at if event.trouble is not None else record.trouble_at if record is not None else 0.0,
            needs_terminal=event.needs_terminal,
            reason="",
        )

    def _probe_failed(self, event: happened.ProbeFailed) -> None:
        self.stale_reason = event.reason
        for test in event.tests or tuple(self.records):
            record = self.records.get(test)
            if record is not None and not record.is_finished and record.stale_since is None:
                self._change(test, stale_since=event.at)

    def _probe_recovered(self, event: happened.ProbeRecovered) -> None:
        self.stale_reason = ""
        for test in event.tests or tuple(self.records):
            record = self.records.get(test)
            if record is not None and record.stale_since is not None:
                self._change(test, stale_since=None)

    def _host_seen(self, event: HostEvent) -> None:
        self.hosts[event.host] = after_host_event(self.hosts, event)

    _host_gone = _host_making = _host_made = _host_ended = _host_seen

    def _host_lost(self, event: happened.HostLost | happened.HostBack) -> None:
        self.hosts[event.host] = after_host_event(self.hosts, event)
        stale_since = self.hosts[event.host].lost_since
        for record in list(self.records.values()):
            if record.host == event.host and not record.is_finished:
                self._change(record.test, stale_since=stale_since)

    _host_back = _host_lost

    def _stuck(self, event: happened.Stuck) -> None:
        record = self.record_of(event.test) if event.test in self.records else TestRecord(event.test)
        self._change(event.test, stuck=event.reason, is_nudged=record.is_nudged or event.is_nudged)

    def _committed(self, event: happened.Committed) -> None:
        record = self.records.get(event.test)
        self._change(event.test, commits=event.commits, tokens_at_progress=record.tokens or 0 if record else 0)

    def _try_started(self, event: happened.TryStarted) -> None:
        self._put_try(event.test, Try(event.number, None, 0.0, event.at))

    def _try_finished(self, event: happened.TryFinished) -> None:
        reported = (event.passed, event.seconds, event.at, event.failure, event.outcome, event.reruns, event.detail)
        self._put_try(event.test, Try(event.number, *reported))

    def _put_try(self, test: str, new: Try) -> None:
        record = self.records.get(test)
        tries = record.tries if record else ()
        # Concurrent runs may finish in a different order. Tries are sorted by number.
        index = len(tries)
        while index and tries[index - 1].number >= new.number:
            index -= 1
        rest = index + (index < len(tries) and tries[index].number == new.number)
        tokens = record.tokens or 0 if record else 0
        self._change(test, tries=(*tries[:index], new, *tries[rest:])[-TRIES_KEPT:], tokens_at_progress=tokens)

    def _edited(self, event: happened.Edited) -> None:
        self._change(event.test, edits=event.edits)

    def _foreign_imports(self, event: happened.ForeignImports) -> None:
        self._change(event.test, foreign_imports=event.modules)

    def _said(self, event: happened.Said) -> None:
        if event.test == INTEGRATOR_KEY:
            self.integration = replace(self.integration, last_line=event.line)
        self._change(event.test, last_line=event.line, last_line_at=event.at)

    def _spent(self, event: happened.Spent) -> None:
        record = self.integrator if event.test == INTEGRATOR_KEY else self.records.get(event.test)
        before = record.spending if record is not None else NOTHING_SPENT
        self._change(event.test, dollars=event.dollars, tokens=event.tokens, models=event.models)
        self.spending = self.spending.minus(before).plus(self.record_of(event.test).spending)

    def _harvesting(self, event: happened.Harvesting) -> None:
        self._change(event.test, state=State.HARVESTING, since=event.at, source=event.source)

    def _harvested(self, event: happened.Harvested) -> None:
        self._change(
            event.test,
            state=State.DONE,
            result=event.result,
            since=event.at,
            ended_at=event.at,
            reason=event.reason,
            source="outcome" if not event.harvest.errored else "engine",
            harvest=event.harvest,
            **NOTHING_ASKED,
            stale_since=None,
        )

    def _claim_checked(self, event: happened.ClaimChecked) -> None:
        record = self.records.get(event.test)
        if record is not None and record.state is State.DONE:
            harvest = structs.replace(record.harvest, check=event.check)
            self._change(
                event.test, result=event.result, reason=event.reason, since=event.at, source="own run", harvest=harvest
            )

    def _stopped(self, event: happened.Stopped) -> None:
        self._change(
            event.test,
            state=State.STOPPED,
            since=event.at,
            ended_at=event.at,
            reason=event.reason,
            source=event.source,
            **NOTHING_ASKED,
            stale_since=None,
        )

    def _agents_stopped(self, event: happened.AgentsStopped) -> None:
        """Change nothing. Records do not contain whether a session still exists."""

    def _slots_changed(self, event: happened.SlotsChanged) -> None:
        self.slots = event.slots

    def _checkout_changed(self, event: happened.CheckoutChanged) -> None:
        self.checkout_changes = event.changes

    def _budget_changed(self, event: BudgetEvent) -> None:
        self.budget = after_budget_event(self.budget, event)
        for record in list(self.records.values()):
            if record.over_budget_at is not None and not self.budget.exceeds(record.dollars):
                self._change(record.test, over_budget_at=None)

    _budget_spent = _budget_blind = _budget_changed

    def _over_budget(self, event: happened.OverBudget) -> None:
        self._change(event.test, over_budget_at=event.at)

    def _access_changed(self, event: AccessEvent) -> None:
        self.access = self.access.after_event(event)

    _dial_turned = _login_lost = _login_restored = _access_changed

    def _queue_held(self, event: happened.QueueHeld) -> None:
        self._hold(event.tests, True, event.cause)
        self.alarms = after_pattern_event(self.alarms, event)

    def _queue_released(self, event: happened.QueueReleased) -> None:
        self._hold(event.tests, False)
        self.alarms = after_pattern_event(self.alarms, event)

    def _pattern_raised(self, event: happened.PatternRaised) -> None:
        self.alarms = after_pattern_event(self.alarms, event)

    def _hold(self, tests: tuple[str, ...], is_held: bool, cause: str = "") -> None:
        if not tests:
            self.is_held = is_held
        for test in tests:
            if test in self.records:
                self._change(test, is_held=is_held, held_for=cause)

    def _message_sent(self, event: happened.MessageSent) -> None:
        """Change nothing. Only the log shows it."""

    def _asked(self, event: happened.Asked | happened.AskAnswered | happened.AskClosed) -> None:
        record = self.integrator if event.test == INTEGRATOR_KEY else self.records.get(event.test)
        self._change(event.test, **changes_by(event, record or TestRecord(test=event.test)))

    def _ask_answered(self, event: happened.AskAnswered) -> None:
        self.rule_uses.update([event.rule] if event.rule else [])
        self._asked(event)

    _ask_closed = _asked

    def _rule_made(self, event: happened.RuleMade) -> None:
        self.rules[event.rule.id] = event.rule
        self.rules_made += 1

    def _rule_ended(self, event: happened.RuleEnded) -> None:
        self.rules.pop(event.rule, None)

    def _request_answered(self, event: happened.RequestAnswered) -> None:
        self.answers[event.request] = event
        while len(self.answers) > ANSWERS_KEPT:
            del self.answers[next(iter(self.answers))]

    def _integrating(self, event: happened.Integrating) -> None:
        self.integration = Integration(state="integrating", at=event.at, detail=event.by, started_at=event.at)
        if event.agent:
            before = self.integrator or TestRecord(test=INTEGRATOR_KEY)
            self.integrator = TestRecord(
                test=INTEGRATOR_KEY,
                agent=event.agent,
                branch=event.branch,
                since=event.at,
                attempt=max(event.attempt, before.attempt),
                spent_before=before.spending,
            )

    def _integrator_said(self, event: happened.IntegratorSaid) -> None:
        self.integration = replace(self.integration, last_line=event.line)

    def _integrated(self, event: happened.Integrated) -> None:
        self.integration = Integration(
            state="done",
            branch=event.branch,
            tip=event.tip,
            fixes=event.fixes,
            left_out=event.left_out,
            detail=event.detail,
            at=event.at,
            started_at=self.integration.started_at,
            by=event.by,
            refused=event.refused,
            problems=event.problems,
        )
        self._end_integrator(event.at)

    def _integration_failed(self, event: happened.IntegrationFailed) -> None:
        self._end_integrator(event.at)
        started_at = self.integration.started_at
        self.integration = Integration(state="failed", detail=event.reason, at=event.at, started_at=started_at)

    def _end_integrator(self, at: float) -> None:
        if self.integrator is not None:
            self._change(INTEGRATOR_KEY, state=State.DONE, since=at, ended_at=at)

    def _noted(self, event: happened.Noted) -> None:
        """Change nothing. Only the log shows it."""


_HANDLERS: Final[dict[type, Callable[[SweepState, Any], None]]] = {
    kind: getattr(SweepState, f"_{kind.__struct_config__.tag}") for kind in KNOWN_EVENTS
}
"""The method for each event type. It is named after the `type` in the journal."""
