"""Alerts count all tests that failed for a cause, and similar queued tests are held."""

from __future__ import annotations

import pytest
from msgspec import structs

from swarm_tui.failures.alerts import CauseCounts, alert_lines, choose_held, saved_text, still_held, what_is_shared
from swarm_tui.failures.events import Alert
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import Try
from swarm_tui.model.options import alike_needed, is_possible_threshold, parse_alike
from swarm_tui.model.results import Result, State

CAUSE = "OSError: no base"


def queued(name: str, *traits: str, file: str = "tests/test_other.py") -> TestRecord:
    return TestRecord(name, file=file, traits=traits)


def tried(name: str, *failures: str, traits: tuple[str, ...] = (), file: str = "tests/test_tried.py") -> TestRecord:
    """Return a running test. A try without a failure passed."""
    tries = tuple(Try(number, not failure, 1.0, 0.0, failure) for number, failure in enumerate(failures, 1))
    return TestRecord(name, file=file, state=State.RUNNING, tries=tries, traits=traits)


def by_name(*records: TestRecord) -> dict[str, TestRecord]:
    return {record.test: record for record in records}


@pytest.mark.parametrize(("text", "needed"), [("5", 5), ("10%", 10), ("0", None), ("0.5", 50), ("1%", 2), ("150", 150)])
def test_threshold_is_number_or_share(text: str, needed: int | None) -> None:
    assert is_possible_threshold(parse_alike(text))
    assert alike_needed(parse_alike(text), 100) == needed


@pytest.mark.parametrize("value", [1, -3, 2.5, float("nan"), float("inf")])
def test_invalid_threshold(value: float) -> None:
    assert not is_possible_threshold(value)


def test_each_failed_test_counts_once_per_cause() -> None:
    tally = CauseCounts()
    tally.update([tried("a", CAUSE, CAUSE), tried("b", CAUSE, ""), tried("c", ""), queued("d")])
    tally.update([tried("a", CAUSE, CAUSE, ""), tried("d", "", CAUSE)])
    assert list(tally.met_by(3)) == [(CAUSE, ("a", "b", "d"))]
    assert list(tally.met_by(4)) == []
    assert tally.tried == {"a", "b", "c", "d"}


def test_question_raises_no_alert() -> None:
    tally = CauseCounts()
    tally.update([TestRecord(name, state=State.WAITING, question="Which?") for name in "abc"])
    assert tally.met == {}


def test_only_tests_with_failing_fixture_are_held() -> None:
    records = by_name(
        *(tried(f"failed{number}", CAUSE, traits=("fixture db", "fixture tmp_path")) for number in range(8)),
        *(tried(f"passed{number}", "", traits=("fixture tmp_path",)) for number in range(8)),
        *(queued(f"next{number}", "fixture db", "fixture tmp_path") for number in range(3)),
        *(queued(f"free{number}", "fixture tmp_path") for number in range(30)),
        structs.replace(queued("held by the user", "fixture db"), is_held=True),
    )
    members = [test for test in records if test.startswith("failed")]
    held = choose_held(members, [test for test in records if records[test].tries], records)
    assert held is not None
    assert held.tests == ("next0", "next1", "next2")
    assert held.why == "they use fixture db, and 8 of 8 such tests failed for this cause"
    assert what_is_shared(members, records) == "8 of 8 use fixture db, 10 % of the others"


def test_trait_of_passing_tests_holds_nothing() -> None:
    records = by_name(
        *(tried(f"failed{number}", CAUSE, traits=("fixture db",)) for number in range(4)),
        *(tried(f"passed{number}", "", traits=("fixture db",)) for number in range(6)),
        *(queued(f"next{number}", "fixture db") for number in range(3)),
        *(queued(f"free{number}") for number in range(30)),
    )
    members = [test for test in records if test.startswith("failed")]
    assert choose_held(members, [test for test in records if records[test].tries], records) is None


def test_all_tests_are_held_if_all_fail() -> None:
    records = by_name(
        *(tried(f"failed{number}", CAUSE, file=f"tests/test_{number}.py") for number in range(8)),
        *(queued(f"next{number}", file=f"tests/test_next{number}.py") for number in range(3)),
    )
    held = choose_held([f"failed{number}" for number in range(8)], (), records)
    assert held is not None
    assert held.tests == ("next0", "next1", "next2")
    assert held.why == "8 of 8 tests that ran failed for this cause"


def test_saved_text_estimates_time_and_cost() -> None:
    done = TestRecord("done", state=State.DONE, result=Result.CLEAN, launched_at=0.0, ended_at=120.0, dollars=0.25)
    held = [structs.replace(queued(name), is_held=True, held_for=CAUSE) for name in ("a", "b")]
    alert = Alert(CAUSE, 0.0, ("done",), held=("a", "b", "c"), why_held="they have x")
    records = by_name(done, *held, queued("c"))
    assert saved_text(alert, records) == "2 tests, ~4m, ~$0.50"
    assert [record.test for record in still_held(alert, records)] == ["a", "b"]
    assert list(alert_lines({CAUSE: alert}, records)) == [
        "1 test with the same cause: OSError: no base",
        "  held 2 tests, ~4m, ~$0.50: they have x",
    ]
