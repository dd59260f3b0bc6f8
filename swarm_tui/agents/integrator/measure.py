"""Measures what each fix does to the tests: a few pytest calls in scratch copies, bounded in time, cached by tree."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.pytest_runs import TestRun
from swarm_tui.agents.integrator.concerns import ALL_POSSIBLE, Concerned, Concerns
from swarm_tui.agents.integrator.duplicates import DistinctFix
from swarm_tui.agents.integrator.inputs import IntegratorInputs
from swarm_tui.agents.integrator.meter import TESTS, Meter
from swarm_tui.agents.integrator.ranking import Effect, reported_effect
from swarm_tui.errors import SwarmError
from swarm_tui.model.states import Result
from swarm_tui.model.text import plain
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.traced import TracedRun, run_traced

MAX_FIXES: Final = 200
MAX_RED_TESTS: Final = 300
MAX_BROKEN_TESTS: Final = 50
MAX_OTHER_TESTS: Final = 1_000
FIXES_WORTH_TRACING: Final = 4
"""So many fixes make it worth the while to look first what each test runs."""
TRACING_SHARE: Final = 0.3
"""The part of the time left that looking may take."""
# Without a fix and with the one whose result was unexpected: of tests that fail every other time, one of 64 is missed.
FLAKY_RUNS: Final = 3
STEADY_RUNS: Final = 2

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FixTree:
    """A fix and a tree that has it: alone on top of the test and doc fixes, or on the branch after those before it."""

    fix: DistinctFix
    tree: str
    before: str = ""
    """The tree without it, where it builds on other fixes; else it is the one without any fix."""
    builds_on: str = ""
    """The title of the fix that it builds on."""


@dataclass(frozen=True, slots=True)
class FixRuns:
    """The same tests without and with a fix."""

    entry: FixTree
    before: TestRun
    after: TestRun
    concerned: Concerned = ALL_POSSIBLE

    @property
    def fix(self) -> DistinctFix:
        return self.entry.fix


class FixMeasurement:
    """Measures fixes against one tree without any of them, within one time limit."""

    def __init__(
        self,
        space: ObjectSpace,
        copies: TestCopies,
        inputs: IntegratorInputs,
        tree_before: str,
        fixes: Sequence[FixTree],
        progress: Progress,
        meter: Meter,
    ) -> None:
        """`tree_before` is the base with all test and doc fixes; each of `fixes` is alone on top of it."""
        self._space = space
        self._copies = copies
        self._inputs = inputs
        self._tree_before = tree_before
        self._fixes = fixes
        self._progress = progress
        self._meter = meter
        self._deadline = time.monotonic() + inputs.measure_seconds
        self._flaky: set[str] = set()
        self._concerns: Concerns | None = None

    async def measure(self) -> dict[str, Effect]:
        """Return what each fix turns green, by its chosen commit; what could not be measured says why."""
        if not self._fixes:
            return {}
        likely = tests_that_may_turn_green(self._inputs, [entry.fix for entry in self._fixes])
        others = other_tests(self._inputs, likely) if len(self._fixes) >= FIXES_WORTH_TRACING else []
        self._progress(f"measures {len(self._fixes)} fixes with {_count(len(likely))}")
        every = len(self._inputs.tests)
        self._meter.expect(len(likely) + len(others) + len(self._fixes) * len(likely) + every)
        self._meter.begin("running the tests without any fix", len(likely) + len(others), TESTS)
        before, why_not = await self._look_at_all([*likely, *others])
        if why_not:
            return {entry.fix.chosen.commit: reported_effect(entry.fix, why_not) for entry in self._fixes}
        concerned = [await asyncio.to_thread(self._concerned_by, entry) for entry in self._fixes]
        wanted = [
            [test for test in likely if test in entry.fix.tests or concern.may_be(test)]
            + [test for test in others if test in concern.seen]
            for entry, concern in zip(self._fixes, concerned, strict=True)
        ]
        self._meter.expect(sum(map(len, wanted)) + every)
        self._meter.begin("measuring", len(self._fixes), "fixes")
        results = await asyncio.gather(*(self._run_with(number, tests) for number, tests in enumerate(wanted)))
        made = list[FixRuns]()
        effects = {}
        for entry, tests, concern, run in zip(self._fixes, wanted, concerned, results, strict=True):
            # What a fix builds on is another fix, so that its tree was just measured.
            known = await self._run_on(entry.before, tests) if entry.before and not isinstance(run, str) else before
            if isinstance(run, str) or isinstance(known, str):
                why_not = run if isinstance(run, str) else str(known)
                effects[entry.fix.chosen.commit] = reported_effect(entry.fix, why_not)
            else:
                known = replace(
                    known, outcomes={test: known.outcomes[test] for test in tests if test in known.outcomes}
                )
                made.append(FixRuns(entry, known, run, concern))
        self._meter.begin("looking for flaky tests")
        flaky = self._flaky = await self._find_flaky(before, made)
        if flaky:
            self._progress(f"{len(flaky)} flaky: {', '.join(sorted(flaky))}")
        for runs in made:
            effect = effects[runs.fix.chosen.commit] = await self._effect(runs)
            self._progress(f"{runs.fix.chosen.subject}: turns {_count(len(effect.turned_green))} green")
        return effects

    async def _look_at_all(self, tests: Sequence[str]) -> tuple[TestRun, str]:
        """Run all tests without any fix; where there are many fixes, look also what each test runs."""
        if len(self._fixes) < FIXES_WORTH_TRACING:
            return await self._run_before(tests)
        (before, why_not), traced = await asyncio.gather(self._run_before(tests), self._run_traced(tests))
        if traced is not None and not why_not:
            self._concerns = Concerns(self._space, self._tree_before, traced, before)
        return before, why_not

    async def _run_traced(self, tests: Sequence[str]) -> TracedRun | None:
        if not self._inputs.python or self._seconds_left <= 0:
            return None
        with contextlib.suppress(SwarmError):
            seconds = self._seconds_left * TRACING_SHARE
            return await run_traced(self._copies, self._tree_before, tests, seconds, is_coarse=True)
        return None

    def _concerned_by(self, entry: FixTree) -> Concerned:
        if self._concerns is None or entry.before:
            return ALL_POSSIBLE
        return self._concerns.of(entry.fix.chosen.paths, entry.tree)

    async def _effect(self, runs: FixRuns) -> Effect:
        own = [test for test in runs.fix.tests if test in self._flaky and runs.after.is_green(test)]
        steadied = set(own) - await self._find_varying(runs.entry.tree, own, runs.after, STEADY_RUNS)
        effect = compare_runs(runs.before, runs.after, flaky=self._flaky, steadied=steadied)
        return replace(effect, builds_on=runs.entry.builds_on)

    async def _find_flaky(self, before: TestRun, made: Sequence[FixRuns]) -> set[str]:
        """Return the tests whose result varies: those with an unexpected result are run again on the same tree."""
        unexpected = unexpected_changes(made)
        searches = [self._find_varying(self._tree_before, list(unexpected), before, FLAKY_RUNS)]
        for number, runs in enumerate(made):
            tests = [test for test, place in unexpected.items() if place == number]
            searches.append(self._find_varying(runs.entry.tree, tests, runs.after, FLAKY_RUNS))
        return set[str]().union(*await asyncio.gather(*searches))

    async def add_breakages(
        self, effects: Mapping[str, Effect], broken: Sequence[str], branch: Sequence[FixTree]
    ) -> dict[str, Effect]:
        """Find on the finished branch, as `git bisect` would, which fix breaks tests that were green before.

        Return the effects with these tests added to what the fixes break.
        """
        on_branch = {entry.fix.chosen.commit for entry in branch}
        known = {test for commit, effect in effects.items() if commit in on_branch for test in effect.broken}
        tests = [test for test in broken if test not in self._flaky | known][:MAX_BROKEN_TESTS]
        updated = dict(effects)
        if not tests or not branch:
            return updated
        self._progress(f"looks which fix breaks {_count(len(tests))}")
        self._meter.begin(f"looking which fix breaks {_count(len(tests))}")
        before, _ = await self._run_before(tests)
        green = [test for test in tests if before.is_green(test)]
        varying = await self._find_varying(self._tree_before, green, before, STEADY_RUNS)
        steady = [test for test in green if test not in varying]
        for test, position in (await self._bisect(steady, branch, 0, len(branch) - 1)).items():
            commit = branch[position].fix.chosen.commit
            updated[commit] = replace(updated[commit], broken=(*updated[commit].broken, test))
        return updated

    async def _bisect(self, tests: Sequence[str], branch: Sequence[FixTree], first: int, last: int) -> dict[str, int]:
        """Return for each test the step of the branch that turns it red: not before `first`, not after `last`."""
        if not tests or first == last:
            return dict.fromkeys(tests, first)
        middle = (first + last) // 2
        try:
            run = await self._copies.run(branch[middle].tree, tests, self._seconds_left)
        except SwarmError:
            return {}
        red = [test for test in tests if not run.is_green(test)]
        green = [test for test in tests if run.is_green(test)]
        parts = self._bisect(red, branch, first, middle), self._bisect(green, branch, middle + 1, last)
        early, late = await asyncio.gather(*parts)
        return early | late

    async def _run_before(self, tests: Sequence[str]) -> tuple[TestRun, str]:
        """Run tests without any fix; return why nothing can be measured too, or ""."""
        if self._inputs.measure_seconds <= 0:
            return TestRun({}), "measuring is switched off"
        if not self._inputs.python:
            return TestRun({}), "no Python of the project is known"
        if self._seconds_left <= 0:
            return TestRun({}), "there was no time left"
        try:
            before = await self._copies.run(self._tree_before, tests, self._seconds_left)
        except SwarmError as error:
            return TestRun({}), plain(error.message, 200)
        return before, "" if before.outcomes else before.complaint or "pytest reported no test"

    async def _run_with(self, number: int, tests: Sequence[str]) -> TestRun | str:
        """Run tests with one fix; return the reason where that was not possible."""
        try:
            return await self._run_where_possible(number, tests)
        finally:
            self._meter.advance()

    async def _run_where_possible(self, number: int, tests: Sequence[str]) -> TestRun | str:
        entry = self._fixes[number]
        foreign = {test.test for test in self._inputs.tests if test.has_foreign_imports}
        if foreign.intersection(entry.fix.tests):
            return "its tests ran against the user's checkout"
        return await self._run_on(entry.tree, tests) if number < MAX_FIXES else "there was no time left"

    async def _run_on(self, tree: str, tests: Sequence[str]) -> TestRun | str:
        if not tests:
            return TestRun({})
        if self._seconds_left <= 0:
            return "there was no time left"
        try:
            after = await self._copies.run(tree, tests, self._seconds_left)
        except SwarmError as error:
            return plain(error.message, 200)
        return after if after.outcomes else after.complaint or "pytest reported no test"

    async def _find_varying(self, tree: str, tests: Sequence[str], known: TestRun, times: int) -> set[str]:
        """Run tests on a tree a few times more; return those with different outcomes."""
        if not tests:
            return set()

        async def run_again() -> Mapping[str, str]:
            with contextlib.suppress(SwarmError):
                if self._seconds_left > 0:
                    return (await self._copies.run_uncached(tree, tests, self._seconds_left)).outcomes
            return {}

        again = await asyncio.gather(*(run_again() for _ in range(times)))
        first = known.outcomes
        return {test for test in tests if any(run.get(test, first.get(test)) != first.get(test) for run in again)}

    @property
    def _seconds_left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


def tests_that_may_turn_green(inputs: IntegratorInputs, fixes: Sequence[DistinctFix]) -> list[str]:
    """Return the tests that a fix may turn green, its own agents' first; what was not tested here is left out."""
    own = {test for fix in fixes for test in fix.tests}
    red = (Result.IMPL_FIX, Result.UNRESOLVED, Result.BLOCKED, Result.FAILED)
    red_results = {result.value for result in red}
    tests = [
        test.test
        for test in inputs.tests
        if not test.has_foreign_imports and (test.test in own or test.result in red_results)
    ]
    return sorted(tests, key=lambda test: test not in own)[:MAX_RED_TESTS]


