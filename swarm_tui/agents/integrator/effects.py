"""Measures what each fix alone does to the tests: a few pytest calls in scratch copies, bounded, never made twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.agents.integrator.alike import FoldedFix
from swarm_tui.agents.integrator.inputs import IntegratorInputs
from swarm_tui.agents.integrator.ranking import Effect, reported_effect
from swarm_tui.doors.git import Repository, clone_into
from swarm_tui.doors.process import run_process
from swarm_tui.doors.pytest_runs import TestRun, run_chosen_tests
from swarm_tui.errors import DoorError, SwarmError
from swarm_tui.journal.folder import write_beside
from swarm_tui.model.states import Result
from swarm_tui.model.text import plain

FIXES_MEASURED: Final = 200
REDS_MEASURED: Final = 300
FLAKY_RUNS: Final = 3
GREENS_MEASURED: Final = 8
"""Greens run with each fix, to see what it breaks; the final run sees all."""
COPIES_AT_ONCE: Final = 4
PLUGIN_FOLDER: Final = Path(__file__).resolve().parent.parent / "live"

Progress = Callable[[str], None]


@dataclass(slots=True)
class ResultCache:
    """What tests came to on trees, kept in a file so that repeating an integration runs nothing twice."""

    path: Path | None
    results: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str) -> ResultCache:
        """Read the cache; one that is missing or broken is empty."""
        cache = cls(Path(path) if path else None)
        if cache.path is not None:
            with contextlib.suppress(OSError, ValueError):
                stored = json.loads(cache.path.read_bytes())
                if isinstance(stored, dict):
                    cache.results = {str(tree): dict(results) for tree, results in stored.items()}
        return cache

    def put(self, tree: str, outcomes: Mapping[str, str]) -> None:
        """Remember results, on disk too."""
        self.results.setdefault(tree, {}).update(outcomes)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_beside(self.path, json.dumps(self.results).encode())


class ScratchCopies:
    """A few clones of the repository in which commits are checked out and tested, each used by one run at a time."""

    def __init__(
        self, repository: Repository, inputs: IntegratorInputs, below: Path | None = None, count: int = COPIES_AT_ONCE
    ) -> None:
        self._repository = repository
        self._inputs = inputs
        self._arguments = {test.test: test.argument or test.test for test in inputs.tests}
        self._cache = ResultCache.read(inputs.cache)
        self._folder = Path(tempfile.mkdtemp(prefix="swarm-scratch-", dir=below))
        self._free: asyncio.Queue[int] = asyncio.Queue()
        for number in range(max(1, min(count, os.cpu_count() or 1))):
            self._free.put_nowait(number)

    async def run(self, commit: str, tree: str, tests: Sequence[str], timeout: float) -> TestRun:
        """Run tests on a commit; those that were run on its tree before are not run again."""
        known = self._cache.results.get(tree, {})
        wanted = [test for test in tests if test not in known]
        complaint = ""
        if wanted:
            made = await self.run_anew(commit, wanted, timeout)
            self._cache.put(tree, made.outcomes)
            complaint = made.complaint
            known = self._cache.results.get(tree, {})
        return TestRun({test: known[test] for test in tests if test in known}, complaint)

    async def run_anew(self, commit: str, tests: Sequence[str], timeout: float) -> TestRun:
        """Run tests on a commit, whatever they came to before."""
        async with self._copy_of(commit) as copy:
            return await run_chosen_tests(
                self._inputs.python,
                copy,
                {test: self._arguments.get(test, test) for test in tests},
                plugin_folder=PLUGIN_FOLDER,
                folder=self._inputs.folder,
                import_roots=self._inputs.import_roots,
                options=self._inputs.pytest_options,
                timeout=timeout,
            )

    @contextlib.asynccontextmanager
    async def _copy_of(self, commit: str) -> AsyncIterator[Path]:
        number = await self._free.get()
        copy = self._folder / str(number)
        try:
            if copy.exists():
                clone = Repository.open(copy)
                await asyncio.to_thread(clone.run, "checkout", "--quiet", "--force", "--detach", commit)
                await asyncio.to_thread(clone.run, "clean", "--quiet", "-fd")
            else:
                await asyncio.to_thread(clone_into, self._repository, copy, commit=commit)
                await self._set_up(copy)
            yield copy
        finally:
            self._free.put_nowait(number)

    async def _set_up(self, copy: Path) -> None:
        if self._inputs.setup:
            # The project's own command for a fresh copy, given by the person who started the sweep.
            finished = await run_process(["/bin/sh", "-c", self._inputs.setup], cwd=copy, timeout=1800)
            if finished.code:
                raise DoorError(f"the set-up command failed with code {finished.code} in a fresh copy")

    def close(self) -> None:
        """Remove the copies."""
        shutil.rmtree(self._folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Trial:
    """A fix alone, on top of the test and doc fixes."""

    fix: FoldedFix
    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class Ground:
    """What the fixes are compared with: the base with all test and doc fixes."""

    commit: str
    tree: str


def tests_concerned(inputs: IntegratorInputs, fixes: Sequence[FoldedFix]) -> tuple[list[str], list[str]]:
    """Give the tests that a fix may turn green, and those that it may break; what was not tested here is left out."""
    own = {test for fix in fixes for test in fix.tests}
    open_results = {Result.UNRESOLVED.value, Result.FAILED.value, Result.IMPL_FIX.value}
    sound = [test for test in inputs.tests if not test.has_foreign_imports]
    reds = [test.test for test in sound if test.test in own or test.result in open_results]
    reds.sort(key=lambda test: test not in own)
    files = {test.file for test in sound if test.test in own}
    greens = [test for test in sound if test.result in (Result.CLEAN.value, Result.BETTER.value)]
    greens.sort(key=lambda test: test.file not in files)
    return reds[:REDS_MEASURED], [test.test for test in greens[:GREENS_MEASURED]]


async def measure_effects(
    copies: ScratchCopies, inputs: IntegratorInputs, ground: Ground, trials: Sequence[Trial], progress: Progress
) -> dict[str, Effect]:
    """Give the effect of each fix by its chosen commit; what could not be measured says why."""
    if not trials:
        return {}
    deadline = time.monotonic() + inputs.measure_seconds
    reds, greens = tests_concerned(inputs, [trial.fix for trial in trials])
    tests = [*reds, *greens]
    before, why_not = await _run_ground(copies, inputs, ground, tests, deadline, progress)
    if why_not:
        return {trial.fix.chosen.commit: reported_effect(trial.fix, why_not) for trial in trials}
    foreign = {test.test for test in inputs.tests if test.has_foreign_imports}

    async def run_with(number: int, trial: Trial) -> TestRun | str:
        if foreign.intersection(trial.fix.tests):
            return "its tests ran against the user's checkout"
        if number >= FIXES_MEASURED or _left(deadline) <= 0:
            return "there was no time left"
        try:
            after = await copies.run(trial.commit, trial.tree, tests, _left(deadline))
        except SwarmError as error:
            return plain(error.message, 200)
        green = sum(after.is_green(test) and not before.is_green(test) for test in tests)
        progress(f"{trial.fix.chosen.subject}: {green} red -> green")
        return after if after.outcomes else after.complaint or "pytest reported no test"

    runs = await asyncio.gather(*(run_with(number, trial) for number, trial in enumerate(trials)))
    doubtful = doubtful_tests(before, [(trial.fix, run) for trial, run in zip(trials, runs, strict=True)])
    flaky = await _find_unsteady(copies, ground.commit, doubtful, before, deadline)
    if flaky:
        progress(f"{len(flaky)} flaky: {', '.join(sorted(flaky))}")
    effects = {}
    for trial, run in zip(trials, runs, strict=True):
        own = [test for test in trial.fix.tests if test in flaky]
        if isinstance(run, str):
            effects[trial.fix.chosen.commit] = reported_effect(trial.fix, run)
            continue
        asked = [test for test in own if run.is_green(test)]
        steadied = set(asked) - await _find_unsteady(copies, trial.commit, asked, run, deadline)
        effects[trial.fix.chosen.commit] = compare_runs(before, run, flaky=flaky, steadied=steadied)
    return effects


def doubtful_tests(before: TestRun, runs: Sequence[tuple[FoldedFix, TestRun | str]]) -> list[str]:
    """Give the tests whose results may be luck: they changed, or did not, where nobody had reason to expect it."""
    doubtful: dict[str, None] = {}
    for fix, run in runs:
        if isinstance(run, str):
            continue
        own = set(fix.tests)
        for test in before.outcomes:
            is_changed = before.is_green(test) != run.is_green(test)
            if is_changed != (test in own) and (is_changed or before.is_green(test)):
                doubtful[test] = None
    return list(doubtful)


async def _run_ground(
    copies: ScratchCopies,
    inputs: IntegratorInputs,
    ground: Ground,
    tests: Sequence[str],
    deadline: float,
    progress: Progress,
) -> tuple[TestRun, str]:
    """Run the tests without any fix; give why nothing can be measured, or nothing."""
    if inputs.measure_seconds <= 0:
        return TestRun({}), "measuring is switched off"
    if not inputs.python:
        return TestRun({}), "no Python of the project is known"
    progress(f"runs {len(tests)} tests without any fix")
    try:
        before = await copies.run(ground.commit, ground.tree, tests, _left(deadline))
    except SwarmError as error:
        return TestRun({}), plain(error.message, 200)
    return before, "" if before.outcomes else before.complaint or "pytest reported no test"


async def _find_unsteady(
    copies: ScratchCopies, commit: str, tests: Sequence[str], known: TestRun, deadline: float
) -> set[str]:
    """Run tests on a commit a few times more, and give those that do not always come to the same."""
    if not tests:
        return set()

    async def run_again() -> Mapping[str, str]:
        with contextlib.suppress(SwarmError):
            if _left(deadline) > 0:
                return (await copies.run_anew(commit, tests, _left(deadline))).outcomes
        return {}

    again = await asyncio.gather(*(run_again() for _ in range(FLAKY_RUNS)))
    return {
        test
        for test in tests
        if any(run.get(test, known.outcomes.get(test)) != known.outcomes.get(test) for run in again)
    }


def compare_runs(
    before: TestRun, after: TestRun, *, flaky: Collection[str] = (), steadied: Collection[str] = ()
) -> Effect:
    """Give what a fix does, from the same tests without and with it.

    Flaky tests tell nothing of it, but for those that it has `steadied`: they count as turned green.
    """
    told = [test for test in before.outcomes if test not in flaky]
    green = [test for test in told if not before.is_green(test) and after.is_green(test)]
    red = [test for test in told if before.is_green(test) and after.outcomes.get(test) in (None, "failed")]
    return Effect(turned_green=(*green, *sorted(steadied)), broken=tuple(red), flaky=tuple(sorted(steadied)))


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
