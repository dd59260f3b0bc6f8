"""Estimates what a sweep will cost from what the agents of earlier sweeps have cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from swarm_tui.model.formatting import counted, money

ENOUGH: Final = 3
"""With fewer agents of which the cost is known there is no estimate."""
_SPREAD: Final = 2.0
"""So many standard deviations: nineteen of twenty sweeps are inside."""


class PastSweep(NamedTuple):
    """What an earlier sweep has cost."""

    tests: Mapping[str, float]
    """The dollars of each test whose agents have said them."""
    integrator: float | None = None


class Estimate(NamedTuple):
    """What a sweep is expected to cost, and the range in which that most likely is."""

    dollars: float
    low: float
    high: float
    sweeps: int
    agents: int

    @property
    def text(self) -> str:
        from_what = f"{counted(self.sweeps, 'earlier sweep')}, {counted(self.agents, 'agent')}"
        return f"about {money(self.dollars)} ({money(self.low)} to {money(self.high)}), from {from_what}"


def estimate_cost(tests: Sequence[str], past: Iterable[PastSweep], *, has_integrator: bool) -> Estimate | None:
    """Return what these tests will cost, or None when too little is known.

    A test that was in earlier sweeps costs their mean, another one the mean of all. The range has the spread of single
    agents, and that of whole sweeps where there were several: models and prompts change.
    """
    sweeps = [sweep for sweep in past if sweep.tests]
    costs = [dollars for sweep in sweeps for dollars in sweep.tests.values()]
    if len(costs) < ENOUGH or not tests:
        return None
    mean = statistics.fmean(costs)
    of_test: dict[str, list[float]] = {}
    for sweep in sweeps:
        for test, dollars in sweep.tests.items():
            of_test.setdefault(test, []).append(dollars)
    expected = [statistics.fmean(of_test[test]) if test in of_test else mean for test in tests]
    integrators = [sweep.integrator for sweep in sweeps if sweep.integrator is not None] if has_integrator else []
    dollars = math.fsum(expected) + (statistics.fmean(integrators) if integrators else 0.0)
    margin = _SPREAD * math.hypot(
        statistics.pstdev(costs) * math.sqrt(len(tests)),
        _spread_of_sweeps(sweeps, of_test) * dollars,
        statistics.pstdev(integrators) if len(integrators) > 1 else 0.0,
    )
    return Estimate(dollars, max(0.0, dollars - margin), dollars + margin, len(sweeps), len(costs))


def _spread_of_sweeps(sweeps: Sequence[PastSweep], of_test: Mapping[str, Sequence[float]]) -> float:
    """Return how much whole sweeps differ from what would be expected of their tests, as a part of that."""
    ratios = []
    for sweep in sweeps:
        expected = math.fsum(statistics.fmean(of_test[test]) for test in sweep.tests)
        if expected > 0:
            ratios.append(math.fsum(sweep.tests.values()) / expected)
    return statistics.pstdev(ratios) if len(ratios) > 1 else 0.0
