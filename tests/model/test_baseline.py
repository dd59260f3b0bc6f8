"""The baseline of a test, and the summary of all baselines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.results import BASELINE_SENTENCES, Baseline, classify, summarize

P, F, S, U = "passed", "failed", "skipped", ""


@pytest.mark.parametrize(
    ("together", "alone", "baseline"),
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
def test_kinds(together: list[str], alone: list[str], baseline: Baseline) -> None:
    assert classify(together, alone) is baseline


@pytest.mark.parametrize(
    ("together", "alone", "in_order", "baseline"),
    [
        ([F], [F], P, Baseline.ORDER),
        ([F], [F], F, Baseline.RED),
        ([F], [F], U, Baseline.RED),
        ([F], [P], P, Baseline.CLASH),
        ([P, F], [F], P, Baseline.FLAKY),
    ],
)
def test_red_test_that_passes_in_order_is_order(
    together: list[str], alone: list[str], in_order: str, baseline: Baseline
) -> None:
    assert classify(together, alone, in_order) is baseline


@given(st.lists(st.sampled_from([P, F, S, U])), st.lists(st.sampled_from([P, F, S, U])))
def test_classify_green_and_red(together: list[str], alone: list[str]) -> None:
    baseline = classify(together, alone)
    assert (F not in together) == (baseline in (Baseline.GREEN, Baseline.SKIPPED, Baseline.UNKNOWN))
    assert baseline is not Baseline.RED or P not in together + alone


def test_summary_counts_all_tests() -> None:
    assert summarize([Baseline.RED, Baseline.GREEN, Baseline.RED, Baseline.UNKNOWN, Baseline.CLASH]) == (
        "1 green, 2 red, 1 in conflict with other tests, 1 unknown"
    )
    assert set(BASELINE_SENTENCES) == set(Baseline) - {Baseline.UNKNOWN}
