"""Measures what each fix does to the tests: a few pytest calls in scratch copies, bounded, never made twice."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.adapters.pytest_runs import TestRun
from swarm_tui.agents.integrator.duplicates import FoldedFix
from swarm_tui.agents.integrator.inputs import IntegratorInputs
from swarm_tui.agents.integrator.ranking import Effect, reported_effect
from swarm_tui.agents.integrator.scratch import ScratchCopies
from swarm_tui.errors import SwarmError
from swarm_tui.model.formatting import counted
from swarm_tui.model.states import Result
from swarm_tui.model.text import plain

FIXES_MEASURED: Final = 200
REDS_MEASURED: Final = 300
BLAMED_MEASURED: Final = 50
# Without a fix and with the one that surprised: of tests that fail every other time, one of 64 is not noticed.
FLAKY_RUNS: Final = 3
STEADY_RUNS: Final = 2

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class MeasuredCommit:
    """A commit with a fix: alone on top of the test and doc fixes, or on the branch after those before it."""

    fix: FoldedFix
    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class TestDocBase:
    """What the fixes are compared with: the base with all test and doc fixes."""

    commit: str
    tree: str


class Measuring:
    """Measures fixes on one ground, within one time limit."""

    def __init__(
        self,
        copies: ScratchCopies,
        inputs: IntegratorInputs,
        ground: TestDocBase,
        trials: Sequence[MeasuredCommit],
        progress: Progress,
    ) -> None:
        self._copies = copies
        self._inputs = inputs
        self._ground = ground
        self._trials = trials
        self._progress = progress
        self._deadline = time.monotonic() + inputs.measure_seconds
        self._flaky: set[str] = set()

    async def measure(self) -> dict[str, Effect]:
        """Return what each fix turns green, by its chosen commit; what could not be measured says why."""
        if not self._trials:
            return {}
        reds = tests_that_may_turn(self._inputs, [trial.fix for trial in self._trials])
        self._progress(f"measures {len(self._trials)} fixes with {counted(len(reds), 'test')}")
        before, why_not = await self._run_ground(reds)
        if why_not:
            return {trial.fix.chosen.commit: reported_effect(trial.fix, why_not) for trial in self._trials}
        runs = await asyncio.gather(*(self._run_with(number, reds) for number in range(len(self._trials))))
        told = [(trial, run) for trial, run in zip(self._trials, runs, strict=True) if isinstance(run, TestRun)]
        flaky = self._flaky = await self._find_flaky(before, told)
        if flaky:
            self._progress(f"{len(flaky)} flaky: {', '.join(sorted(flaky))}")
        effects = {}
        for trial, run in zip(self._trials, runs, strict=True):
            if isinstance(run, str):
                effects[trial.fix.chosen.commit] = reported_effect(trial.fix, run)
                continue
            asked = [test for test in trial.fix.tests if test in flaky and run.is_green(test)]
            steadied = set(asked) - await self._find_unsteady(trial.commit, asked, run, STEADY_RUNS)
            effect = compare_runs(before, run, flaky=flaky, steadied=steadied)
            effects[trial.fix.chosen.commit] = effect
            self._progress(f"{trial.fix.chosen.subject}: turns {counted(len(effect.turned_green), 'test')} green")
        return effects

    async def _find_flaky(self, before: TestRun, told: Sequence[tuple[MeasuredCommit, TestRun]]) -> set[str]:
        """Return the tests whose result varies: those with a surprising result are run again on the same commit."""
        surprises = surprising_tests(before, [(trial.fix, run) for trial, run in told])
        asked = [self._find_unsteady(self._ground.commit, list(surprises), before, FLAKY_RUNS)]
        for number, (trial, run) in enumerate(told):
            tests = [test for test, where in surprises.items() if where == number]
            asked.append(self._find_unsteady(trial.commit, tests, run, FLAKY_RUNS))
        return set[str]().union(*await asyncio.gather(*asked))

    async def blame(
        self, effects: Mapping[str, Effect], broken: Sequence[str], branch: Sequence[MeasuredCommit]
    ) -> dict[str, Effect]:
        """Find out on the finished branch, as `git bisect` would, which fix breaks tests that were green before."""
        asked = [test for test in broken if test not in self._flaky][:BLAMED_MEASURED]
        blamed = dict(effects)
        if not asked or not branch:
            return blamed
        self._progress(f"looks which fix breaks {counted(len(asked), 'test')}")
        before, _ = await self._run_ground(asked)
        green = [test for test in asked if before.is_green(test)]
        unsteady = await self._find_unsteady(self._ground.commit, green, before, STEADY_RUNS)
        steady = [test for test in green if test not in unsteady]
        for test, position in (await self._locate(steady, branch, 0, len(branch) - 1)).items():
            key = branch[position].fix.chosen.commit
            known = dict.fromkeys((*blamed[key].broken, test))
            blamed[key] = replace(blamed[key], broken=tuple(known))
        return blamed

    async def _locate(
        self, tests: Sequence[str], branch: Sequence[MeasuredCommit], first: int, last: int
    ) -> dict[str, int]:
        """Return for each test the step of the branch that turns it red: not before `first`, not after `last`."""
        if not tests or first == last:
            return dict.fromkeys(tests, first)
        middle = (first + last) // 2
        step = branch[middle]
        try:
            run = await self._copies.run(step.commit, step.tree, tests, self._left)
        except SwarmError:
            return {}
        red = [test for test in tests if not run.is_green(test)]
        green = [test for test in tests if run.is_green(test)]
        parts = self._locate(red, branch, first, middle), self._locate(green, branch, middle + 1, last)
        early, late = await asyncio.gather(*parts)
        return early | late

    async def _run_ground(self, tests: Sequence[str]) -> tuple[TestRun, str]:
        """Run tests without any fix; give why nothing can be measured, or nothing."""
        if self._inputs.measure_seconds <= 0:
            return TestRun({}), "measuring is switched off"
        if not self._inputs.python:
            return TestRun({}), "no Python of the project is known"
        if self._left <= 0:
            return TestRun({}), "there was no time left"
        try:
            before = await self._copies.run(self._ground.commit, self._ground.tree, tests, self._left)
        except SwarmError as error:
            return TestRun({}), plain(error.message, 200)
        return before, "" if before.outcomes else before.complaint or "pytest reported no test"

    async def _run_with(self, number: int, tests: Sequence[str]) -> TestRun | str:
        """Run tests with one fix; a text says why that was not possible."""
        trial = self._trials[number]
        foreign = {test.test for test in self._inputs.tests if test.has_foreign_imports}
        if foreign.intersection(trial.fix.tests):
            return "its tests ran against the user's checkout"
        if number >= FIXES_MEASURED or self._left <= 0:
            return "there was no time left"
        try:
            after = await self._copies.run(trial.commit, trial.tree, tests, self._left)
        except SwarmError as error:
            return plain(error.message, 200)
        return after if after.outcomes else after.complaint or "pytest reported no test"

    async def _find_unsteady(self, commit: str, tests: Sequence[str], known: TestRun, times: int) -> set[str]:
        """Run tests on a commit a few times more, and give those that do not always come to the same."""
        if not tests:
            return set()

        async def run_again() -> Mapping[str, str]:
            with contextlib.suppress(SwarmError):
                if self._left > 0:
                    return (await self._copies.run_anew(commit, tests, self._left)).outcomes
            return {}

        again = await asyncio.gather(*(run_again() for _ in range(times)))
        was = known.outcomes
        return {test for test in tests if any(run.get(test, was.get(test)) != was.get(test) for run in again)}

    @property
    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


def tests_that_may_turn(inputs: IntegratorInputs, fixes: Sequence[FoldedFix]) -> list[str]:
    """Return the tests that a fix may turn green, its own agents' first; what was not tested here is left out."""
    own = {test for fix in fixes for test in fix.tests}
    red = (Result.IMPL_FIX, Result.UNRESOLVED, Result.BLOCKED, Result.FAILED)
    open_results = {result.value for result in red}
    reds = [
        test.test
        for test in inputs.tests
        if not test.has_foreign_imports and (test.test in own or test.result in open_results)
    ]
    return sorted(reds, key=lambda test: test not in own)[:REDS_MEASURED]


