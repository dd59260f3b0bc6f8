"""Grouping escalations about the same problem."""

from __future__ import annotations

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.pulled import Escalation, Location, PulledWork
from swarm_tui.sweep.integrate import TESTS_NAMED, group_findings


def record(test: str, *escalations: Escalation, reason: str = "") -> TestRecord:
    return TestRecord(test, reason=reason, pulled=PulledWork(escalations=escalations))


def said(kind: str, title: str, *places: tuple[str, int], detail: str = "") -> Escalation:
    locations = tuple(Location(path=path, line=line) for path, line in places)
    return Escalation(kind=kind, title=title, detail_markdown=detail, locations=locations)


def titles(*records: TestRecord) -> list[str]:
    return [finding.as_escalation.title for finding in group_findings(records)]


def test_same_title_except_values_is_one_finding() -> None:
    assert titles(
        record("a", said("HARNESS_DEFECT", "port 8001 is taken")),
        record("b", said("HARNESS_DEFECT", "Port 8004 is taken")),
        record("c", said("BLOCKER", "port 17 is taken")),
    ) == ["port 8001 is taken (3 tests)"]


def test_same_place_is_one_finding() -> None:
    (finding,) = group_findings(
        [
            record(
                "a", said("UNCAUGHT_BUG", "is_soon leaves today out", ("larder/dates.py", 25), detail="Off by one.")
            ),
            record("b", said("UNCAUGHT_BUG", "The last day is missing", ("larder/dates.py", 27), ("larder/cli.py", 3))),
        ]
    )
    made = finding.as_escalation
    assert made.title == "is_soon leaves today out (2 tests)"
    assert made.detail_markdown == "Off by one.\n\n* a\n* b"
    assert [str(where) for where in made.locations] == ["larder/dates.py:25", "larder/dates.py:27", "larder/cli.py:3"]


def test_other_kind_or_place_is_other_finding() -> None:
    assert titles(
        record("a", said("UNCAUGHT_BUG", "is_soon leaves today out", ("larder/dates.py", 25))),
        record("b", said("SUITE_DUPLICATION", "is_soon leaves today out", ("larder/dates.py", 25))),
        record("c", said("UNCAUGHT_BUG", "Dates are read wrongly", ("larder/dates.py", 40))),
    ) == ["Dates are read wrongly", "is_soon leaves today out", "is_soon leaves today out"]


def test_findings_are_sorted_by_blocking_and_size() -> None:
    assert titles(
        record("a", said("UNCAUGHT_BUG", "sums are wrong")),
        record("b", said("UNCAUGHT_BUG", "sums are wrong")),
        record("c", said("SUITE_DUPLICATION", "one clock for all")),
        record("d", said("HARNESS_DEFECT", "no printer")),
    ) == ["no printer", "sums are wrong (2 tests)", "one clock for all"]


def test_finding_lists_tests_up_to_limit() -> None:
    twice = said("HARNESS_DEFECT", "no printer")
    (finding,) = group_findings(record(f"t{number}", twice, twice) for number in range(TESTS_NAMED + 5))
    assert finding.as_escalation.title == f"no printer ({TESTS_NAMED + 5} tests)"
    assert finding.as_escalation.detail_markdown.endswith("* … and 5 more")


def test_finding_without_title_uses_reason() -> None:
    assert titles(record("a", said("HARNESS_DEFECT", ""), reason="no printer")) == ["no printer"]
