"""The effect of each event on a record and on the sweep, field by field."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from swarm_tui.failures.events import FailureDetail, QueueHeld, QueueReleased, RaisedError
from swarm_tui.integrator.events import (
    Integrated,
    Integrating,
    Integration,
    IntegrationFailed,
    IntegratorSaid,
    Revision,
)
from swarm_tui.journal.events import (
    AgentsStopped,
    EngineEnded,
    EngineStarted,
    Harvested,
    Harvesting,
    Launched,
    LaunchFailed,
    Launching,
    MessageSent,
    Noted,
    ProbeFailed,
    ProbeRecovered,
    Queued,
    RequestAnswered,
    Seen,
    SlotsChanged,
    Stopped,
    UnknownEvent,
)
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import (
    TRIES_KEPT,
    Committed,
    Edited,
    FileEdit,
    ForeignImports,
    Said,
    Try,
    TryFinished,
    TryStarted,
)
from swarm_tui.limits.events import (
    ApiAccess,
    ApiError,
    ApiErrorKind,
    DialTurned,
    LoginLost,
    LoginRestored,
    Stuck,
    Throttle,
    time_of_day,
)
from swarm_tui.model.event import INTEGRATOR_KEY, Event, LogLine
from swarm_tui.model.pulled import NOT_PULLED, Escalation, PulledChange, PulledWork
from swarm_tui.model.questions import AnswerRule, OpenQuestion, Question, item_id
from swarm_tui.model.results import Baseline, Result, State
from swarm_tui.money.events import ModelTokens, Spending, Spent
from swarm_tui.questions.events import AskAnswered, AskClosed, Asked, RuleEnded, RuleMade

TEST, OTHER = "a.py::test_a", "b.py::test_b"
REPORT = PulledWork(
    end="timeout",
    summary="Done.",
    passing_before=False,
    passing_after=True,
    changes=(PulledChange(kind="FIX_IMPL", status="SUCCEEDED", summary="s", commit="c"),),
    escalations=(Escalation(title="t"),),
    tip="c",
    has_uncommitted=True,
)
DETAIL = FailureDetail(errors=(RaisedError(type="KeyError", message="'a'"),))
ASK = Question(id="1", at=7.0, text="may I?", tool="Bash", subject="ls")
MORE = Question(id="2", at=9.0, text="and that?", tool="Bash", subject="pwd")
FULL = TestRecord(
    test=TEST,
    agent="agent",
    branch="branch",
    file="a.py",
    line=7,
    block="block",
    state=State.RUNNING,
    result=Result.BETTER,
    reason="reason",
    source="source",
    since=1.0,
    launched_at=2.0,
    ended_at=3.0,
    attempt=4,
    agent_id="id",
    host="host",
    work_dir="/work",
    state_dir="/state",
    own_folder="/own",
    tries=(Try(1, False, 1.0, 1.0, "broke"),),
    harvest=REPORT,
    foreign_imports=("module",),
    question="question?",
    options=("yes", "no"),
    condition="tries again",
    last_line="line",
    dollars=1.0,
    tokens=2,
    stale_since=5.0,
    is_held=True,
    last_line_at=6.0,
    spent_before=Spending(0.5, 1, priced=1),
    over_budget_at=7.0,
    edits=(FileEdit("a.py", 3, 4),),
    held_for="KeyError",
    traits=("fixture db",),
    group="port",
    baseline=Baseline.FLAKY,
    number=8,
    trouble=ApiError(kind=ApiErrorKind.LIMITED),
    trouble_at=7.0,
    needs_terminal=True,
    asks=(OpenQuestion(ASK, "item", 7.0, "ann"),),
    asked_until=8.0,
    commits=3,
    tokens_at_progress=1,
    stuck="it loops",
    is_nudged=True,
    models=(ModelTokens("opus", 1, 2, 3, 4),),
    revision=Revision(fix="fix", comment="Not so.", tip="tip"),
    note="Keep 1.0.",
)


NOTHING_ASKED = {"question": "", "options": (), "condition": "", "trouble": None, "needs_terminal": False, "asks": ()}
NOTHING_ASKED |= {"stuck": ""}
LIMITED = ApiError(kind=ApiErrorKind.LIMITED, until=70.0, has_given_up=True)
PROGRESS = {"tokens_at_progress": FULL.tokens}
NO_LOGIN = LoginLost(seq=2, at=2, test=TEST, reason="403")


def folded(record: TestRecord, *events: Event) -> SweepState:
    state = SweepState()
    state.records[record.test] = record
    state.counts[record.mark] = 1
    return state.apply_all(events)


def test_changed_record_has_no_default_fields() -> None:
    defaults = structs.asdict(TestRecord(""))
    assert [name for name, value in structs.asdict(FULL).items() if value == defaults[name]] == []


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (
            Launching(at=9, test=TEST, attempt=5, number=3),
            {"state": State.LAUNCHING, "since": 9, "attempt": 5, "number": 3, "reason": "", "source": "engine"},
        ),
        (
            Launched(at=9, test=TEST, agent_id="i", host="h", work_dir="/w", state_dir="/s", own_folder="/o"),
            {
                "state": State.RUNNING,
                "since": 9,
                "launched_at": 9,
                "agent_id": "i",
                "host": "h",
                "work_dir": "/w",
                "state_dir": "/s",
                "own_folder": "/o",
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
            Seen(at=9, test=TEST, state=State.WAITING, source="hook", question="Which?", options=("a", "b")),
            {"state": State.WAITING, "since": 9, "source": "hook", "question": "Which?", "reason": ""}
            | {"options": ("a", "b"), "condition": "", "trouble": None, "needs_terminal": False},
        ),
        (
            Seen(at=9, test=TEST, state=State.RUNNING, condition="429", trouble=LIMITED),
            {"state": State.RUNNING, "source": "process", "reason": "", "question": "", "options": ()}
            | {"condition": "429", "trouble": LIMITED, "trouble_at": 9, "needs_terminal": False},
        ),
        (
            Seen(at=9, test=TEST, state=State.RUNNING, condition="API error 429"),
            {"state": State.RUNNING, "source": "process", "reason": ""}
            | {"question": "", "options": (), "condition": "API error 429", "trouble": None, "needs_terminal": False},
        ),
        (TryStarted(at=9, test=TEST, number=2), {"tries": (*FULL.tries, Try(2, None, 0.0, 9)), **PROGRESS}),
        (
            TryFinished(at=9, test=TEST, number=1, passed=True, seconds=3.0, failure="f"),
            {"tries": (Try(1, True, 3.0, 9, "f"),), **PROGRESS},
        ),
        (
            TryFinished(at=9, test=TEST, number=2, passed=False, failure="f", detail=DETAIL),
            {"tries": (*FULL.tries, Try(2, False, 0.0, 9, "f", detail=DETAIL)), **PROGRESS},
        ),
        (
            Edited(at=9, test=TEST, edits=(FileEdit("b.py", 1, 2),)),
            {"edits": (FileEdit("b.py", 1, 2),)},
        ),
        (ForeignImports(at=9, test=TEST, modules=("m", "n")), {"foreign_imports": ("m", "n")}),
        (Said(at=9, test=TEST, line="hello"), {"last_line": "hello", "last_line_at": 9}),
        (Spent(at=9, test=TEST, dollars=3.0, tokens=4), {"dollars": 3.0, "tokens": 4, "models": ()}),
        (
            Harvesting(at=9, test=TEST, source="crash"),
            {"state": State.HARVESTING, "since": 9, "source": "crash"},
        ),
        (
            Harvested(at=9, test=TEST, result=Result.CLEAN, reason="r", harvest=PulledWork(tip="t")),
            {
                "state": State.DONE,
                "result": Result.CLEAN,
                "since": 9,
                "ended_at": 9,
                "reason": "r",
                "source": "outcome",
                "harvest": PulledWork(tip="t"),
                **NOTHING_ASKED,
                "stale_since": None,
            },
        ),
        (
            Harvested(at=9, test=TEST, result=Result.FAILED, harvest=PulledWork(errored=True)),
            {
                "state": State.DONE,
                "result": Result.FAILED,
                "since": 9,
                "ended_at": 9,
                "reason": "",
                "source": "engine",
                "harvest": PulledWork(errored=True),
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
        (ProbeRecovered(at=9, tests=(TEST,)), {"stale_since": None}),
        (ProbeRecovered(at=9), {"stale_since": None}),
        (ProbeFailed(at=9, reason="no tmux"), {}),
        (QueueHeld(at=9, tests=(TEST,)), {"held_for": ""}),
        (QueueHeld(at=9, tests=(TEST,), cause="OSError"), {"held_for": "OSError"}),
        (QueueReleased(at=9, tests=(TEST,)), {"is_held": False, "held_for": ""}),
        (QueueHeld(at=9), {}),
        (QueueReleased(at=9), {}),
        (MessageSent(at=9, test=TEST, text="hello", by="ada"), {}),
        (
            Asked(at=9, test=TEST, ask=MORE),
            {"asks": (*FULL.asks, OpenQuestion(MORE, item_id(TEST, MORE))), "asked_until": 9.0},
        ),
        (
            AskAnswered(at=9, test=TEST, ask="1", text="yes", by="bob", rule="r1"),
            {"asks": (OpenQuestion(ASK, "item", 9, "bob (r1)"),)},
        ),
        (AskAnswered(at=9, test=TEST, ask="2", text="yes", by="bob"), {}),
        (AskClosed(at=9, test=TEST, ask="1", why="answered"), {"asks": ()}),
        (AskClosed(at=9, test=TEST, ask="2"), {}),
        (Noted(at=9, test=TEST, text="hello"), {}),
        (AgentsStopped(at=9, agents=("agent",)), {}),
        (DialTurned(at=9, slots=2), {}),
        (Committed(at=9, test=TEST, commits=4), {"commits": 4, "tokens_at_progress": 2}),
        (Stuck(at=9, test=TEST, reason="it sleeps"), {"stuck": "it sleeps"}),
        (Stuck(at=9, test=TEST), {"stuck": ""}),
        (LoginLost(at=9, test=TEST), {}),
        (LoginRestored(at=9), {}),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Event) else "",
)
def test_event_changes_fields_of_record(event: Event, changes: dict[str, Any]) -> None:
    state = folded(FULL, event)
    assert state.records == {TEST: structs.replace(FULL, **changes)}
    assert +state.counts == {state.records[TEST].mark: 1}


def test_waiting_agent_shows_oldest_question() -> None:
    waiting = structs.replace(FULL, state=State.WAITING, question="may I? (and 1 more)", asks=(OpenQuestion(ASK, "1"),))
    both = folded(waiting, Asked(at=8, test=TEST, ask=MORE))
    assert both.records[TEST].question == "may I?"
    both.apply_all([AskClosed(at=9, test=TEST, ask="1")])
    assert (both.records[TEST].question, both.records[TEST].options) == ("and that?", ("yes", "no"))
    both.apply_all([AskClosed(at=9, test=TEST, ask="2")])
    assert (both.records[TEST].question, both.records[TEST].options, both.records[TEST].asks) == ("", (), ())


def test_first_queued_event_adds_test() -> None:
    event = Queued(at=9, test=TEST, agent="a", branch="b", file="f", line=3, block="c", reason="r")
    state = SweepState().apply_all([event])
    made = TestRecord(TEST, agent="a", branch="b", file="f", line=3, block="c", reason="r", since=9)
    assert state.records == {TEST: made}
    assert (state.counts, state.drain_changed()) == ({"queued": 1}, {TEST})
    assert (made.state, made.source, made.harvest) == (State.QUEUED, "queue", NOT_PULLED)


def test_requeued_test_keeps_names_launches_and_hold() -> None:
    kept = TestRecord(TEST, file="a.py", line=7, block="block", attempt=4, is_held=True, spent_before=FULL.spending)
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
    interrupted = structs.replace(FULL, harvest=NOT_PULLED)
    assert folded(interrupted, Queued(at=9, test=TEST)).records[TEST].revision == FULL.revision


def test_note_is_kept_after_interruption_not_retry() -> None:
    noted = folded(FULL, Queued(at=9, test=TEST, note="Keep 1.0."))
    assert noted.records[TEST].note == "Keep 1.0."
    noted.apply_all([Queued(at=10, test=TEST)])
    assert noted.records[TEST].note == "Keep 1.0."
    noted.apply_all([Harvested(at=11, test=TEST, result=Result.CLEAN, harvest=FULL.harvest)])
    noted.apply_all([Queued(at=12, test=TEST)])
    assert noted.records[TEST].note == ""


def test_adopted_agent_without_start_starts_at_adoption() -> None:
    never = structs.replace(FULL, launched_at=None)
    assert folded(never, Launched(at=9, test=TEST, is_adopted=True)).records[TEST].launched_at == 9


@pytest.mark.parametrize("tests", [(), (TEST, "gone.py::test"), (OTHER,)])
def test_failed_poll_makes_named_unfinished_tests_stale(tests: tuple[str, ...]) -> None:
    fresh = structs.replace(FULL, stale_since=None)
    event = ProbeFailed(at=9, tests=tests, reason="no tmux")
    expected = fresh if tests == (OTHER,) else structs.replace(fresh, stale_since=9)
    assert folded(fresh, event).records == {TEST: expected}
    for end in (State.DONE, State.STOPPED):
        finished = structs.replace(fresh, state=end)
        assert folded(finished, event).records == {TEST: finished}
    assert folded(FULL, event).records == {TEST: FULL}
    state = folded(fresh, event)
    assert state.stale_reason == "no tmux"
    assert state.apply_all([ProbeRecovered(at=10, tests=tests)]).records == {TEST: fresh}
    assert state.stale_reason == ""


def test_only_newest_tries_are_kept() -> None:
    state = SweepState().apply_all(TryStarted(test=TEST, number=number) for number in range(1, 61))
    assert [made.number for made in state.records[TEST].tries] == list(range(61 - TRIES_KEPT, 61))


def test_tries_are_sorted_by_number() -> None:
    numbers = [2, 5, 3, 1, 5, 4]
    state = SweepState().apply_all(TryStarted(at=n, test=TEST, number=n) for n in numbers)
    assert [made.number for made in state.records[TEST].tries] == [1, 2, 3, 4, 5]


def test_event_of_unqueued_test_adds_test() -> None:
    state = SweepState().apply_all([Said(at=9, test=TEST, line="x")])
    assert state.records == {TEST: TestRecord(TEST, last_line="x", last_line_at=9)}
    assert +state.counts == {"queued": 1}


def facts_of(state: SweepState) -> dict[str, Any]:
    return {name: value for name, value in vars(state).items() if name not in ("records", "counts", "log", "_changed")}


STARTED = EngineStarted(seq=1, at=1, pid=7, machine="here", slots=4)
RULE = AnswerRule(id="r1", tool="Bash", way="begins", pattern="pytest", by="ann")
ENDED = EngineEnded(seq=2, at=2, why="stopped", reason="enough")


@pytest.mark.parametrize(
    ("events", "facts"),
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
        (
            [DialTurned(seq=3, at=3, slots=2, cause="limited", until=9.0, is_halved=True, too_many=5)],
            {"access": ApiAccess(Throttle(2, "limited", until=9.0, halved_at=3, changed_at=3, too_many=5))},
        ),
        (
            [
                DialTurned(seq=2, at=2, slots=2, cause="load", detail="9", is_halved=True),
                DialTurned(seq=3, at=3, cause="load"),
            ],
            {"access": ApiAccess(Throttle(cause="load", halved_at=2, changed_at=3))},
        ),
        ([NO_LOGIN], {"access": ApiAccess(lost="login_lost", lost_reason="403")}),
        ([NO_LOGIN, LoginRestored(seq=3, at=3)], {"access": ApiAccess(restored_at=3)}),
        ([QueueHeld(seq=3, at=3)], {"is_held": True}),
        ([QueueHeld(seq=2, at=2), QueueReleased(seq=3, at=3)], {}),
        ([QueueHeld(seq=2, at=2), QueueReleased(seq=3, at=3, tests=(TEST,))], {"is_held": True}),
        ([QueueHeld(seq=3, at=3, tests=(TEST,))], {}),
        (
            [Integrating(seq=3, at=3, by="agent")],
            {"integration": Integration("integrating", detail="agent", at=3, started_at=3)},
        ),
        (
            [Integrating(seq=2, at=2, by="agent"), IntegratorSaid(seq=3, at=3, line="merging")],
            {"integration": Integration("integrating", detail="agent", at=2, started_at=2, last_line="merging")},
        ),
        (
            [
                Integrating(seq=2, at=2),
                Integrated(seq=3, at=3, branch="b", tip="t", fixes=4, left_out=5, detail="d"),
            ],
            {"integration": Integration("done", "b", "t", 4, 5, "d", at=3, started_at=2)},
        ),
        (
            [Integrating(seq=2, at=2), IntegrationFailed(seq=3, at=3, reason="no disk")],
            {"integration": Integration("failed", detail="no disk", at=3, started_at=2)},
        ),
        ([RuleMade(seq=3, at=3, rule=RULE)], {"rules": {"r1": RULE}, "rules_made": 1}),
        ([RuleMade(seq=2, at=2, rule=RULE), RuleEnded(seq=3, at=3, rule="r1")], {"rules_made": 1}),
        ([UnknownEvent(seq=3, at=3, name="sang")], {"unknown_events": 1}),
    ],
)
def test_event_changes_fields_of_sweep(events: list[Event], facts: dict[str, Any]) -> None:
    state = SweepState().apply_all(events)
    last = {"last_seq": events[-1].seq, "last_at": events[-1].at, "lost_events": events[-1].seq - len(events)}
    assert facts_of(state) == facts_of(SweepState()) | last | facts
    assert state.is_over == ("ended_why" in facts)


def test_integrator_has_record() -> None:
    state = SweepState()
    assert state.record_of(INTEGRATOR_KEY) == TestRecord(test=INTEGRATOR_KEY)
    state.apply_all([Integrating(at=3, by="agent", agent="a", branch="b", attempt=2)])
    assert state.record_of(INTEGRATOR_KEY) == TestRecord(test=INTEGRATOR_KEY, agent="a", branch="b", since=3, attempt=2)
    state.apply_all([Launched(at=5, test=INTEGRATOR_KEY, agent_id="id")])
    record = state.record_of(INTEGRATOR_KEY)
    assert (record.agent, record.branch, record.agent_id, record.attempt) == ("a", "b", "id", 2)
    state.apply_all([Integrating(at=4, by="agent", agent="c", branch="d", attempt=1)])
    assert state.record_of(INTEGRATOR_KEY) == TestRecord(test=INTEGRATOR_KEY, agent="c", branch="d", since=4, attempt=2)


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
        (LaunchFailed(test=TEST, reason="r", attempt=2), ("warning", "launch 2 failed: r", TEST)),
        (LaunchFailed(test=TEST, reason="r", is_final=True), ("error", "launch 1 failed: r", TEST)),
        (Seen(test=TEST, state=State.RUNNING), None),
        (
            Seen(test=TEST, state=State.WAITING),
            ("warning", "waits for an answer: (unknown question)", TEST),
        ),
        (Seen(test=TEST, state=State.WAITING, question="q"), ("warning", "waits for an answer: q", TEST)),
        (ProbeFailed(reason="r"), ("warning", "states are stale: r", "")),
        (ProbeRecovered(), ("info", "states are up to date again", "")),
        (
            ForeignImports(test=TEST, modules=tuple("abcd")),
            ("warning", "imported modules from your checkout instead of its copy: a, b, c", TEST),
        ),
        (Said(test=TEST, line="l"), None),
        (Harvested(test=TEST, result=Result.IMPL_FIX), ("info", "impl fix", TEST)),
        (Harvested(test=TEST, result=Result.FAILED, reason="r"), ("error", "failed: r", TEST)),
        (Stopped(test=TEST), ("warning", "stopped: on request", TEST)),
        (Stopped(test=TEST, reason="r"), ("warning", "stopped: r", TEST)),
        (AgentsStopped(agents=("a",)), None),
        (SlotsChanged(slots=3), ("info", "3 slots", "")),
        (
            DialTurned(slots=6, cause="limited", until=10.0, is_halved=True),
            ("warning", f"throttled to 6 agents: limited until {time_of_day(10.0, 9.0)}", ""),
        ),
        (
            DialTurned(slots=1, cause="memory", detail="95 % used", is_halved=True),
            ("warning", "throttled to 1 agent: memory 95 % used", ""),
        ),
        (DialTurned(slots=7, cause="limited"), ("info", "throttled to 7 agents", "")),
        (DialTurned(), ("info", "throttle off", "")),
        (LoginLost(test=TEST, reason="403"), ("error", "login lost, the queue is held: 403", TEST)),
        (Stuck(test=TEST, reason="it loops"), ("warning", "stuck: it loops", TEST)),
        (Stuck(test=TEST), None),
        (Committed(test=TEST, commits=1), None),
        (LoginRestored(by="ada"), ("info", "ada released the queue: the API works again", "")),
        (QueueHeld(), ("info", "the queue is held", "")),
        (QueueHeld(tests=(TEST,), reason="r"), ("info", "1 test is held: r", "")),
        (QueueReleased(tests=(TEST, OTHER)), ("info", "2 tests are released", "")),
        (MessageSent(test=TEST, text="t"), ("info", "a user wrote: t", TEST)),
        (MessageSent(test=TEST, text="t", by="ada"), ("info", "ada wrote: t", TEST)),
        (MessageSent(test=TEST, text="t", error="e"), ("error", "message not sent: e", TEST)),
        (RequestAnswered(request="1"), None),
        (RequestAnswered(request="1", is_done=False, detail="d"), ("error", "request failed: d", "")),
        (Integrating(by="agent", branches=3), ("info", "integrating 3 branches (agent)", "")),
        (IntegratorSaid(line="l"), ("info", "the integrator: l", "")),
        (Integrated(branch="b", fixes=2), ("info", "integrated on b: 2 fixes", "")),
        (Integrated(branch="b", fixes=2, left_out=1), ("info", "integrated on b: 2 fixes, 1 left out", "")),
        (Integrated(), ("info", "nothing to integrate", "")),
        (Integrated(branch="b", problems=("red",)), ("error", "integrated on b: 0 fixes; red", "")),
        (IntegrationFailed(reason="r"), ("error", "integration failed: r", "")),
        (Noted(level="warning", text="t", test=TEST), ("warning", "t", TEST)),
        (UnknownEvent(name="sang"), None),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Event) else "",
)
def test_event_gives_log_line(event: Event, line: tuple[str, str, str] | None) -> None:
    at_nine = structs.replace(event, at=9.0)
    assert list(SweepState().apply_all([at_nine]).log) == ([LogLine(9.0, *line)] if line else [])
