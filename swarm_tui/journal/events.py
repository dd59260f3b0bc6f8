"""Events that belong to no other subject: engine, queue, launch, state, pull, requests. How they change the state.

`launching` is written before an agent is created and `launched` afterwards. If the engine crashes in between, the next
engine looks for the agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import structs

from swarm_tui.integrator.events import Revision
from swarm_tui.journal.record import NAMES, TestRecord
from swarm_tui.limits.events import ApiError
from swarm_tui.model.event import INTEGRATOR_KEY, Event, LogLine, TestEvent
from swarm_tui.model.pulled import ClaimCheck, PulledWork
from swarm_tui.model.results import MARKS, Baseline, Result, State

if TYPE_CHECKING:
    from swarm_tui.journal.state import SweepState


# A resumed engine compares requests with these, so that no request is carried out twice.
ANSWERS_KEPT: Final = 100_000
FIRST_LINE_LOST: Final = "its first event is missing in the journal"
END_LOST: Final = "unknown result because lines of the journal are missing; run `swarm-tui resume` to check again"

NOTHING_ASKED: Final[dict[str, Any]] = {
    "question": "",
    "options": (),
    "status_detail": "",
    "needs_terminal": False,
    "api_error": None,
    "open_questions": (),
    "stuck": "",
}
"""The fields of a record that are reset when its agent has finished."""


class EngineStarted(Event, frozen=True):
    """An engine started or resumed the sweep."""

    pid: int
    machine: str = ""
    version: str = ""
    is_resumed: bool = False
    slots: int = 0
    budget: float = 0.0
    """Dollars for the whole sweep; 0 means unlimited."""
    budget_each: float = 0.0

    def apply(self, state: SweepState) -> None:
        if state.started_at is None:
            state.started_at = self.at
        for test in list(state.not_queued):
            # All tests are queued before an engine starts.
            state.change(test, reason=FIRST_LINE_LOST)
        state.ended_at = state.ended_why = None
        state.ended_reason = ""
        state.engine_machine = self.machine
        state.slots = self.slots or state.slots
        state.budget = state.budget._replace(total=self.budget, each=self.budget_each)

    def log_line(self) -> LogLine | None:
        return self.logged(f"engine {'resumed' if self.is_resumed else 'started'}, {self.slots} slots")


class EngineEnded(Event, frozen=True):
    """The engine exited."""

    why: Literal["finished", "stopped", "failed"] = "finished"
    reason: str = ""

    def apply(self, state: SweepState) -> None:
        state.ended_at, state.ended_why, state.ended_reason = self.at, self.why, self.reason
        if self.why == "finished" and state.lost_events:
            for record in list(state.records.values()):
                if not record.is_finished:
                    state.change(record.test, reason=END_LOST)

    def log_line(self) -> LogLine | None:
        text = f"engine {self.why}" + (f": {self.reason}" if self.reason else "")
        return self.logged(text, "info" if self.why == "finished" else "warning")


class Queued(TestEvent, frozen=True):
    """A test is waiting for a slot. The first such event of a test adds it to the sweep."""

    agent: str = ""
    branch: str = ""
    file: str = ""
    line: int = 0
    block: str = ""
    group: str = ""
    baseline: Baseline = Baseline.UNKNOWN
    reason: str = ""
    traits: tuple[str, ...] = ()
    """Properties that tests can have in common: `fixture db`, `marker slow`, `parameter size=3`."""
    revision: Revision | None = None
    """The fix that was sent back, if the agent continues earlier work."""
    note: str = ""
    """The user's note for the new agent of a test that is retried."""

    def apply(self, state: SweepState) -> None:
        old = state.records.get(self.test)
        if old is None or self.test in state.not_queued:
            names = {name: getattr(self, name) for name in NAMES}
            state.put(TestRecord(**names, reason=self.reason, since=self.at))
            return
        # Queued again: drop the results of the earlier launch.
        state.put(
            TestRecord(
                test=old.test,
                agent=self.agent or old.agent,
                branch=self.branch or old.branch,
                file=old.file,
                line=old.line,
                block=old.block,
                group=old.group,
                baseline=old.baseline,
                reason=self.reason,
                since=self.at,
                launch=old.launch,
                is_held=old.is_held,
                held_for=old.held_for,
                spent_before=old.spending,
                traits=old.traits,
                # An interrupted revision still has to be completed.
                revision=self.revision or (None if old.pulled.end else old.revision),
                note=self.note or ("" if old.pulled.end else old.note),
            )
        )

    def log_line(self) -> LogLine | None:
        return self.logged(f"queued again: {self.reason}", test=self.test) if self.reason else None


