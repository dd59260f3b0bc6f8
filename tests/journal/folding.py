"""A full record, and checks of what an event changes."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from swarm_tui.failures.events import FailureDetail, RaisedError
from swarm_tui.integrator.events import (
    Revision,
)
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import (
    FileEdit,
    Try,
)
from swarm_tui.limits.events import (
    ApiError,
    ApiErrorKind,
)
from swarm_tui.model.event import Event, LogLine
from swarm_tui.model.pulled import Escalation, PulledChange, PulledWork
from swarm_tui.model.questions import OpenQuestion, Question
from swarm_tui.model.results import Baseline, Result, State
from swarm_tui.money.events import ModelTokens, Spending

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
    launch=4,
    agent_id="id",
    host="host",
    work_dir="/work",
    state_dir="/state",
    agent_dir="/own",
    tries=(Try(1, False, 1.0, 1.0, "broke"),),
    pulled=REPORT,
    foreign_imports=("module",),
    question="question?",
    options=("yes", "no"),
    status_detail="tries again",
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
    api_error=ApiError(kind=ApiErrorKind.LIMITED),
    api_error_at=7.0,
    needs_terminal=True,
    open_questions=(OpenQuestion(ASK, "item", 7.0, "ann"),),
    questions_until=8.0,
    commits=3,
    tokens_at_progress=1,
    stuck="it loops",
    is_nudged=True,
    models=(ModelTokens("opus", 1, 2, 3, 4),),
    revision=Revision(fix="fix", comment="Not so.", tip="tip"),
    note="Keep 1.0.",
)


def folded(record: TestRecord, *events: Event) -> SweepState:
    state = SweepState()
    state.records[record.test] = record
    state.counts[record.mark] = 1
    return state.apply_all(events)


def check_record(event: Event, changes: dict[str, Any]) -> None:
    """Check that an event changes only these fields of a full record."""
    state = folded(FULL, event)
    assert state.records == {TEST: structs.replace(FULL, **changes)}
    assert +state.counts == {state.records[TEST].mark: 1}


def _sweep_fields(state: SweepState) -> dict[str, Any]:
    return {name: value for name, value in vars(state).items() if name not in ("records", "counts", "log", "_changed")}


def check_sweep(events: list[Event], changes: dict[str, Any]) -> None:
    """Check that events change only these fields of a new sweep."""
    state = SweepState().apply_all(events)
    last = {"last_seq": events[-1].seq, "last_at": events[-1].at, "lost_events": events[-1].seq - len(events)}
    assert _sweep_fields(state) == _sweep_fields(SweepState()) | last | changes
    assert state.is_over == ("ended_why" in changes)


def check_line(event: Event, line: tuple[str, str, str] | None) -> None:
    """Check the level, text and test of an event's line in the log; None if it has no line."""
    at_nine = structs.replace(event, at=9.0)
    assert list(SweepState().apply_all([at_nine]).log) == ([LogLine(9.0, *line)] if line else [])


def type_name(value: object) -> str:
    """Return the name of an event for the id of a test."""
    return type(value).__name__ if isinstance(value, Event) else ""