def other_tests(inputs: IntegratorInputs, likely: Collection[str]) -> list[str]:
    """Return the other tests of the sweep, which a fix may break; none where they are too many to run all of them."""
    known = frozenset(likely)
    others = [test.test for test in inputs.tests if not test.has_foreign_imports and test.test not in known]
    return others if len(others) <= MAX_OTHER_TESTS else []


def unexpected_changes(made: Sequence[FixRuns]) -> dict[str, int]:
    """Return the tests whose results may be luck, each with the place of the first run that suggests it.

    Unexpected is a change with a fix that has nothing to do with the test, and a test that is green without its fix.
    That a fix turns the test of another one is expected when both change the same file.
    """
    paths: dict[str, set[str]] = {}
    for runs in made:
        for test in runs.fix.tests:
            paths.setdefault(test, set()).update(runs.fix.chosen.paths)
    unexpected: dict[str, int] = {}
    for place, runs in enumerate(made):
        fix, before = runs.fix, runs.before
        for test in before.outcomes:
            is_changed = before.is_green(test) != runs.after.is_green(test)
            is_own = test in fix.tests
            is_related = test in runs.concerned.seen or not paths.get(test, set()).isdisjoint(fix.chosen.paths)
            is_green_without = is_own and before.is_green(test) and not runs.entry.builds_on
            if (is_changed and not is_own and not is_related) or is_green_without:
                unexpected.setdefault(test, place)
    return unexpected


def compare_runs(
    before: TestRun, after: TestRun, *, flaky: Collection[str] = (), steadied: Collection[str] = ()
) -> Effect:
    """Return what a fix does, from the same tests without and with it.

    Flaky tests are left out, but for those in `steadied`, which fail no more with the fix: they count as turned green.
    """
    compared = [test for test in before.outcomes if test not in flaky]
    green = [test for test in compared if not before.is_green(test) and after.is_green(test)]
    red = [test for test in compared if before.is_green(test) and after.outcomes.get(test) in (None, "failed")]
    return Effect(turned_green=(*green, *sorted(steadied)), broken=tuple(red), flaky=tuple(sorted(steadied)))


def _count(tests: int) -> str:
    return "1 test" if tests == 1 else f"{tests} tests"
