"""Findings of agents: the same problem in other words is one, two problems stay two."""

from __future__ import annotations

from swarm_tui.insight.findings import TESTS_NAMED, group_findings
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.outcome import Escalation, Location
from swarm_tui.model.state import TestRecord


def record(test: str, *escalations: Escalation, reason: str = "") -> TestRecord:
    return TestRecord(test, reason=reason, harvest=HarvestReport(escalations=escalations))


def said(kind: str, title: str, *places: tuple[str, int], detail: str = "") -> Escalation:
    locations = tuple(Location(path=path, line=line) for path, line in places)
    return Escalation(kind=kind, title=title, detail_markdown=detail, locations=locations)


def titles(*records: TestRecord) -> list[str]:
    return [finding.as_escalation.title for finding in group_findings(records)]


def test_the_same_title_but_for_values_is_one_finding() -> None:
    assert titles(
        record("a", said("HARNESS_DEFECT", "port 8001 is taken")),
        record("b", said("HARNESS_DEFECT", "Port 8004 is taken")),
        record("c", said("BLOCKER", "port 17 is taken")),
    ) == ["port 8001 is taken (3 tests)"]


def test_findings_that_name_the_same_place_are_one_whatever_their_words() -> None:
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


def test_another_kind_or_another_place_is_another_finding() -> None:
    assert titles(
        record("a", said("UNCAUGHT_BUG", "is_soon leaves today out", ("larder/dates.py", 25))),
        record("b", said("SUITE_DUPLICATION", "is_soon leaves today out", ("larder/dates.py", 25))),
        record("c", said("UNCAUGHT_BUG", "Dates are read wrongly", ("larder/dates.py", 40))),
    ) == ["Dates are read wrongly", "is_soon leaves today out", "is_soon leaves today out"]


def test_what_blocks_comes_first_then_what_most_met() -> None:
    assert titles(
        record("a", said("UNCAUGHT_BUG", "sums are wrong")),
        record("b", said("UNCAUGHT_BUG", "sums are wrong")),
        record("c", said("SUITE_DUPLICATION", "one clock for all")),
        record("d", said("HARNESS_DEFECT", "no printer")),
    ) == ["no printer", "sums are wrong (2 tests)", "one clock for all"]


def test_many_tests_are_named_up_to_a_limit_and_one_test_once() -> None:
    twice = said("HARNESS_DEFECT", "no printer")
    (finding,) = group_findings(record(f"t{number}", twice, twice) for number in range(TESTS_NAMED + 5))
    assert finding.as_escalation.title == f"no printer ({TESTS_NAMED + 5} tests)"
    assert finding.as_escalation.detail_markdown.endswith("* … and 5 more")


def test_without_a_title_the_reason_of_the_test_stands_for_it() -> None:
    assert titles(record("a", said("HARNESS_DEFECT", ""), reason="no printer")) == ["no printer"]