class Launching(TestEvent, frozen=True):
    """`mngr create` is about to be called."""

    launch: int = 1
    number: int = 0
    """The agent's number, unique among the live agents; 0 for none."""
    host: str = ""
    """The host of the agent."""

    def apply(self, state: SweepState) -> None:
        state.change(
            self.test,
            state=State.LAUNCHING,
            since=self.at,
            launch=self.launch,
            number=self.number,
            reason="",
            source="engine",
            host=self.host,
        )


class Launched(TestEvent, frozen=True):
    """The agent exists."""

    agent_id: str = ""
    host: str = ""
    work_dir: str = ""
    state_dir: str = ""
    agent_dir: str = ""
    """The folder with the agent's task file and interpreter, as a path on its host."""
    is_adopted: bool = False

    def apply(self, state: SweepState) -> None:
        record = state.find_or_new(self.test)
        keeps_start = self.is_adopted and record.launched_at is not None
        state.change(
            self.test,
            state=State.RUNNING,
            since=self.at,
            launched_at=record.launched_at if keeps_start else self.at,
            agent_id=self.agent_id,
            host=self.host,
            work_dir=self.work_dir,
            state_dir=self.state_dir,
            agent_dir=self.agent_dir or record.agent_dir,
            reason="resumed" if self.is_adopted else "",
            source="engine",
        )

    def log_line(self) -> LogLine | None:
        return self.logged("resumed" if self.is_adopted else "launched", test=self.test)


class LaunchFailed(TestEvent, frozen=True):
    """`mngr create` failed. It is repeated unless `is_final`."""

    reason: str
    launch: int = 1
    is_final: bool = False

    def apply(self, state: SweepState) -> None:
        # A `Queued` or `Pulled` event follows.
        state.change(self.test, state=State.QUEUED, since=self.at, reason=self.reason, source="engine")

    def log_line(self) -> LogLine | None:
        level = "error" if self.is_final else "warning"
        return self.logged(f"launch {self.launch} failed: {self.reason}", level, self.test)


class AgentStateChanged(TestEvent, frozen=True):
    """The state of the agent changed; `source` names the source of the information."""

    state: State
    """Running or waiting."""
    source: str = "process"
    question: str = ""
    options: tuple[str, ...] = ()
    """The options of the question, if any."""
    status_detail: str = ""
    """Details of the state, such as an API request that is being retried."""
    api_error: ApiError | None = None
    """The API error, if any."""
    needs_terminal: bool = False
    """Whether the agent shows a dialog that can be answered only in its terminal."""

    def __post_init__(self) -> None:
        if self.state not in (State.RUNNING, State.WAITING):
            raise ValueError(f"invalid state of an agent: {self.state.value}")

    def apply(self, state: SweepState) -> None:
        record = state.find_or_new(self.test)
        state.access = state.access.after_api_error(self.api_error, self.at)
        state.change(
            self.test,
            state=self.state,
            # A changed question or condition does not restart the time in the state.
            since=record.since if record.state is self.state else self.at,
            source=self.source,
            question=self.question,
            options=self.options,
            status_detail=self.status_detail,
            api_error=self.api_error,
            api_error_at=self.at if self.api_error is not None else record.api_error_at,
            needs_terminal=self.needs_terminal,
            reason="",
        )

    def log_line(self) -> LogLine | None:
        if self.state is not State.WAITING:
            return None
        question = self.question or "(unknown question)"
        hint = " (use `swarm-tui attach integrator`)" if self.test == INTEGRATOR_KEY else ""
        return self.logged(f"waits for an answer{hint}: {question}", "warning", self.test)


class PollFailed(Event, frozen=True):
    """A poll of the agents of these tests (all tests if empty) failed, so their states are stale."""

    tests: tuple[str, ...] = ()
    reason: str = ""

    def apply(self, state: SweepState) -> None:
        state.stale_reason = self.reason
        for test in self.tests or tuple(state.records):
            record = state.records.get(test)
            if record is not None and not record.is_finished and record.stale_since is None:
                state.change(test, stale_since=self.at)

    def log_line(self) -> LogLine | None:
        return self.logged(f"states are stale: {self.reason}", "warning")


class PollRecovered(Event, frozen=True):
    """Polls of the agents of these tests (all tests if empty) succeed again."""

    tests: tuple[str, ...] = ()

    def apply(self, state: SweepState) -> None:
        state.stale_reason = ""
        for test in self.tests or tuple(state.records):
            record = state.records.get(test)
            if record is not None and record.stale_since is not None:
                state.change(test, stale_since=None)

    def log_line(self) -> LogLine | None:
        return self.logged("states are up to date again")


