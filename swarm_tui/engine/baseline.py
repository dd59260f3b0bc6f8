"""Runs the tests of a sweep in fresh copies before any agent is launched: which are red, flaky, or clash."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.model.baseline import Baseline, classify
from swarm_tui.testing.copies import TestCopies

LONGEST: Final = 1800.0
"""The seconds that a baseline may take; what was not run by then is not known."""
LONGEST_TEST: Final = 300.0
"""The seconds for one test where a person has named none."""
_BATCH: Final = 64


@dataclass(slots=True)
class BaselineRuns:
    """What every run of every test came to."""

    beside: dict[str, list[str]] = field(default_factory=dict)
    alone: dict[str, list[str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """A line on each test that failed, from its last failure."""
    is_cut: bool = False
    """Whether the time was over before all were run."""

    def baseline_of(self, test: str) -> Baseline:
        return classify(self.beside.get(test, ()), self.alone.get(test, ()))

    def unsteady(self) -> list[str]:
        """Return the tests that have failed, which are to be run alone."""
        return [test for test, outcomes in self.beside.items() if "failed" in outcomes]


async def run_baseline(
    copies: TestCopies,
    tree: str,
    tests: Sequence[str],
    runs: int,
    live: Callable[[str], None],
    longest: float = LONGEST,
) -> BaselineRuns:
    """Run each test so many times, in copies side by side, and those that failed as often again with nothing beside.

    Once means that the copies share the tests; more often, that each copy runs all of them at the same time as others.
    """
    made = BaselineRuns()
    deadline = time.monotonic() + longest
    total, done = len(tests) * runs, 0

    async def work(queue: deque[str], into: dict[str, list[str]]) -> None:
        nonlocal done
        while queue:
            batch = [queue.popleft() for _ in range(min(_BATCH, len(queue)))]
            outcomes = await _run(copies, tree, batch, deadline, made)
            for test in batch:
                into.setdefault(test, []).append(outcomes.get(test, ""))
            done += len(batch)
            live(f"baseline: {done} of {total} runs")

    shared = deque(tests)
    queues = [shared] * copies.count if runs == 1 else [deque(tests) for _ in range(runs)]
    await asyncio.gather(*(work(queue, made.beside) for queue in queues))
    again = made.unsteady()
    total += len(again) * runs
    for _ in range(runs):
        await work(deque(again), made.alone)
    return made


async def _run(
    copies: TestCopies, tree: str, batch: Sequence[str], deadline: float, made: BaselineRuns
) -> Mapping[str, str]:
    left = deadline - time.monotonic()
    if left <= 0:
        made.is_cut = True
        return {}
    with contextlib.suppress(SwarmError):
        run = await copies.run_uncached(tree, batch, left)
        made.failures.update(run.failures)
        return run.outcomes
    made.is_cut = True
    return {}
