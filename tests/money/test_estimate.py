"""The estimated cost of a sweep, with a range, from earlier sweeps."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.money.forecast import PastSweep, estimate_cost

PAST = PastSweep({"a": 1.0, "b": 2.0, "c": 3.0}, integrator=4.0)


def test_estimate_with_little_data_is_none() -> None:
    for past in ([], [PastSweep({})], [PastSweep({"a": 1.0, "b": 2.0}, 9.0)]):
        assert estimate_cost(["a"], past, has_integrator=True) is None
    assert estimate_cost([], [PAST], has_integrator=True) is None


def test_estimate_uses_mean_of_test_or_all() -> None:
    known = estimate_cost(["a"], [PAST], has_integrator=False)
    other = estimate_cost(["a", "new"], [PAST], has_integrator=True)
    assert known is not None
    assert other is not None
    assert (known.dollars, other.dollars) == pytest.approx((1.0, 1.0 + 2.0 + 4.0))
    assert other.text == "about $7.00 ($4.69 to $9.31), from 1 earlier sweep, 3 agents"


def test_different_sweeps_widen_range() -> None:
    same = estimate_cost(["a", "b", "c"], [PAST, PAST], has_integrator=False)
    twice = PastSweep({test: 2 * dollars for test, dollars in PAST.tests.items()})
    other = estimate_cost(["a", "b", "c"], [PAST, twice], has_integrator=False)
    assert same is not None
    assert other is not None
    assert (same.dollars, other.dollars) == pytest.approx((6.0, 9.0))
    assert other.high - other.low > 1.4 * (same.high - same.low)


def test_most_sweeps_are_inside_range() -> None:
    chance = random.Random(7)
    names = [f"t{number}" for number in range(40)]

    def sweep() -> PastSweep:
        return PastSweep({name: chance.lognormvariate(-1.5, 0.8) for name in names})

    inside = 0
    for _ in range(100):
        estimate = estimate_cost(names, [sweep(), sweep()], has_integrator=False)
        assert estimate is not None
        inside += estimate.low <= sum(sweep().tests.values()) <= estimate.high
    assert inside >= 85


costs = st.dictionaries(st.sampled_from("abcdefg"), st.floats(0, 1e4), max_size=7)


@given(
    st.lists(st.sampled_from("abcxyz"), max_size=8), st.lists(st.builds(PastSweep, costs, st.none() | st.floats(0, 9)))
)
def test_range_contains_estimate_and_is_not_negative(tests: list[str], past: list[PastSweep]) -> None:
    estimate = estimate_cost(tests, past, has_integrator=True)
    if estimate is not None:
        assert 0 <= estimate.low <= estimate.dollars + 1e-6
        assert estimate.dollars <= estimate.high + 1e-6
