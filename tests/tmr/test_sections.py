"""What the page says of an agent, and what its outcome says, lead to the same section."""

from __future__ import annotations

import pytest

from swarm_tui.agents.judging import CommitSummary, End, Evidence, judge
from swarm_tui.model.outcome import ChangeKind, ChangeStatus, Outcome, parse_outcome
from swarm_tui.model.states import Result
from swarm_tui.tmr.page import PageRow
from swarm_tui.tmr.sections import is_at_odds, outcome_of_row, section_in_words, section_of


def said(section: str, *changes: tuple[str, str]) -> Outcome:
    found = outcome_of_row(PageRow(section, "a::b", "x", "", changes, "words"))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("raw", "section"),
    [
        (b'{"errored": true, "tests_passing_after": true}', "FAILED"),
        (b"{}", "RUNNING"),
        (b'{"tests_passing_before": false}', "UNRESOLVED"),
        (b'{"changes": {"FIX_IMPL": {"status": "BLOCKED"}}}', "BLOCKED"),
        (b'{"changes": {"FIX_IMPL": {"status": "FAILED"}}}', "UNRESOLVED"),
        (b'{"changes": {"FIX_IMPL": {"status": "FAILED"}, "FIX_TEST": {"status": "SUCCEEDED"}}}', "NON_IMPL_FIXES"),
        (b'{"changes": {"FIX_IMPL": {"status": "SUCCEEDED"}}}', "IMPL_FIXES"),
        (b'{"tests_passing_after": true}', "CLEAN_PASS"),
    ],
)
def test_an_outcome_belongs_to_a_section(raw: bytes, section: str) -> None:
    assert section_of(parse_outcome(raw)) == section


@pytest.mark.parametrize(
    ("section", "changes", "result"),
    [
        ("FAILED", (), Result.FAILED),
        ("TIMED_OUT", (), Result.FAILED),
        ("CLEAN_PASS", (), Result.CLEAN),
        ("RUN_SUCCEEDED", (), Result.CLEAN),
        ("UNRESOLVED", (), Result.UNRESOLVED),
        ("STUCK", (("FIX_IMPL", "FAILED"),), Result.UNRESOLVED),
        ("BLOCKED", (("FIX_IMPL", "BLOCKED"),), Result.BLOCKED),
        ("IMPL_FIXES", (), Result.IMPL_FIX),
        ("NON_IMPL_FIXES", (("IMPROVE_TEST", "SUCCEEDED"), ("NEW_KIND", "SUCCEEDED")), Result.BETTER),
        ("NON_IMPL_FIXES", (), Result.TEST_FIX),
        ("FIX_IMPL_FAILED", (), Result.UNRESOLVED),
    ],
)
def test_the_page_leads_to_a_result(section: str, changes: tuple[tuple[str, str], ...], result: Result) -> None:
    found = said(section, *changes)
    commits = [CommitSummary("", f"[{kind.value}]") for kind in found.changes]
    assert judge(Evidence(End.ARCHIVE, found, commits=commits)).result is result
    assert found.summary_markdown == "words"


def test_the_page_says_nothing_of_who_is_at_work_and_of_new_sections() -> None:
    rows = (None, PageRow("RUNNING", "a::b", "x"), PageRow("PENDING", "a::b", "x"), PageRow("NEW", "a::b", "x"))
    assert [outcome_of_row(row) for row in rows] == [None] * 4


def test_the_page_names_what_passes() -> None:
    fixed = said("IMPL_FIXES")
    assert (fixed.changes[ChangeKind.FIX_IMPL].status, fixed.tests_passing_after) == (ChangeStatus.SUCCEEDED, True)
    assert said("UNRESOLVED").tests_passing_after is False
    assert said("FIX_IMPL_FAILED").tests_passing_after is False
    assert said("UNRESOLVED", ("FIX_TEST", "SUCCEEDED")).tests_passing_after is False
    assert (said("ERRORED").errored, said("ERRORED").tests_passing_after) == (True, None)


@pytest.mark.parametrize(
    ("section", "result", "is_so"),
    [
        ("", Result.FAILED, False),
        ("NEW", Result.FAILED, False),
        ("RUNNING", Result.CLEAN, True),
        ("CLEAN_PASS", Result.CLEAN, False),
        ("CLEAN_PASS", Result.BETTER, True),
        ("NON_IMPL_FIXES", Result.BETTER, False),
    ],
)
def test_a_page_may_be_at_odds_with_a_result(section: str, result: Result, is_so: bool) -> None:
    assert is_at_odds(section, result) is is_so


def test_sections_are_said_in_words() -> None:
    assert [section_in_words(word) for word in ("NON_IMPL_FIXES", "CLEAN_PASS")] == ["other fixes", "clean pass"]
