"""Measures the strength of changed tests: runs the old and the new tests on mutants of the program.

All runs are in scratch copies, and together take at most as long as sixty runs of the changed tests.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.adapters.pytest import TestRun
from swarm_tui.errors import SwarmError
from swarm_tui.model.formatting import Progress, counted, seconds_left
from swarm_tui.model.test_strength import TestStrength
from swarm_tui.model.text import plain
from swarm_tui.strength.mutants import Mutant, MutantRound, apply_mutants, choose_mutants, mutants_of, plan_rounds
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.traced import Place, TracedRun, run_traced

BUDGET: Final = 60.0
"""Maximum time of all runs, as a multiple of one run of the changed tests."""
_LEAST_TIMEOUT: Final = 5.0
_CALL_TIMEOUT: Final = 900.0
_MISSED_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class MeasuredTrees:
    """The trees to run tests on."""

    base: str
    """The old program with the old tests."""
    tip: str
    """The new program with the new tests."""
    old_tests: str
    """The new program with the old tests."""
    old_program: str
    """The old program with the new tests."""


@dataclass(frozen=True, slots=True)
class MeasuredTest:
    """One test to measure, with its pytest ids now and before; "" if it does not exist."""

    strength: TestStrength
    after: str
    before: str = ""


OnProgress = Callable[[Progress], None]


def measuring_progress(done: int = 0, total: int = 0, left: float | None = None) -> Progress:
    """Return the progress of a measurement."""
    return Progress("test strength", done, total, "runs", left) if total else Progress("tracing the changed tests")


@dataclass(slots=True)
class _Kills:
    before: set[Mutant] = field(default_factory=set)
    after: set[Mutant] = field(default_factory=set)
    tried: list[Mutant] = field(default_factory=list)


@dataclass(slots=True)
class StrengthMeasurement:
    """One measurement of some changed tests. It can be cancelled at any time and leaves nothing behind."""

    space: ObjectSpace
    copies: TestCopies
    trees: MeasuredTrees
    tests: Sequence[MeasuredTest]
    is_program: Callable[[str], bool]
    """Whether mutants may be created in a path."""
    on_progress: OnProgress
    budget: float = BUDGET
    clock: Callable[[], float] = time.monotonic
    _spent: float = 0.0
    _once: float = 0.0
    _covered: dict[str, set[Place]] = field(default_factory=lambda: defaultdict(set))
    _kills: dict[str, _Kills] = field(init=False)

    def __post_init__(self) -> None:
        self.tests = [test for test in self.tests if test.after]
        self._kills = {test.after: _Kills() for test in self.tests}

    @property
    def cost(self) -> float:
        """Return the elapsed time as a multiple of one run of the changed tests."""
        return self._spent / self._once if self._once else 0.0

    async def measure(self) -> list[TestStrength]:
        """Return the measured strength of each test."""
        if not self.tests:
            return []
        self.on_progress(measuring_progress())
        now_names = [test.after for test in self.tests]
        old_names = [test.before for test in self.tests if test.before]
        plain_run = await self._run(self.trees.tip, now_names)
        self._once = max(self._spent, 0.05)
        now = await self._run_traced(self.trees.tip, now_names)
        old = await self._run_traced(self.trees.old_tests, old_names)
        base = await self._run(self.trees.base, old_names)
        without_fix = await self._run(self.trees.old_program, now_names)
        steady = [test for test in self.tests if plain_run.is_green(test.after) and now.is_green(test.after)]
        comparable = {test.after for test in steady if test.before and old.is_green(test.before)}
        faults = await asyncio.to_thread(self._faults_in_covered)
        covered = {test.after: self._covered[test.after] for test in steady}
        chosen = choose_mutants(faults, covered)
        rounds = plan_rounds(chosen, covered)
        await self._run_rounds(rounds, {test.after: test.before for test in steady if test.after in comparable})
        return [
            self._strength_of(
                test, plain_run, base, old, without_fix, test.after in comparable, chosen.get(test.after, [])
            )
            for test in self.tests
        ]

    # Runs

    async def _run(self, tree: str, tests: Sequence[str]) -> TestRun:
        if not tests:
            return TestRun({})
        return await self._timed(tree, lambda: self.copies.run_uncached(tree, tests, _CALL_TIMEOUT))

    async def _run_traced(self, tree: str, tests: Sequence[str]) -> TestRun:
        """Run tests and add the lines that they cover, by their current names."""
        if not tests:
            return TestRun({})
        name_now = {name: test.after for test in self.tests for name in (test.before, test.after) if name}
        traced = TracedRun(TestRun({}))

        async def run() -> TestRun:
            nonlocal traced
            traced = await run_traced(self.copies, tree, tests, _CALL_TIMEOUT)
            return traced.run

        run_result = await self._timed(tree, run)
        for test, places in traced.lines.items():
            if (now := name_now.get(test)) is not None:
                self._covered[now].update(place for place in places if self.is_program(place[0]))
        return run_result

    async def _timed(self, tree: str, run: Callable[[], Awaitable[TestRun]]) -> TestRun:
        async with self.copies.checked_out(tree):
            pass  # The time of check-out and set-up of a copy is not part of the cost of a test run.
        started = self.clock()
        try:
            return await run()
        except SwarmError as error:
            return TestRun({}, plain(error.message, 200), is_complete=False)
        finally:
            self._spent += self.clock() - started

    async def _run_rounds(self, rounds: Sequence[MutantRound], old_names: Mapping[str, str]) -> None:
        started, done = time.monotonic(), 0
        slots = asyncio.Semaphore(self.copies.count)

        async def run(number: int) -> None:
            nonlocal done
            async with slots:
                await self._run_round(rounds[number], old_names)
            done += 1
            left = seconds_left(done, len(rounds), time.monotonic() - started)
            self.on_progress(measuring_progress(done, len(rounds), left))

        tasks = [asyncio.create_task(run(number)) for number in range(len(rounds))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_round(self, faults: MutantRound, old_names: Mapping[str, str]) -> None:
        """Run the old and the new tests of a round on the program with its mutants."""
        # Each concurrent round makes two runs, so both are counted as spent when it begins.
        if self._spent + 2.5 * self.copies.count * self._once > self.budget * self._once:
            return
        now_names = faults.all_tests
        now = await self._run_with(self.trees.tip, faults, now_names)
        if len(faults.tests) > 1 and not now.outcomes.keys() >= set(now_names):
            # One of the mutants crashed pytest, so the others have no result.
            for fault, tests in faults.tests.items():
                await self._run_round(MutantRound({fault: tests}), old_names)
            return
        compared = [test for test in now_names if test in old_names]
        old = await self._run_with(self.trees.old_tests, faults, [old_names[test] for test in compared])
        for fault, tests in faults.tests.items():
            for test in tests:
                kills = self._kills[test]
                kills.tried.append(fault)
                if not now.is_green(test):
                    kills.after.add(fault)
                if test in old_names and not old.is_green(old_names[test]):
                    kills.before.add(fault)

    async def _run_with(self, tree: str, faults: MutantRound, tests: Sequence[str]) -> TestRun:
        if not tests:
            return TestRun({})
        changed = await asyncio.to_thread(self._tree_with, tree, faults)
        cached = self.copies.known(changed, tests)
        if cached is not None:
            return cached
        timeout = f"{max(_LEAST_TIMEOUT, 3 * self._once):.0f}"
        limit = {"SWARM_TEST_TIMEOUT": timeout}
        return await self._timed(
            changed, lambda: self.copies.run(changed, tests, _CALL_TIMEOUT, variables=lambda _: limit)
        )

    # Trees

    def _tree_with(self, tree: str, faults: MutantRound) -> str:
        entries: dict[str, TreeEntry | None] = {}
        for path, found in faults.by_file().items():
            entry = self.space.entry(self.trees.tip, path)
            assert entry is not None, "mutants were found in it"
            blob = self.space.write("blob", apply_mutants(self.space.read(entry.id)[1], found))
            entries[path] = TreeEntry(entry.mode, blob)
        return self.space.with_entries(tree, entries)

    def _faults_in_covered(self) -> list[Mutant]:
        lines: dict[str, set[int]] = defaultdict(set)
        for places in self._covered.values():
            for path, line in places:
                lines[path].add(line)
        found: list[Mutant] = []
        for path in sorted(lines):
            entry = self.space.entry(self.trees.tip, path)
            if entry is not None and entry.mode.startswith("100"):
                found += mutants_of(path, self.space.read(entry.id)[1], lines[path])
        return found

    # Results

    def _strength_of(
        self,
        test: MeasuredTest,
        now: TestRun,
        base: TestRun,
        old: TestRun,
        without_fix: TestRun,
        is_comparable: bool,
        chosen: Sequence[Mutant],
    ) -> TestStrength:
        kills = self._kills[test.after]
        missed = [fault.text for fault in chosen if fault in kills.before - kills.after]
        return test.strength.model_copy(
            update={
                "is_measured": True,
                "faults": len(kills.tried),
                "kills_before": len(kills.before) if is_comparable and kills.tried else None,
                "kills_after": len(kills.after) if kills.tried else None,
                "missed": tuple(missed[:_MISSED_NAMED]),
                "fails_without_fix": _fails(without_fix, test.after),
                "failed_before": bool(_fails(base, test.before) and old.is_green(test.before)) if test.before else None,
                "note": self._note(test, now, old, kills, chosen),
            }
        )

    def _note(self, test: MeasuredTest, now: TestRun, old: TestRun, kills: _Kills, chosen: Sequence[Mutant]) -> str:
        if not now.is_green(test.after):
            outcome = now.outcomes.get(test.after)
            return f"it is {outcome} on the branch" if outcome else f"not run: {now.complaint or 'no result'}"
        if not self._covered[test.after]:
            return "it executes no line of the program"
        if not chosen:
            return "no mutant can be created in the lines that it covers"
        if len(kills.tried) < len(chosen):
            skipped = counted(len(chosen) - len(kills.tried), "fault")
            return f"{skipped} skipped: the time limit of {self.budget:.0f} runs was reached"
        if test.before and not old.is_green(test.before):
            return "the old test fails on the fixed program"
        return ""


def _fails(run: TestRun, test: str) -> bool | None:
    outcome = run.outcomes.get(test)
    return None if outcome is None else outcome == "failed"
