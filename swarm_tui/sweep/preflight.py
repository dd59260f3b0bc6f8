"""Collects and runs tests in a fresh copy before the sweep starts."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.working_tree import ignored_project_files
from swarm_tui.adapters.pytest import Collected, SetUpFailed, TestRun, pytest_argument
from swarm_tui.errors import AdapterError, SwarmError, UsageError
from swarm_tui.model.formatting import counted, named
from swarm_tui.model.options import RunOptions
from swarm_tui.model.results import Baseline, classify, summarize
from swarm_tui.model.text import plain
from swarm_tui.sweep.collect import Found, Progress
from swarm_tui.sweep.preflight_causes import (
    FILES_NAMED,
    Cause,
    CopyFacts,
    cause_in,
    explain,
    find_ignored_modules,
    name_tests,
    refuse_ignored_modules,
)
from swarm_tui.testing.copies import COPIES, TestCopies
from swarm_tui.testing.settings import TestSettings

LONGEST_BASELINE: Final = 1800.0
"""The time limit of a baseline, in seconds. The baseline of tests that were not run by then is unknown."""
LONGEST_TEST: Final = 300.0
"""The time limit of a test, in seconds, if the user gives none."""
LONGEST_ORDER_CHECK: Final = 300.0
"""The longest expected time, in seconds, for which all tests are run in one process."""
_BATCH: Final = 64
_NAMED: Final = 10
_TICK: Final = 0.5

Live = Callable[[str], None]


@dataclass(slots=True)
class BaselineRuns:
    """The outcomes of all runs of each test; "" is an unknown outcome."""

    together: dict[str, list[str]] = field(default_factory=dict)
    """Runs at the same time as other tests, or after others in the same process."""
    alone: dict[str, list[str]] = field(default_factory=dict)
    """Runs in a separate process, without other tests."""
    in_order: Mapping[str, str] = field(default_factory=dict)
    """The outcomes in one process that ran all tests in their order."""
    failures: dict[str, str] = field(default_factory=dict)
    """A line about the last failure of each failed test."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why the outcome of a test is unknown."""
    is_cut: bool = False
    """Whether the time limit was reached."""

    def baseline_of(self, test: str) -> Baseline:
        return classify(self.together.get(test, ()), self.alone.get(test, ()), self.in_order.get(test, ""))


@dataclass(slots=True)
class _BaselineSession:
    """Runs each test `count` times in concurrent copies, then the failed tests as often in a separate process each.

    With one run the copies share the tests; with more, each copy runs all of them at the same time as the others. If
    the time allows, the red tests are run once more after all tests that come before them.
    """

    copies: TestCopies
    tree: str
    count: int
    live: Live
    deadline: float = field(default_factory=lambda: time.monotonic() + LONGEST_BASELINE)
    runs: BaselineRuns = field(default_factory=BaselineRuns)
    total: int = 0
    done: int = 0

    async def run(self, tests: Sequence[str]) -> BaselineRuns:
        runs, workers, started = self.runs, self.copies.count, time.monotonic()
        batches = _in_whole_files(tests)
        self.total = len(tests) * self.count
        shared = deque(batches)
        queues = [shared] * workers if self.count == 1 else [deque(batches) for _ in range(self.count)]
        await asyncio.gather(*(self._work(queue, runs.together) for queue in queues))
        seconds = (time.monotonic() - started) * min(workers, len(batches)) / self.count
        await self._run_alone([test for test, outcomes in runs.together.items() if "failed" in outcomes])
        red = [number for number, test in enumerate(tests) if runs.baseline_of(test) is Baseline.RED]
        if len(batches) > 1 and red and seconds <= LONGEST_ORDER_CHECK:
            runs.in_order = (await self._run(tests[: red[-1] + 1])).outcomes
        return runs

    async def _run_alone(self, tests: Sequence[str]) -> None:
        """Run each test in a separate process: first concurrently, then those that still fail one at a time."""
        self.total += len(tests) * self.count
        first: dict[str, list[str]] = {}
        waiting = deque([test] for test in tests)
        workers = min(self.copies.count, len(tests))
        await asyncio.gather(*(self._work(waiting, first) for _ in range(workers)))
        again = [test for test in tests if workers > 1 and "failed" in first[test]]
        for test in tests:
            (self.runs.together if test in again else self.runs.alone).setdefault(test, []).extend(first[test])
        self.total += len(again)
        for batch in (again, *[tests] * (self.count - 1)):
            await self._work(deque([test] for test in batch), self.runs.alone)

    async def _work(self, queue: deque[list[str]], into: dict[str, list[str]]) -> None:
        while queue:
            batch = queue.popleft()
            run = await self._run(batch)
            for test in batch:
                into.setdefault(test, []).append(run.outcomes.get(test, ""))
                if test not in run.outcomes:
                    self.runs.problems[test] = run.complaint
            self.done += len(batch)
            self.live(f"baseline: {self.done} of {self.total} runs")

    async def _run(self, tests: Sequence[str]) -> TestRun:
        left = self.deadline - time.monotonic()
        if left <= 0:
            self.runs.is_cut = True
            return TestRun({}, "not run within the time limit")
        try:
            run = await self.copies.run_uncached(self.tree, tests, left)
        except SwarmError as error:
            return TestRun({}, error.message)
        self.runs.failures.update(run.failures)
        return run


