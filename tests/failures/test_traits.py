"""Distinctive traits of the tests of a pattern."""

from swarm_tui.failures.patterns import Pattern, find_patterns
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import Try
from swarm_tui.model.results import State


def record(name: str, failure: str = "", *traits: str, file: str = "", host: str = "", at: float = 0.0) -> TestRecord:
    tries = (Try(1, False, 1.0, 0.0, failure),) if failure else ()
    file = file or f"tests/test_{name}.py"
    return TestRecord(
        f"{file}::{name}", file=file, state=State.RUNNING, tries=tries, traits=traits, host=host, launched_at=at
    )


def only_pattern(*records: TestRecord) -> Pattern:
    (pattern,) = find_patterns(records)
    return pattern


def test_distinctive_fixture_has_both_shares() -> None:
    failing = [record(f"f{number}", "OSError: no base", "fixture db", "fixture tmp_path") for number in range(7)]
    passing = [record(f"p{number}", "", "fixture tmp_path", *(["fixture db"] * (number < 2))) for number in range(22)]
    assert only_pattern(*failing, *passing).shared == ("7 of 7 use fixture db, 9 % of the others",)


def test_common_traits_are_not_distinctive() -> None:
    failing = [
        record(
            f"a{number}", "OSError", "marker slow", "parameter size=3", file="tests/x/test_a.py", host="h1", at=240.0
        )
        for number in range(4)
    ]
    passing = [record(f"b{number}", "", "marker fast", host="h2", at=960.0) for number in range(9)]
    assert only_pattern(*failing, *passing).shared == (
        "4 of 4 have size=3, none of the others",
        "4 of 4 are marked slow, none of the others",
        "4 of 4 ran on host h1, none of the others",
        "4 of 4 are in tests/x/test_a.py, none of the others",
    )


def test_accidental_traits_are_ignored() -> None:
    failing = [record(f"f{number}", "OSError", "fixture db") for number in range(2)]
    passing = [record(f"p{number}", "", *(["fixture db"] * (number < 5))) for number in range(10)]
    assert only_pattern(*failing, *passing).shared == ()
