"""Failures of real tests are put together by their causes, pair by pair, as those who broke the tests know them."""

from __future__ import annotations

import pytest

from swarm_tui.insight.causes import cause_of_failure
from tests.insight.failures.measure import agreement, labelled_failures, measured

FAILURES = labelled_failures()


def test_there_are_enough_failures_of_enough_causes() -> None:
    assert len(FAILURES) >= 300
    assert len({failure.cause for failure in FAILURES}) >= 40


@pytest.mark.parametrize("is_held_out", [False, True], ids=["tried", "held out"])
def test_causes_are_told_apart_and_kept_together(is_held_out: bool) -> None:
    assert measured([failure for failure in FAILURES if failure.is_held_out is is_held_out]).f1 >= 0.95


def test_the_one_line_of_an_older_journal_never_puts_much_together_that_is_not() -> None:
    assert measured(FAILURES, is_by_line=True).precision >= 0.85


def test_no_cause_is_empty() -> None:
    assert all(cause_of_failure(failure.failure, failure.detail) for failure in FAILURES)


def test_agreement_counts_pairs() -> None:
    assert agreement("aabb", "aabb").f1 == 1.0
    assert agreement("aaaa", "aabb") == (2 / 6, 1.0)
    assert agreement("aabc", "aabb") == (1.0, 0.5)