def _in_whole_files(tests: Sequence[str]) -> list[list[str]]:
    """Return the tests in batches that split no file, because a test may depend on an earlier one of its file."""
    batches: list[list[str]] = [[]]
    for _, group in itertools.groupby(tests, lambda test: test.partition("::")[0]):
        if len(batches[-1]) >= _BATCH:
            batches.append([])
        batches[-1] += group
    return batches


class Preflight:
    """A fresh copy that is created in the background and then compared with the checkout."""

    def __init__(
        self,
        copies: TestCopies,
        repository: Repository,
        base: str,
        options: RunOptions,
        progress: Progress,
        live: Live,
    ) -> None:
        self._copies = copies
        self._repository = repository
        self._base = base
        self._options = options
        self._progress, self._live = progress, live
        self._tree = repository.tree_of(base)
        self._since = time.monotonic()
        # A set-up command needs the project's Python, which is found by collecting.
        self._creation = None if options.setup else asyncio.create_task(self._create())

    async def _create(self) -> None:
        async with self._copies.checked_out(self._tree):
            pass

    async def close(self) -> None:
        if self._creation is not None:
            self._creation.cancel()
            await asyncio.wait([self._creation])
        await self._copies.close()

    async def compare(self, found: Found) -> Found:
        """Return the tests that exist in a copy, with their baselines; raise SwarmError if there are none."""
        self._copies.settings = replace(
            self._copies.settings,
            python=found.python,
            folder=found.folder,
            import_roots=found.import_roots or (".",),
            options=found.run_options,
        )
        with self._ticking("setting up a fresh copy" if self._options.setup else "creating a fresh copy"):
            try:
                await (self._creation or self._create())
            except SetUpFailed as error:
                raise SwarmError("\n  ".join([error.problem, *error.lines]), "correct the --setup command") from None
        status = ["collecting in a fresh copy"]
        with self._ticking(lambda: status[-1]):
            copy, collected, complaint = await self._collect(
                lambda number: status.append(f"{status[0]}, {counted(number, 'test')} so far")
            )
        facts = CopyFacts(
            self._repository,
            self._base,
            copy,
            found.folder,
            found.root,
            found.import_roots,
            self._options.setup or "",
            self._options.is_local,
            self._options.passed_environment,
        )
        here = {test.test for test in collected.tests} if collected is not None else set()
        missing = [(test, file) for test, file, _ in found.tests if test not in here]
        errors = {"": complaint} if collected is None else _errors_by_file(collected, found.root)
        causes = await asyncio.to_thread(explain, missing, errors, here, facts)
        if collected is not None:
            await asyncio.to_thread(find_ignored_modules, facts, collected)
        refuse_ignored_modules(facts)
        kept = _without(found, causes)
        if kept.tests and collected is not None and collected.loaded:
            modules = ", ".join(sorted(collected.loaded)[:FILES_NAMED])
            self._progress(
                f"tests in a copy import {modules} from your checkout, so changes by agents would not be tested; "
                "install the project in each copy with --setup, and name that Python with --python"
            )
        if kept.tests and self._options.baseline_runs:
            kept, more = await self._run(kept, self._options.baseline_runs, facts)
            for cause, tests in more.items():
                causes.setdefault(cause, []).extend(tests)
        sentences = tuple(cause.sentence(tests) for cause, tests in causes.items())
        self._report(found, kept, sentences)
        return replace(kept, left_out=(*kept.left_out, *sentences))

    async def _collect(self, count: Callable[[int], None]) -> tuple[Path, Collected | None, str]:
        """Return the copy, and what pytest collects there or its error message."""
        async with self._copies.checked_out(self._tree) as copy:
            pass
        words = self._arguments_in(copy)
        if words is None:
            return copy, None, ""
        try:
            return *(await self._copies.collect(self._tree, words, top=self._repository.root, tell=count)), ""
        except (AdapterError, UsageError) as error:
            return copy, None, error.message

    def _arguments_in(self, copy: Path) -> list[str] | None:
        """Return pytest's arguments without paths that the copy lacks; None if it lacks all named paths."""
        top = self._repository.root
        in_checkout = re.compile(re.escape(str(top)) + r"(?=/|$|::)")
        words, dropped, named = [], 0, 0
        for word in self._options.pytest_arguments:
            path = in_checkout.sub(".", word.partition("::")[0])
            places = [Path(self._copies.settings.folder) / path, Path(path)]
            is_path = not word.startswith("-") and any((top / place).exists() for place in places)
            named += is_path
            if is_path and not any((copy / place).exists() for place in places):
                dropped += 1
                continue
            words.append(in_checkout.sub(lambda _: str(copy), word))
        return None if dropped and dropped == named else words

    async def _run(self, found: Found, count: int, facts: CopyFacts) -> tuple[Found, dict[Cause, list[str]]]:
        """Return the tests with their baselines, and the causes why other tests fail in a copy."""
        copies, started = self._copies, time.monotonic()
        for test, file, _ in found.tests:
            copies.arguments[test] = pytest_argument(test, file, found.folder)
        # A test that hangs must not use up the time of the others.
        limits = copies.settings.limits
        copies.settings = replace(
            copies.settings, limits=replace(limits, test_timeout=limits.test_timeout or LONGEST_TEST)
        )
        status = [f"baseline: 0 of {count * len(found.tests)} runs"]
        with self._ticking(lambda: status[-1]):
            session = _BaselineSession(copies, self._tree, count, status.append)
            runs = await session.run([test for test, _, _ in found.tests])
        baselines = {test: runs.baseline_of(test) for test, _, _ in found.tests}
        causes: dict[Cause, list[str]] = {}
        for test, file, _ in found.tests:
            if baselines[test] is Baseline.RED:
                cause = await asyncio.to_thread(cause_in, runs.failures.get(test, ""), file, facts)
                if cause is not None:
                    causes.setdefault(cause, []).append(test)
        refuse_ignored_modules(facts)
        times = "1 run" if count == 1 else f"{count} runs"
        cut = "; some tests were not run within the time limit" if runs.is_cut else ""
        self._progress(
            f"baseline, {times}: {summarize(list(baselines.values()))} ({time.monotonic() - started:.0f} s{cut})"
        )
        for line in itertools.islice(_baseline_lines(baselines, runs), 3 * _NAMED):
            self._progress(f"  {line}")
        return replace(_without(found, causes), baselines=baselines), causes

    def _report(self, found: Found, kept: Found, sentences: Sequence[str]) -> None:
        if not kept.tests:
            tests = "the test" if len(found.tests) == 1 else f"any of the {len(found.tests)} tests"
            raise SwarmError("\n  ".join([f"a fresh copy cannot run {tests}", *sentences]))
        for sentence in sentences:
            self._progress(f"left out: {sentence}")
        ignored = [] if self._options.setup else self._missing_paths()
        if ignored:
            paths = named(ignored, FILES_NAMED)
            self._progress(f"ignored by git and missing in copies: {paths} (--setup can create them)")
        self._progress(f"preflight: {counted(len(kept.tests), 'test')} ({self._seconds:.1f} s)")

    def _missing_paths(self) -> list[str]:
        top, records = self._repository.root, self._options.records
        ignored = ignored_project_files(self._repository)
        # Offline agents read the folder of --records in place, so copies need not contain it.
        return [path for path in ignored if not records or (top / path).resolve() != (top / records).resolve()]

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._since

    @contextlib.contextmanager
    def _ticking(self, status: str | Callable[[], str]) -> Iterator[None]:
        """Report the current status and the elapsed time periodically."""

        async def tick() -> None:
            while True:
                await asyncio.sleep(_TICK)
                self._live(f"{status if isinstance(status, str) else status()}, {self._seconds:.0f} s")

        ticking = asyncio.ensure_future(tick())
        try:
            yield
        finally:
            ticking.cancel()


