"""What the runs of a test say together, and how many there are of each kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.baseline import BASELINE_SENTENCES, Baseline, classify, summarize

P, F, S, U = "passed", "failed", "skipped", ""


@pytest.mark.parametrize(
    ("beside", "alone", "baseline"),
    [
        ([], [], Baseline.UNKNOWN),
        ([U, U], [], Baseline.UNKNOWN),
        ([P], [], Baseline.GREEN),
        ([P, U, P], [], Baseline.GREEN),
        ([S], [], Baseline.SKIPPED),
        ([S, P], [], Baseline.GREEN),
        ([F], [F], Baseline.RED),
        ([F, F, F], [F, F, F], Baseline.RED),
        ([F], [], Baseline.RED),
        ([F], [P], Baseline.CLASH),
        ([P, F], [P, P], Baseline.CLASH),
        ([P, F], [P, F], Baseline.FLAKY),
        ([P, F], [F, F], Baseline.FLAKY),
        ([F, F], [F, P], Baseline.FLAKY),
        ([P, F], [], Baseline.FLAKY),
        ([P, F], [U], Baseline.FLAKY),
    ],
)
def test_kinds(beside: list[str], alone: list[str], baseline: Baseline) -> None:
    assert classify(beside, alone) is baseline


@given(st.lists(st.sampled_from([P, F, S, U])), st.lists(st.sampled_from([P, F, S, U])))
def test_green_is_what_never_failed_and_red_what_never_passed(beside: list[str], alone: list[str]) -> None:
    baseline = classify(beside, alone)
    assert (F not in beside) == (baseline in (Baseline.GREEN, Baseline.SKIPPED, Baseline.UNKNOWN))
    assert baseline is not Baseline.RED or P not in beside + alone


def test_a_summary_counts_all() -> None:
    assert summarize([Baseline.RED, Baseline.GREEN, Baseline.RED, Baseline.UNKNOWN, Baseline.CLASH]) == (
        "1 green, 2 red, 1 that clash with others, 1 not known"
    )
    assert set(BASELINE_SENTENCES) == set(Baseline) - {Baseline.UNKNOWN}
