"""What each fix does to the tests."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePosixPath
from typing import Final

from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.pytest import TestRun
from swarm_tui.errors import SwarmError
from swarm_tui.integrator.build import FixTree
from swarm_tui.integrator.duplicates import DistinctFix
from swarm_tui.integrator.inputs import IntegratorInputs
from swarm_tui.integrator.report import reported_effect
from swarm_tui.integrator.tip import TESTS, Meter
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import Result
from swarm_tui.model.text import plain
from swarm_tui.review.ranking import Effect
from swarm_tui.testing.affected import MODULE, compare_sources, functions_at
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.measuring_files import ChangedFiles, why_not_measured
from swarm_tui.testing.traced import Place, TracedRun, run_traced, without_case


@dataclass(frozen=True, slots=True)
class RelatedTests:
    """The tests that a fix may affect."""

    seen: frozenset[str]
    """Tests that executed changed code."""
    possible: frozenset[str] | None = frozenset()
    """Tests whose executed code is unknown. None: the fix may affect all tests."""

    def may_be(self, test: str) -> bool:
        return self.possible is None or test in self.possible or test in self.seen


ALL_POSSIBLE: Final = RelatedTests(frozenset(), None)


class Concerns:
    """The functions that each test executed on the tree without any fix."""

    def __init__(self, space: ObjectSpace, tree: str, traced: TracedRun, before: TestRun) -> None:
        self._space = space
        self._tree = tree
        self._prepared = _by_file(traced.prepared)
        self._lines = {test: _by_file(traced.lines.get(without_case(test), ())) for test in before.outcomes}
        self._unknown = frozenset(
            test
            for test, outcome in before.outcomes.items()
            # If nothing of the test's own file was recorded, another tracer has replaced ours.
            if test.partition("::")[0] not in _names(self._lines[test])
            or without_case(test) in traced.starting_programs
            or traced.run.outcomes.get(test) != outcome
        )
        self._source = cache(self._read_source)

    def of(self, paths: Iterable[str], tree: str) -> RelatedTests:
        """Return the tests that may be affected by a fix that changes these files and results in `tree`.

        A test that executes no changed function keeps its result.
        """
        affected: set[str] = set()
        for path in paths:
            parts = self._changed_functions(path, tree)
            if parts is None or parts & self._functions(path, self._prepared):
                return ALL_POSSIBLE
            affected.update(test for test, lines in self._lines.items() if parts & self._functions(path, lines))
        return RelatedTests(frozenset(affected), self._unknown)

    def _changed_functions(self, path: str, tree: str) -> frozenset[str] | None:
        """Return the changed functions of a file; None if more than functions changed."""
        if PurePosixPath(path).name == "conftest.py":
            return None
        change = compare_sources(path, self._source(self._tree, path), self._source(tree, path))
        return None if change.parts is None or MODULE in change.parts else change.parts

    def _functions(self, path: str, lines: Mapping[str, frozenset[int]]) -> frozenset[str]:
        source = self._source(self._tree, path)
        return functions_at(source, lines[path]) if source is not None and path in lines else frozenset()

    def _read_source(self, tree: str, path: str) -> str | None:
        entry = self._space.entry(tree, path)
        if entry is None or not entry.mode.startswith("100"):
            return None
        return self._space.read(entry.id)[1].decode("utf-8", "replace")


def _by_file(places: Collection[Place]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for path, line in places:
        found.setdefault(path, set()).add(line)
    return {path: frozenset(lines) for path, lines in found.items()}


def _names(lines: Mapping[str, object]) -> frozenset[str]:
    """Return the last parts of paths. pytest's paths start at its rootdir, which may be below the top of the copy."""
    every = (path.split("/") for path in lines)
    return frozenset("/".join(parts[start:]) for parts in every for start in range(len(parts)))


