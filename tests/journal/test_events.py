"""Events of the engine, the queue and agents: what they change, and their log lines."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from swarm_tui.integrator.events import Revision
from swarm_tui.journal.events import (
    AgentsStopped,
    AgentStateChanged,
    EngineEnded,
    EngineStarted,
    Launched,
    LaunchFailed,
    Launching,
    LogMessage,
    MessageSent,
    PollFailed,
    PollRecovered,
    Pulled,
    Pulling,
    Queued,
    RequestAnswered,
    SlotsChanged,
    Stopped,
    UnknownEvent,
)
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.limits.events import ApiError, ApiErrorKind
from swarm_tui.model.event import Event
from swarm_tui.model.pulled import NOT_PULLED, PulledWork
from swarm_tui.model.results import Baseline, Result, State
from tests.journal.folding import FULL, OTHER, TEST, check_line, check_record, check_sweep, folded, type_name

NOTHING_ASKED = {
    "question": "",
    "options": (),
    "status_detail": "",
    "api_error": None,
    "needs_terminal": False,
    "open_questions": (),
}
NOTHING_ASKED |= {"stuck": ""}
LIMITED = ApiError(kind=ApiErrorKind.LIMITED, until=70.0, has_given_up=True)
STARTED = EngineStarted(seq=1, at=1, pid=7, machine="here", slots=4)
ENDED = EngineEnded(seq=2, at=2, why="stopped", reason="enough")


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (
            Launching(at=9, test=TEST, launch=5, number=3, host="h"),
            {
                "state": State.LAUNCHING,
                "since": 9,
                "launch": 5,
                "number": 3,
                "reason": "",
                "source": "engine",
                "host": "h",
            },
        ),
        (
            Launched(at=9, test=TEST, agent_id="i", host="h", work_dir="/w", state_dir="/s", agent_dir="/o"),
            {
                "state": State.RUNNING,
                "since": 9,
                "launched_at": 9,
                "agent_id": "i",
                "host": "h",
                "work_dir": "/w",
                "state_dir": "/s",
                "agent_dir": "/o",
                "reason": "",
                "source": "engine",
            },
        ),
        (
            Launched(at=9, test=TEST, agent_id="i", host="h", work_dir="/w", state_dir="/s", is_adopted=True),
            {
                "state": State.RUNNING,
                "since": 9,
                "agent_id": "i",
                "host": "h",
                "work_dir": "/w",
                "state_dir": "/s",
                "reason": "resumed",
                "source": "engine",
            },
        ),
        (
            LaunchFailed(at=9, test=TEST, reason="no port"),
            {"state": State.QUEUED, "since": 9, "reason": "no port", "source": "engine"},
        ),
        (
            AgentStateChanged(
                at=9, test=TEST, state=State.WAITING, source="hook", question="Which?", options=("a", "b")
            ),
            {"state": State.WAITING, "since": 9, "source": "hook", "question": "Which?", "reason": ""}
            | {"options": ("a", "b"), "status_detail": "", "api_error": None, "needs_terminal": False},
        ),
        (
            AgentStateChanged(at=9, test=TEST, state=State.RUNNING, status_detail="429", api_error=LIMITED),
            {"state": State.RUNNING, "source": "process", "reason": "", "question": "", "options": ()}
            | {"status_detail": "429", "api_error": LIMITED, "api_error_at": 9, "needs_terminal": False},
        ),
        (
            AgentStateChanged(at=9, test=TEST, state=State.RUNNING, status_detail="API error 429"),
            {"state": State.RUNNING, "source": "process", "reason": ""}
            | {
                "question": "",
                "options": (),
                "status_detail": "API error 429",
                "api_error": None,
                "needs_terminal": False,
            },
        ),
        (Pulling(at=9, test=TEST, source="crash"), {"state": State.PULLING, "since": 9, "source": "crash"}),
        (
            Pulled(at=9, test=TEST, result=Result.CLEAN, reason="r", pulled=PulledWork(tip="t")),
            {
                "state": State.DONE,
                "result": Result.CLEAN,
                "since": 9,
                "ended_at": 9,
                "reason": "r",
                "source": "outcome",
                "pulled": PulledWork(tip="t"),
                **NOTHING_ASKED,
                "stale_since": None,
            },
        ),
        (
            Pulled(at=9, test=TEST, result=Result.ERROR, pulled=PulledWork(errored=True)),
            {
                "state": State.DONE,
                "result": Result.ERROR,
                "since": 9,
                "ended_at": 9,
                "reason": "",
                "source": "engine",
                "pulled": PulledWork(errored=True),
                **NOTHING_ASKED,
                "stale_since": None,
            },
        ),
        (
            Stopped(at=9, test=TEST, reason="enough"),
            {
                "state": State.STOPPED,
                "since": 9,
                "ended_at": 9,
                "reason": "enough",
                "source": "person",
                **NOTHING_ASKED,
                "stale_since": None,
            },
        ),
        (PollRecovered(at=9, tests=(TEST,)), {"stale_since": None}),
        (PollRecovered(at=9), {"stale_since": None}),
        (PollFailed(at=9, reason="no tmux"), {}),
        (MessageSent(at=9, test=TEST, text="hello", by="ada"), {}),
        (LogMessage(at=9, test=TEST, text="hello"), {}),
        (AgentsStopped(at=9, agents=("agent",)), {}),
    ],
    ids=type_name,
)
def test_event_changes_fields_of_record(event: Event, changes: dict[str, Any]) -> None:
    check_record(event, changes)


@pytest.mark.parametrize(
    ("events", "changes"),
    [
        ([STARTED], {"slots": 4, "started_at": 1, "engine_machine": "here"}),
        (
            [STARTED, ENDED],
            {
                "slots": 4,
                "started_at": 1,
                "engine_machine": "here",
                "ended_at": 2,
                "ended_why": "stopped",
                "ended_reason": "enough",
            },
        ),
        (
            [STARTED, ENDED, EngineStarted(seq=3, at=3, pid=8, machine="there", is_resumed=True)],
            {"slots": 4, "started_at": 1, "engine_machine": "there"},
        ),
        ([SlotsChanged(seq=3, at=3, slots=9)], {"slots": 9}),
        ([UnknownEvent(seq=3, at=3, name="sang")], {"unknown_events": 1}),
    ],
)
def test_event_changes_fields_of_sweep(events: list[Event], changes: dict[str, Any]) -> None:
    check_sweep(events, changes)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (EngineStarted(pid=1, slots=4), ("info", "engine started, 4 slots", "")),
        (EngineStarted(pid=1, slots=4, is_resumed=True), ("info", "engine resumed, 4 slots", "")),
        (EngineEnded(), ("info", "engine finished", "")),
        (EngineEnded(why="failed", reason="r"), ("warning", "engine failed: r", "")),
        (Queued(test=TEST), None),
        (Queued(test=TEST, reason="r"), ("info", "queued again: r", TEST)),
        (Launching(test=TEST), None),
        (Launched(test=TEST), ("info", "launched", TEST)),
        (Launched(test=TEST, is_adopted=True), ("info", "resumed", TEST)),
        (LaunchFailed(test=TEST, reason="r", launch=2), ("warning", "launch 2 failed: r", TEST)),
        (LaunchFailed(test=TEST, reason="r", is_final=True), ("error", "launch 1 failed: r", TEST)),
        (AgentStateChanged(test=TEST, state=State.RUNNING), None),
        (
            AgentStateChanged(test=TEST, state=State.WAITING),
            ("warning", "waits for an answer: (unknown question)", TEST),
        ),
        (AgentStateChanged(test=TEST, state=State.WAITING, question="q"), ("warning", "waits for an answer: q", TEST)),
        (PollFailed(reason="r"), ("warning", "states are stale: r", "")),
        (PollRecovered(), ("info", "states are up to date again", "")),
        (Pulled(test=TEST, result=Result.IMPL_FIX), ("info", "impl fix", TEST)),
        (Pulled(test=TEST, result=Result.ERROR, reason="r"), ("error", "error: r", TEST)),
        (Stopped(test=TEST), ("warning", "stopped: on request", TEST)),
        (Stopped(test=TEST, reason="r"), ("warning", "stopped: r", TEST)),
        (AgentsStopped(agents=("a",)), None),
        (SlotsChanged(slots=3), ("info", "3 slots", "")),
        (MessageSent(test=TEST, text="t"), ("info", "a user wrote: t", TEST)),
        (MessageSent(test=TEST, text="t", by="ada"), ("info", "ada wrote: t", TEST)),
        (MessageSent(test=TEST, text="t", error="e"), ("error", "message not sent: e", TEST)),
        (RequestAnswered(request="1"), None),
        (RequestAnswered(request="1", is_done=False, detail="d"), ("error", "request failed: d", "")),
        (LogMessage(level="warning", text="t", test=TEST), ("warning", "t", TEST)),
        (UnknownEvent(name="sang"), None),
    ],
    ids=type_name,
)
def test_event_gives_log_line(event: Event, line: tuple[str, str, str] | None) -> None:
    check_line(event, line)


def test_first_queued_event_adds_test() -> None:
    event = Queued(at=9, test=TEST, agent="a", branch="b", file="f", line=3, block="c", reason="r")
    state = SweepState().apply_all([event])
    made = TestRecord(TEST, agent="a", branch="b", file="f", line=3, block="c", reason="r", since=9)
    assert state.records == {TEST: made}
    assert (state.counts, state.drain_changed()) == ({"queued": 1}, {TEST})
    assert (made.state, made.source, made.pulled) == (State.QUEUED, "queue", NOT_PULLED)


def test_requeued_test_keeps_names_launches_and_hold() -> None:
    kept = TestRecord(TEST, file="a.py", line=7, block="block", launch=4, is_held=True, spent_before=FULL.spending)
    kept = structs.replace(kept, group="port", baseline=Baseline.FLAKY)
    kept = structs.replace(kept, traits=FULL.traits, held_for=FULL.held_for)
    state = folded(FULL, Queued(at=9, test=TEST, reason="again", file="other", line=1, block="other"))
    assert state.records == {TEST: structs.replace(kept, agent="agent", branch="branch", reason="again", since=9)}
    state = folded(FULL, Queued(at=9, test=TEST, agent="new", branch="newer"))
    assert state.records == {TEST: structs.replace(kept, agent="new", branch="newer", since=9)}


def test_revision_is_kept_after_interruption_not_retry() -> None:
    sent = Revision(fix="other", comment="Again.", tip="tip")
    assert folded(FULL, Queued(at=9, test=TEST)).records[TEST].revision is None
    assert folded(FULL, Queued(at=9, test=TEST, revision=sent)).records[TEST].revision == sent
    interrupted = structs.replace(FULL, pulled=NOT_PULLED)
    assert folded(interrupted, Queued(at=9, test=TEST)).records[TEST].revision == FULL.revision


def test_note_is_kept_after_interruption_not_retry() -> None:
    noted = folded(FULL, Queued(at=9, test=TEST, note="Keep 1.0."))
    assert noted.records[TEST].note == "Keep 1.0."
    noted.apply_all([Queued(at=10, test=TEST)])
    assert noted.records[TEST].note == "Keep 1.0."
    noted.apply_all([Pulled(at=11, test=TEST, result=Result.CLEAN, pulled=FULL.pulled)])
    noted.apply_all([Queued(at=12, test=TEST)])
    assert noted.records[TEST].note == ""


def test_adopted_agent_without_start_starts_at_adoption() -> None:
    never = structs.replace(FULL, launched_at=None)
    assert folded(never, Launched(at=9, test=TEST, is_adopted=True)).records[TEST].launched_at == 9


@pytest.mark.parametrize("tests", [(), (TEST, "gone.py::test"), (OTHER,)])
def test_failed_poll_makes_named_unfinished_tests_stale(tests: tuple[str, ...]) -> None:
    fresh = structs.replace(FULL, stale_since=None)
    event = PollFailed(at=9, tests=tests, reason="no tmux")
    expected = fresh if tests == (OTHER,) else structs.replace(fresh, stale_since=9)
    assert folded(fresh, event).records == {TEST: expected}
    for end in (State.DONE, State.STOPPED):
        finished = structs.replace(fresh, state=end)
        assert folded(finished, event).records == {TEST: finished}
    assert folded(FULL, event).records == {TEST: FULL}
    state = folded(fresh, event)
    assert state.stale_reason == "no tmux"
    assert state.apply_all([PollRecovered(at=10, tests=tests)]).records == {TEST: fresh}
    assert state.stale_reason == ""


def test_newest_answers_are_kept() -> None:
    answer = RequestAnswered(request="one", is_done=False, detail="no")
    state = SweepState().apply_all([answer])
    assert state.answers == {"one": answer}
    state.answers |= {str(number): answer for number in range(100_000 - 1)}
    state.apply_all([structs.replace(answer, request="last but one")])
    assert next(iter(state.answers)) == "0"
    state.apply_all([structs.replace(answer, request="last")])
    assert "one" not in state.answers
    assert list(state.answers)[::99_999] == ["1", "last"]


def test_full_record_has_no_default_fields() -> None:
    defaults = structs.asdict(TestRecord(""))
    assert [name for name, value in structs.asdict(FULL).items() if value == defaults[name]] == []