class Pulling(TestEvent, frozen=True):
    """The agent has finished, and its work is being pulled."""

    source: str = "archive"

    def apply(self, state: SweepState) -> None:
        state.change(self.test, state=State.PULLING, since=self.at, source=self.source)


class Pulled(TestEvent, frozen=True):
    """The agent's work was pulled into the sweep folder as far as possible, and its result was determined."""

    result: Result
    reason: str = ""
    pulled: PulledWork = PulledWork()

    def apply(self, state: SweepState) -> None:
        state.change(
            self.test,
            state=State.DONE,
            result=self.result,
            since=self.at,
            ended_at=self.at,
            reason=self.reason,
            source="outcome" if not self.pulled.errored else "engine",
            pulled=self.pulled,
            **NOTHING_ASKED,
            stale_since=None,
        )

    def log_line(self) -> LogLine | None:
        # The check of a claim has its own line.
        return None if self.result is Result.CLAIMED else _result_line(self)


class ClaimChecked(TestEvent, frozen=True):
    """swarm-tui ran a test on the commit that its agent submitted, or could not run it."""

    result: Result
    check: ClaimCheck
    reason: str = ""

    def apply(self, state: SweepState) -> None:
        record = state.records.get(self.test)
        if record is not None and record.state is State.DONE:
            pulled = structs.replace(record.pulled, check=self.check)
            state.change(
                self.test, result=self.result, reason=self.reason, since=self.at, source="own run", pulled=pulled
            )

    def log_line(self) -> LogLine | None:
        return _result_line(self)


def _result_line(event: Pulled | ClaimChecked) -> LogLine:
    text = MARKS[event.result].word + (f": {event.reason}" if event.reason else "")
    return event.logged(text, "error" if event.result is Result.ERROR else "info", event.test)


class Stopped(TestEvent, frozen=True):
    """A test was stopped before it finished, by the user or with the sweep. It can be retried or resumed."""

    reason: str = ""
    source: str = "person"
    """Who stopped it, or the source that reported it as stopped."""

    def apply(self, state: SweepState) -> None:
        state.change(
            self.test,
            state=State.STOPPED,
            since=self.at,
            ended_at=self.at,
            reason=self.reason,
            source=self.source,
            **NOTHING_ASKED,
            stale_since=None,
        )

    def log_line(self) -> LogLine | None:
        return self.logged(f"stopped: {self.reason or 'on request'}", "warning", self.test)


class AgentsStopped(Event, frozen=True):
    """Agents were stopped after their work was pulled."""

    agents: tuple[str, ...] = ()


class SlotsChanged(Event, frozen=True):
    """The number of slots, which are the agents that may run at the same time, was changed."""

    slots: int

    def apply(self, state: SweepState) -> None:
        state.slots = self.slots

    def log_line(self) -> LogLine | None:
        return self.logged(f"{self.slots} slots")


class CheckoutChanged(Event, frozen=True):
    """The user's repository has changed since before launch, and swarm-tui did not change it."""

    changes: tuple[str, ...]
    """All changes so far, one sentence each."""

    def apply(self, state: SweepState) -> None:
        state.checkout_changes = self.changes

    def log_line(self) -> LogLine | None:
        return self.logged(f"your repository has changed: {'; '.join(self.changes)}", "warning")


class MessageSent(TestEvent, frozen=True):
    """A message was typed into the agent's pane."""

    text: str = ""
    by: str = ""
    error: str = ""

    def log_line(self) -> LogLine | None:
        if self.error:
            return self.logged(f"message not sent: {self.error}", "error", self.test)
        return self.logged(f"{self.by or 'a user'} wrote: {self.text}", test=self.test)


class RequestAnswered(Event, frozen=True):
    """The engine carried out a request, or refused it with a reason."""

    request: str
    is_done: bool = True
    detail: str = ""

    def apply(self, state: SweepState) -> None:
        state.answers[self.request] = self
        while len(state.answers) > ANSWERS_KEPT:
            del state.answers[next(iter(state.answers))]

    def log_line(self) -> LogLine | None:
        return None if self.is_done else self.logged(f"request failed: {self.detail}", "error")


class LogMessage(Event, frozen=True):
    """A line for the log, about one test or the whole sweep."""

    level: Literal["info", "warning", "error"] = "info"
    text: str = ""
    test: str = ""

    def log_line(self) -> LogLine | None:
        return self.logged(self.text, self.level, self.test)


class UnknownEvent(Event, frozen=True):
    """An event whose type this version does not support."""

    name: str = "unknown"

    def apply(self, state: SweepState) -> None:
        state.unknown_events += 1
