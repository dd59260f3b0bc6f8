"""Measures what each fix alone does to the tests: a few pytest calls in scratch copies, bounded, never made twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
GREENS_MEASURED: Final = 12
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

    def __init__(self, repository: Repository, inputs: IntegratorInputs, count: int = COPIES_AT_ONCE) -> None:
        self._repository = repository
        self._inputs = inputs
        self._arguments = {test.test: test.argument or test.test for test in inputs.tests}
        self._cache = ResultCache.read(inputs.cache)
        self._folder = Path(tempfile.mkdtemp(prefix="swarm-scratch-"))
        self._free: asyncio.Queue[int] = asyncio.Queue()
        for number in range(max(1, min(count, os.cpu_count() or 1))):
            self._free.put_nowait(number)

    async def run(self, commit: str, tree: str, tests: Sequence[str], timeout: float) -> TestRun:
        """Run tests on a commit; those that were run on its tree before are not run again."""
        known = self._cache.results.get(tree, {})
        wanted = [test for test in tests if test not in known]
        complaint = ""
        if wanted:
            async with self._copy_of(commit) as copy:
                made = await run_chosen_tests(
                    self._inputs.python,
                    copy,
                    {test: self._arguments.get(test, test) for test in wanted},
                    plugin_folder=PLUGIN_FOLDER,
                    folder=self._inputs.folder,
                    import_roots=self._inputs.import_roots,
                    options=self._inputs.pytest_options,
                    timeout=timeout,
                )
            self._cache.put(tree, made.outcomes)
            complaint = made.complaint
            known = self._cache.results.get(tree, {})
        return TestRun({test: known[test] for test in tests if test in known}, complaint)

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
    deadline = time.monotonic() + inputs.measure_seconds
    effects: dict[str, Effect] = {}
    why_not = _why_not_at_all(inputs)
    reds, greens = tests_concerned(inputs, [trial.fix for trial in trials])
    before = TestRun({})
    if not why_not and trials:
        progress(f"runs {len(reds) + len(greens)} tests without any fix")
        try:
            before = await copies.run(ground.commit, ground.tree, [*reds, *greens], _left(deadline))
        except SwarmError as error:
            why_not = plain(error.message, 200)
        if not before.outcomes and not why_not:
            why_not = before.complaint or "pytest reported no test"
    foreign = {test.test for test in inputs.tests if test.has_foreign_imports}

    async def measure(number: int, trial: Trial) -> None:
        key = trial.fix.chosen.commit
        own_foreign = foreign.intersection(trial.fix.tests)
        if why_not or own_foreign or number >= FIXES_MEASURED or _left(deadline) <= 0:
            reason = "its tests ran against the user's checkout" if own_foreign else "there was no time left"
            effects[key] = reported_effect(trial.fix, why_not or reason)
            return
        try:
            after = await copies.run(trial.commit, trial.tree, [*reds, *greens], _left(deadline))
        except SwarmError as error:
            effects[key] = reported_effect(trial.fix, plain(error.message, 200))
            return
        effects[key] = compare_runs(trial.fix, before, after)
        progress(f"{trial.fix.chosen.subject}: {len(effects[key].turned_green)} red -> green")

    await asyncio.gather(*(measure(number, trial) for number, trial in enumerate(trials)))
    return effects


def compare_runs(fix: FoldedFix, before: TestRun, after: TestRun) -> Effect:
    """Give what a fix does, from the same tests without and with it."""
    if not after.outcomes:
        return reported_effect(fix, after.complaint or "pytest reported no test")
    return Effect(
        turned_green=tuple(test for test in before.outcomes if not before.is_green(test) and after.is_green(test)),
        broken=tuple(
            test
            for test in before.outcomes
            if before.is_green(test) and after.outcomes.get(test, "missing") in ("failed", "missing")
        ),
        flaky=tuple(test for test in fix.tests if before.is_green(test)),
    )


def _why_not_at_all(inputs: IntegratorInputs) -> str:
    if inputs.measure_seconds <= 0:
        return "measuring is switched off"
    return "" if inputs.python else "no Python of the project is known"


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