def surprising_tests(before: TestRun, runs: Sequence[tuple[FoldedFix, TestRun]]) -> dict[str, int]:
    """Return the tests whose results may be luck, each with the place of the run that surprised first.

    A test surprises when it changes with a fix that has nothing to do with it, or was green without its own fix.
    That a fix turns the test of another one is no surprise when both change the same file.
    """
    paths: dict[str, set[str]] = {}
    for fix, _ in runs:
        for test in fix.tests:
            paths.setdefault(test, set()).update(fix.chosen.paths)
    surprises: dict[str, int] = {}
    for place, (fix, run) in enumerate(runs):
        for test in before.outcomes:
            is_changed = before.is_green(test) != run.is_green(test)
            is_own = test in fix.tests
            is_related = not paths.get(test, set()).isdisjoint(fix.chosen.paths)
            if (is_changed and not is_own and not is_related) or (is_own and before.is_green(test)):
                surprises.setdefault(test, place)
    return surprises


def compare_runs(
    before: TestRun, after: TestRun, *, flaky: Collection[str] = (), steadied: Collection[str] = ()
) -> Effect:
    """Return what a fix does, from the same tests without and with it.

    Flaky tests tell nothing of it, but for those that it has `steadied`: they count as turned green.
    """
    told = [test for test in before.outcomes if test not in flaky]
    green = [test for test in told if not before.is_green(test) and after.is_green(test)]
    red = [test for test in told if before.is_green(test) and after.outcomes.get(test) in (None, "failed")]
    return Effect(turned_green=(*green, *sorted(steadied)), broken=tuple(red), flaky=tuple(sorted(steadied)))