@contextlib.asynccontextmanager
async def run_preflight(
    repository: Repository,
    base: str,
    options: RunOptions,
    fill: tuple[str, ...],
    progress: Progress,
    live: Live,
) -> AsyncIterator[Preflight]:
    """Start to create a fresh copy; remove it at the end. `fill` are shell commands that add files to it."""
    count = max(COPIES, options.baseline_runs) if options.baseline_runs else 1
    checkout, setup = str(repository.root), options.setup or ""
    settings = TestSettings("", setup=setup, checkout=checkout, fill=fill, limits=options.run_limits)
    with ObjectSpace(repository) as space:
        copies = TestCopies(space, settings, base=base, count=count)
        preflight = Preflight(copies, repository, base, options, progress, live)
        try:
            yield preflight
        finally:
            await preflight.close()


def _baseline_lines(baselines: Mapping[str, Baseline], runs: BaselineRuns) -> Iterator[str]:
    """Yield a line on each test whose baseline needs an explanation."""
    for kind, words in (
        (Baseline.FLAKY, "flaky"),
        (Baseline.CLASH, "fails with other tests, passes alone; will run separately"),
        (Baseline.ORDER, "passes only after other tests"),
    ):
        tests = (test for test, baseline in baselines.items() if baseline is kind)
        yield from (f"{words}: {plain(test, 150)}" for test in itertools.islice(tests, _NAMED))
    unknown: dict[str, list[str]] = {}
    for test, baseline in baselines.items():
        if baseline is Baseline.UNKNOWN:
            reason = plain(runs.problems.get(test, ""), 300) or "pytest did not report it"
            unknown.setdefault(reason, []).append(test)
    yield from (f"unknown: {name_tests(tests)}: {reason}" for reason, tests in unknown.items())


def _errors_by_file(collected: Collected, root: str) -> Mapping[str, str]:
    """Return pytest's errors by the path of the file from the top; errors of conftest.py files stand for all files."""
    found: dict[str, str] = {}
    for error in collected.errors:
        file = error.test.partition("::")[0]
        key = str(Path(root) / file) if file.endswith(".py") and not file.endswith("conftest.py") else ""
        found.setdefault(key, error.text)
    return found


def _without(found: Found, causes: Mapping[Cause, Iterable[str]]) -> Found:
    left_out = {test for tests in causes.values() for test in tests}
    return replace(found, tests=tuple(entry for entry in found.tests if entry[0] not in left_out))
