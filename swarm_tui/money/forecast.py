"""Estimate before the sweep, forecast of end, cost of each fix."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.formatting import counted, money
from swarm_tui.model.results import ACTIVE_STATES, State
from swarm_tui.money.events import NOTHING_SPENT, Spending


def spending_of(records: Iterable[TestRecord]) -> Spending:
    """Return the usage of all agents of these tests, including earlier launches."""
    total = NOTHING_SPENT
    for record in records:
        total = total.plus(record.spending)
    return total


def cost_words(records: Iterable[TestRecord]) -> str:
    """Return `cost $2.10, 7 agents`; empty if no agent reported its usage."""
    spent = spending_of(records)
    agents = spent.priced + spent.unpriced
    return f"cost {spent.text}, {counted(agents, 'agent')}" if spent.is_known else ""


def cost_of_each(spent: Spending, kept: int, fixes: int) -> str:
    """Return the cost of the sweep divided by the number of kept fixes, or of all fixes while none is kept."""
    number, noun = (kept, "kept fix") if kept else (fixes, "fix")
    if not number or not spent.priced:
        return ""
    return f"{money(spent.dollars / number)}{'+?' if spent.unpriced else ''} a {noun}"


FEWEST_COSTS: Final = 3
"""The minimum number of agents with a known cost."""
_SPREAD: Final = 2.0
"""The width of the range in standard deviations, which contains about 95 % of sweeps."""


class PastSweep(NamedTuple):
    """The cost of an earlier sweep."""

    tests: Mapping[str, float]
    """The dollars for each test with a known cost."""
    integrator: float | None = None


class Estimate(NamedTuple):
    """The expected cost of a sweep, with a range."""

    dollars: float
    low: float
    high: float
    sweeps: int
    agents: int

    @property
    def text(self) -> str:
        source = f"{counted(self.sweeps, 'earlier sweep')}, {counted(self.agents, 'agent')}"
        return f"about {money(self.dollars)} ({money(self.low)} to {money(self.high)}), from {source}"


def estimate_cost(tests: Sequence[str], past: Iterable[PastSweep], *, has_integrator: bool) -> Estimate | None:
    """Return the expected cost of these tests, or None if there is not enough data.

    A test that was in earlier sweeps is expected to cost its mean, any other test the mean of all. The range includes
    the spread of single agents, and the spread between sweeps, because models and prompts change.
    """
    sweeps = [sweep for sweep in past if sweep.tests]
    costs = [dollars for sweep in sweeps for dollars in sweep.tests.values()]
    if len(costs) < FEWEST_COSTS or not tests:
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
    """Return the standard deviation of the ratio between the actual and the expected cost of sweeps."""
    ratios = []
    for sweep in sweeps:
        expected = math.fsum(statistics.fmean(of_test[test]) for test in sweep.tests)
        if expected > 0:
            ratios.append(math.fsum(sweep.tests.values()) / expected)
    return statistics.pstdev(ratios) if len(ratios) > 1 else 0.0


FEWEST_ENDS: Final = 3
"""The minimum number of finished tests."""
RECENT: Final = 200


def seconds_to_end(spans: Sequence[float], spent: Sequence[float], queued: int, slots: int) -> float | None:
    """Return the seconds until the last test finishes, or None if there is not enough data.

    `spans` are the durations of finished tests, and `spent` the elapsed times of running tests. Each test is expected
    to take the median duration, and the slots share the work. Time to wait for the user is not included.
    """
    if len(spans) < FEWEST_ENDS or not (queued or spent) or (queued and slots <= 0):
        return None
    typical = statistics.median(spans[-RECENT:])
    rest = sum(max(typical - seconds, typical * 0.1) for seconds in spent)
    shared_by = max(1, min(slots, queued + len(spent)))
    return max((queued * typical + rest) / shared_by, typical * 0.1)


def seconds_to_end_of_sweep(state: SweepState, now: float) -> float | None:
    """Return the seconds until the last test of a sweep finishes, or None without a forecast."""
    if state.is_waiting(now) and state.counts[State.QUEUED.value]:
        return None
    ended = [record for record in state.tests() if record.state is State.DONE]
    spans = [record.ended_at - record.launched_at for record in ended if record.ended_at and record.launched_at]
    spent = [now - (record.launched_at or now) for record in state.tests() if record.state in ACTIVE_STATES]
    queued = sum(record.state is State.QUEUED and not record.is_held for record in state.tests())
    return seconds_to_end(spans, spent, queued, state.open_slots)
