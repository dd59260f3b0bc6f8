"""Failures of real tests are grouped by their known causes."""

from __future__ import annotations

import pytest

from swarm_tui.failures.causes import cause_of_failure
from tests.failures.recorded.measure import agreement, labelled_failures, measured

FAILURES = labelled_failures()


def test_sample_has_enough_failures_and_causes() -> None:
    assert len(FAILURES) >= 300
    assert len({failure.cause for failure in FAILURES}) >= 40


@pytest.mark.parametrize("is_held_out", [False, True], ids=["tried", "held out"])
def test_causes_separate_and_group_failures(is_held_out: bool) -> None:
    assert measured([failure for failure in FAILURES if failure.is_held_out is is_held_out]).f1 >= 0.95


def test_one_line_failures_rarely_merge_causes() -> None:
    assert measured(FAILURES, is_by_line=True).precision >= 0.85


def test_cause_is_never_empty() -> None:
    assert all(cause_of_failure(failure.failure, failure.detail) for failure in FAILURES)


def test_agreement_counts_pairs() -> None:
    assert agreement("aabb", "aabb").f1 == 1.0
    assert agreement("aaaa", "aabb") == (2 / 6, 1.0)
    assert agreement("aabc", "aabb") == (1.0, 0.5)
