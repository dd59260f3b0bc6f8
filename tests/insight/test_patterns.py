"""What fails alike is found, however its numbers, ids and paths differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.insight.patterns import cause_of, find_patterns, normalised_cause
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.outcome import Escalation
from swarm_tui.model.state import TestRecord, Try
from swarm_tui.model.states import Result, State
from swarm_tui.model.text import plain


def failed(test: str, failure: str, **fields: object) -> TestRecord:
    record = TestRecord(
        test=test,
        file=test.split("::")[0],
        state=State.DONE,
        result=Result.UNRESOLVED,
        tries=(Try(1, False, 1.0, 0.0, failure),),
    )
    return record._replace(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("timed out after 30 s", "timed out after 45.5 s"),
        ("no server at /tmp/tmux-0/a", "no server at /tmp/tmux-1000/swarm-12"),
        ("no host 3f2a9bcd-11aa-4f3a-9bcd-0123456789ab", "no host 00aa9bcd-1bcd-4abc-8888-abcdef012345"),
        ("7 bytes are left", "12345678 bytes are left"),
        (f"object {'1a' * 32} is missing", f"object {'b2' * 20} is missing"),
        ("cannot check out 3f2a9bc", "cannot check out 71d04fa0"),
        ("object at 0x7f001122", "object at 0x55aa"),
        ("line one\nAAA", "line one\nBBB"),
    ],
)
def test_texts_that_differ_in_details_are_alike(one: str, other: str) -> None:
    assert normalised_cause(one) == normalised_cause(other)


def test_other_words_are_another_cause() -> None:
    assert normalised_cause("fixture 'host' not found") != normalised_cause("fixture 'disk' not found")
    assert normalised_cause("the cafebabe facade") == "the cafebabe facade"


@given(st.text(max_size=300))
def test_a_cause_is_one_harmless_line(text: str) -> None:
    cause = normalised_cause(text)
    assert plain(cause, 10_000) == cause
    assert "\n" not in cause


def test_a_pattern_tells_what_its_tests_share() -> None:
    records = [
        failed(f"tests/e2e/test_copy.py::test_{number}[modal-{number}]", f"Timeout after {number} s", host="modal-3")
        for number in range(3)
    ]
    (pattern,) = find_patterns([*records, failed("tests/test_other.py::test_alone", "something else")])
    assert pattern.cause == "Timeout after N s"
    assert pattern.kind == "failing"
    assert pattern.shared == ("all in tests/e2e/test_copy.py", "parameter modal", "host modal-3", "within two minutes")
    assert pattern.tests == tuple(record.test for record in records)
    assert pattern.representative in pattern.tests


def test_larger_patterns_come_first() -> None:
    records = [failed(f"a.py::t{number}", "rare") for number in range(2)]
    records += [failed(f"b.py::t{number}", "often") for number in range(3)]
    assert [pattern.cause for pattern in find_patterns(records)] == ["often", "rare"]


def test_a_blocked_test_counts_by_what_it_asks_for() -> None:
    report = HarvestReport(escalations=(Escalation(title="no docker"),))
    record = failed("a.py::t", "AssertionError", result=Result.BLOCKED, harvest=report)
    assert cause_of(record) == "no docker"


def test_a_clean_test_has_no_cause() -> None:
    assert cause_of(failed("a.py::t", "once", result=Result.CLEAN)) == ""


def test_only_what_failed_has_a_cause_and_not_what_begins_again() -> None:
    resumed = TestRecord(test="a.py::t", state=State.QUEUED, reason="the sweep was resumed", attempt=1)
    adopted = TestRecord(test="a.py::u", state=State.RUNNING, reason="taken up again", attempt=1, source="engine")
    unlaunched = TestRecord(test="a.py::v", state=State.QUEUED, reason="no room", attempt=1, source="engine")
    assert [cause_of(record) for record in (resumed, adopted, unlaunched)] == ["", "", "no room"]