MAX_FIXES: Final = 200
MAX_RED_TESTS: Final = 300
MAX_BROKEN_TESTS: Final = 50
MAX_OTHER_TESTS: Final = 1_000
FIXES_WORTH_TRACING: Final = 4
"""With this number of fixes or more, a traced run of all tests saves time."""
TRACING_SHARE: Final = 0.3
"""The maximum share of the remaining time for the traced run."""
# Runs without a fix and with the fix of the unexpected result. Detects 63 of 64 tests that fail every other time.
FLAKY_RUNS: Final = 3
STEADY_RUNS: Final = 2
TIME_LIMIT_REACHED: Final = "the time limit was reached"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FixRuns:
    """The same tests without and with a fix."""

    entry: FixTree
    before: TestRun
    after: TestRun
    concerned: RelatedTests = ALL_POSSIBLE

    @property
    def fix(self) -> DistinctFix:
        return self.entry.fix


@dataclass(slots=True)
class FixMeasurement:
    """Measures fixes against one tree without any of them, within one time limit."""

    space: ObjectSpace
    copies: TestCopies
    inputs: IntegratorInputs
    tree_before: str
    """The base with all test and doc fixes; each of `fixes` is alone on top of it."""
    fixes: Sequence[FixTree]
    progress: Progress
    meter: Meter
    _deadline: float = field(init=False)
    _flaky: set[str] = field(default_factory=set)
    _concerns: Concerns | None = None
    _doubts: Sequence[tuple[str, ...]] = ()
    """How each fix may tamper with test results."""

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.inputs.measure_seconds

    async def measure(self) -> dict[str, Effect]:
        """Return the effect of each fix by its chosen commit. The effect of an unmeasured fix has the reason."""
        if not self.fixes:
            return {}
        candidates = tests_that_may_turn_green(self.inputs, [entry.fix for entry in self.fixes])
        others = other_tests(self.inputs, candidates) if len(self.fixes) >= FIXES_WORTH_TRACING else []
        self.progress(f"measuring {len(self.fixes)} fixes with {counted(len(candidates), 'test')}")
        every = len(self.inputs.tests)
        self.meter.expect(len(candidates) + len(others) + len(self.fixes) * len(candidates) + every)
        self.meter.begin("running the tests without any fix", len(candidates) + len(others), TESTS)
        before = await self._look_at_all([*candidates, *others])
        if isinstance(before, str):
            return {entry.fix.chosen.id: reported_effect(entry.fix, before) for entry in self.fixes}
        concerned = [await asyncio.to_thread(self._concerned_by, entry) for entry in self.fixes]
        affected = [
            [test for test in candidates if test in entry.fix.tests or concern.may_be(test)]
            + [test for test in others if test in concern.seen]
            for entry, concern in zip(self.fixes, concerned, strict=True)
        ]
        self.meter.expect(sum(map(len, affected)) + every)
        self.meter.begin("measuring", len(self.fixes), "fixes")
        changes = [ChangedFiles(entry.fix.chosen.changes) for entry in self.fixes]
        self._doubts = await asyncio.to_thread(why_not_measured, self.space.repository, changes)
        results = await asyncio.gather(*(self._run_with(number, tests) for number, tests in enumerate(affected)))
        all_runs = list[FixRuns]()
        effects = {}
        for entry, tests, concern, run in zip(self.fixes, affected, concerned, results, strict=True):
            # The parent of the fix is another fix, whose tree was just measured.
            known = await self._run_on(entry.before, tests) if entry.before and not isinstance(run, str) else before
            if isinstance(run, str):
                effects[entry.fix.chosen.id] = reported_effect(entry.fix, run)
            elif isinstance(known, str):
                effects[entry.fix.chosen.id] = reported_effect(entry.fix, known)
            else:
                known = replace(
                    known, outcomes={test: known.outcomes[test] for test in tests if test in known.outcomes}
                )
                all_runs.append(FixRuns(entry, known, run, concern))
        self.meter.begin("looking for flaky tests")
        flaky = self._flaky = await self._find_flaky(before, all_runs)
        if flaky:
            self.progress(f"{len(flaky)} flaky: {', '.join(sorted(flaky))}")
        for runs in all_runs:
            effect = effects[runs.fix.chosen.id] = await self._effect(runs)
            self.progress(f"{runs.fix.chosen.subject}: {counted(len(effect.turned_green), 'test')} fixed")
        return effects

    async def _look_at_all(self, tests: Sequence[str]) -> TestRun | str:
        """Run all tests without any fix; with many fixes, also trace the code that each test executes.

        Return the reason if nothing can be measured.
        """
        before, traced = await asyncio.gather(self._run_on(self.tree_before, tests), self._run_traced(tests))
        if isinstance(before, TestRun) and not before.outcomes:
            return "pytest reported no tests"
        if isinstance(before, TestRun) and traced is not None:
            self._concerns = Concerns(self.space, self.tree_before, traced, before)
        return before

    async def _run_traced(self, tests: Sequence[str]) -> TracedRun | None:
        if len(self.fixes) < FIXES_WORTH_TRACING or not self.inputs.python or self._seconds_left <= 0:
            return None
        with contextlib.suppress(SwarmError):
            seconds = self._seconds_left * TRACING_SHARE
            return await run_traced(self.copies, self.tree_before, tests, seconds, is_coarse=True)
        return None

    def _concerned_by(self, entry: FixTree) -> RelatedTests:
        if self._concerns is None or entry.before:
            return ALL_POSSIBLE
        return self._concerns.of(entry.fix.chosen.paths, entry.tree)

    async def _effect(self, runs: FixRuns) -> Effect:
        own = [test for test in runs.fix.tests if test in self._flaky and runs.after.is_green(test)]
        steadied = set(own) - await self._find_varying(runs.entry.tree, own, runs.after, STEADY_RUNS)
        effect = compare_runs(runs.before, runs.after, flaky=self._flaky, steadied=steadied)
        return effect.model_copy(update={"builds_on": runs.entry.builds_on})

    async def _find_flaky(self, before: TestRun, all_runs: Sequence[FixRuns]) -> set[str]:
        """Return flaky tests: those with unexpected results are run again on the same tree."""
        unexpected = unexpected_changes(all_runs)
        searches = [self._find_varying(self.tree_before, list(unexpected), before, FLAKY_RUNS)]
        for number, runs in enumerate(all_runs):
            tests = [test for test, place in unexpected.items() if place == number]
            searches.append(self._find_varying(runs.entry.tree, tests, runs.after, FLAKY_RUNS))
        return set[str]().union(*await asyncio.gather(*searches))

    async def add_breakages(
        self, effects: Mapping[str, Effect], broken: Sequence[str], branch: Sequence[FixTree]
    ) -> dict[str, Effect]:
        """Find on the finished branch, like `git bisect`, the fix that breaks each test that was green before.

        Return the effects with these tests added.
        """
        on_branch = {entry.fix.chosen.id for entry in branch}
        already_broken = {test for commit, effect in effects.items() if commit in on_branch for test in effect.broken}
        tests = [test for test in broken if test not in self._flaky | already_broken][:MAX_BROKEN_TESTS]
        updated = dict(effects)
        if not tests or not branch:
            return updated
        self.progress(f"finding the fix that breaks {counted(len(tests), 'test')}")
        self.meter.begin(f"finding the fix that breaks {counted(len(tests), 'test')}")
        before = await self._run_on(self.tree_before, tests)
        if isinstance(before, str):
            return updated
        green = [test for test in tests if before.is_green(test)]
        varying = await self._find_varying(self.tree_before, green, before, STEADY_RUNS)
        steady = [test for test in green if test not in varying]
        for test, position in (await self._bisect(steady, branch, 0, len(branch) - 1)).items():
            commit = branch[position].fix.chosen.id
            updated[commit] = updated[commit].model_copy(update={"broken": (*updated[commit].broken, test)})
        return updated

    async def _bisect(self, tests: Sequence[str], branch: Sequence[FixTree], first: int, last: int) -> dict[str, int]:
        """Return the step of the branch that breaks each test: not before `first`, not after `last`."""
        if not tests or first == last:
            return dict.fromkeys(tests, first)
        middle = (first + last) // 2
        try:
            run = await self.copies.run(branch[middle].tree, tests, self._seconds_left)
        except SwarmError:
            return {}
        red = [test for test in tests if not run.is_green(test)]
        green = [test for test in tests if run.is_green(test)]
        parts = self._bisect(red, branch, first, middle), self._bisect(green, branch, middle + 1, last)
        early, late = await asyncio.gather(*parts)
        return early | late

    async def _run_with(self, number: int, tests: Sequence[str]) -> TestRun | str:
        """Run tests with one fix; return the reason if that is not possible."""
        entry = self.fixes[number]
        foreign = {test.test for test in self.inputs.tests if test.has_foreign_imports}
        try:
            if foreign.intersection(entry.fix.tests):
                return "its tests imported from the user's checkout"
            if self._doubts[number]:
                return ", ".join(self._doubts[number])
            return await self._run_on(entry.tree, tests) if number < MAX_FIXES else TIME_LIMIT_REACHED
        finally:
            self.meter.advance()

    async def _run_on(self, tree: str, tests: Sequence[str]) -> TestRun | str:
        """Run tests on a tree; return the reason if that is not possible."""
        if self.inputs.measure_seconds <= 0:
            return "measuring is disabled"
        if not self.inputs.python:
            return "the project's Python is unknown"
        if self._seconds_left <= 0:
            return TIME_LIMIT_REACHED
        try:
            run = await self.copies.run(tree, tests, self._seconds_left) if tests else TestRun({})
        except SwarmError as error:
            return plain(error.message, 200)
        return run if run.outcomes or not tests else run.complaint or "pytest reported no tests"

    async def _find_varying(self, tree: str, tests: Sequence[str], first_run: TestRun, times: int) -> set[str]:
        """Run tests on a tree several times; return those with varying results."""
        if not tests:
            return set()

        async def run_again() -> Mapping[str, str]:
            with contextlib.suppress(SwarmError):
                if self._seconds_left > 0:
                    return (await self.copies.run_uncached(tree, tests, self._seconds_left)).outcomes
            return {}

        again = await asyncio.gather(*(run_again() for _ in range(times)))
        first = first_run.outcomes
        return {test for test in tests if any(run.get(test, first.get(test)) != first.get(test) for run in again)}

    @property
    def _seconds_left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


