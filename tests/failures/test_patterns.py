"""Tests with the same cause are grouped despite different numbers, ids and paths."""

from msgspec import structs

from swarm_tui.failures.patterns import cause_of, find_patterns
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import Try
from swarm_tui.model.pulled import Escalation, PulledWork
from swarm_tui.model.results import Result, State


def failed(test: str, failure: str, **fields: object) -> TestRecord:
    record = TestRecord(
        test=test,
        file=test.split("::")[0],
        state=State.DONE,
        result=Result.UNRESOLVED,
        tries=(Try(1, False, 1.0, 0.0, failure),),
    )
    return structs.replace(record, **fields)


def test_pattern_lists_shared_traits() -> None:
    records = [
        failed(f"tests/e2e/test_copy.py::test_{number}[modal-{number}]", f"Timeout after {number} s", host="modal-3")
        for number in range(3)
    ]
    (pattern,) = find_patterns([*records, failed("tests/test_other.py::test_alone", "something else", host="h")])
    assert pattern.cause == "Timeout after N s"
    assert pattern.kind == "failing"
    assert pattern.shared == (
        "3 of 3 have modal, none of the others",
        "3 of 3 ran on host modal-3, none of the others",
        "3 of 3 are in tests/e2e/test_copy.py, none of the others",
    )
    assert pattern.tests == tuple(record.test for record in records)
    assert pattern.representative in pattern.tests


def test_larger_patterns_come_first() -> None:
    records = [failed(f"a.py::t{number}", "rare") for number in range(2)]
    records += [failed(f"b.py::t{number}", "often") for number in range(3)]
    assert [pattern.cause for pattern in find_patterns(records)] == ["often", "rare"]


def test_blocked_test_counts_by_escalation() -> None:
    report = PulledWork(escalations=(Escalation(title="no docker"),))
    record = failed("a.py::t", "AssertionError", result=Result.BLOCKED, pulled=report)
    assert cause_of(record) == "no docker"


def test_a_clean_test_has_no_cause() -> None:
    assert cause_of(failed("a.py::t", "once", result=Result.CLEAN)) == ""


def test_only_failures_have_cause() -> None:
    resumed = TestRecord(test="a.py::t", state=State.QUEUED, reason="the sweep was resumed", launch=1)
    adopted = TestRecord(test="a.py::u", state=State.RUNNING, reason="resumed", launch=1, source="engine")
    unlaunched = TestRecord(test="a.py::v", state=State.QUEUED, reason="no room", launch=1, source="engine")
    assert [cause_of(record) for record in (resumed, adopted, unlaunched)] == ["", "", "no room"]