def tests_that_may_turn_green(inputs: IntegratorInputs, fixes: Sequence[DistinctFix]) -> list[str]:
    """Return the tests that a fix may fix, its own agents' first, without those that were not run on this machine."""
    own = {test for fix in fixes for test in fix.tests}
    red = (Result.IMPL_FIX, Result.UNRESOLVED, Result.BLOCKED, Result.ERROR)
    red_results = {result.value for result in red}
    tests = [
        test.test
        for test in inputs.tests
        if not test.has_foreign_imports and (test.test in own or test.result in red_results)
    ]
    return sorted(tests, key=lambda test: test not in own)[:MAX_RED_TESTS]


def other_tests(inputs: IntegratorInputs, candidates: Collection[str]) -> list[str]:
    """Return the other tests of the sweep, which a fix may break; empty if there are too many to run."""
    excluded = frozenset(candidates)
    others = [test.test for test in inputs.tests if not test.has_foreign_imports and test.test not in excluded]
    return others if len(others) <= MAX_OTHER_TESTS else []


def unexpected_changes(all_runs: Sequence[FixRuns]) -> dict[str, int]:
    """Return the tests whose results may be chance, each with the index of the first run that suggests it.

    A result is unexpected if it changes with an unrelated fix, or if the test passes without its fix. A fix for the
    test of another fix is expected if both change the same file.
    """
    paths: dict[str, set[str]] = {}
    for runs in all_runs:
        for test in runs.fix.tests:
            paths.setdefault(test, set()).update(runs.fix.chosen.paths)
    unexpected: dict[str, int] = {}
    for place, runs in enumerate(all_runs):
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
    """Return the effect of a fix from the same tests without and with it.

    Flaky tests are left out, except those in `steadied`, which no longer fail with the fix and count as fixed.
    """
    compared = [test for test in before.outcomes if test not in flaky]
    green = [test for test in compared if not before.is_green(test) and after.is_green(test)]
    red = [test for test in compared if before.is_green(test) and after.outcomes.get(test) in (None, "failed")]
    steady = tuple(sorted(steadied))
    return Effect(turned_green=(*green, *steady), broken=tuple(red), flaky=steady, is_measured=True)
