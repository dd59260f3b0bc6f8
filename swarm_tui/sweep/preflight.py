"""Try tests in a fresh copy."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.working_tree import ignored_project_files
from swarm_tui.adapters.pytest import Collected, SetUpFailed, TestRun, pytest_argument
from swarm_tui.errors import AdapterError, SwarmError, UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import Baseline, classify, summarize
from swarm_tui.model.run_limits import RunLimits
from swarm_tui.model.text import plain
from swarm_tui.sweep.collect import Found, Progress
from swarm_tui.sweep.preflight_causes import (
    CopyFacts,
    Difference,
    cause_in,
    explain,
    imported_later,
    left_behind_sentence,
    modules_of_checkout,
    name_tests,
    refuse_ignored_modules,
)
from swarm_tui.testing.copies import COPIES, TestCopies
from swarm_tui.testing.results import ResultCache
from swarm_tui.testing.settings import TestSettings

LONGEST: Final = 1800.0
"""The seconds that a baseline may take; tests that were not run by then have no baseline."""
LONGEST_TEST: Final = 300.0
"""The seconds for one test where the user has given no limit."""
LONGEST_ORDER_CHECK: Final = 300.0
"""The seconds that a run of all tests in their order may take, as far as that can be foreseen."""
_BATCH: Final = 64


@dataclass(slots=True)
class BaselineRuns:
    """The outcomes of every run of every test; "" is an unknown one."""

    beside: dict[str, list[str]] = field(default_factory=dict)
    """Runs while other tests were running, or after others in the same process."""
    alone: dict[str, list[str]] = field(default_factory=dict)
    """Runs in a process of their own."""
    in_order: dict[str, str] = field(default_factory=dict)
    """The outcomes in one process that ran all tests in their order."""
    failures: dict[str, str] = field(default_factory=dict)
    """A line on each test that failed, from its last failure."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why a run of a test had no result."""
    is_cut: bool = False
    """Whether the time was over before all were run."""

    def baseline_of(self, test: str) -> Baseline:
        return classify(self.beside.get(test, ()), self.alone.get(test, ()), self.in_order.get(test, ""))

    def failed(self) -> list[str]:
        return [test for test, outcomes in self.beside.items() if "failed" in outcomes]

    def red(self) -> list[str]:
        return [test for test in self.beside if self.baseline_of(test) is Baseline.RED]


async def run_baseline(
    copies: TestCopies,
    tree: str,
    tests: Sequence[str],
    runs: int,
    live: Callable[[str], None],
    longest: float = LONGEST,
) -> BaselineRuns:
    """Run each test `runs` times in copies side by side, then those that failed as often in a process of their own.

    With one run the copies share the tests; with more, each copy runs all of them at the same time as others. Tests
    that are red then are run once more after all that come before them, if that takes no more than a few minutes.
    """
    return await _BaselineSession(copies, tree, runs, live, time.monotonic() + longest).run(tests)


@dataclass(slots=True)
class _BaselineSession:
    copies: TestCopies
    tree: str
    runs: int
    live: Callable[[str], None]
    deadline: float
    made: BaselineRuns = field(default_factory=BaselineRuns)
    total: int = 0
    done: int = 0

    async def run(self, tests: Sequence[str]) -> BaselineRuns:
        made, workers, started = self.made, self.copies.count, time.monotonic()
        batches = _in_whole_files(tests)
        self.total = len(tests) * self.runs
        shared = deque(batches)
        queues = [shared] * workers if self.runs == 1 else [deque(batches) for _ in range(self.runs)]
        await asyncio.gather(*(self._work(queue, made.beside) for queue in queues))
        seconds = (time.monotonic() - started) * min(workers, len(batches)) / self.runs
        failed = made.failed()
        await self._run_alone(failed)
        if len(batches) > 1 and made.red() and seconds <= LONGEST_ORDER_CHECK:
            last = max(map(list(tests).index, made.red()))
            made.in_order = dict((await self._run(tests[: last + 1])).outcomes)
        return made

    async def _run_alone(self, tests: Sequence[str]) -> None:
        """Run each test in a process of its own: some side by side, then those that still fail one after the other."""
        self.total += len(tests) * self.runs
        first: dict[str, list[str]] = {}
        waiting = deque([test] for test in tests)
        workers = min(self.copies.count, len(tests))
        await asyncio.gather(*(self._work(waiting, first) for _ in range(workers)))
        again = [test for test in tests if workers > 1 and "failed" in first[test]]
        for test in tests:
            (self.made.beside if test in again else self.made.alone).setdefault(test, []).extend(first[test])
        self.total += len(again)
        await self._work(deque([test] for test in again), self.made.alone)
        for _ in range(self.runs - 1):
            await self._work(deque([test] for test in tests), self.made.alone)

    async def _work(self, queue: deque[list[str]], into: dict[str, list[str]]) -> None:
        while queue:
            batch = queue.popleft()
            run = await self._run(batch)
            for test in batch:
                into.setdefault(test, []).append(run.outcomes.get(test, ""))
                if test not in run.outcomes:
                    self.made.problems[test] = run.complaint
            self.done += len(batch)
            self.live(f"baseline: {self.done} of {self.total} runs")

    async def _run(self, tests: Sequence[str]) -> TestRun:
        left = self.deadline - time.monotonic()
        if left <= 0:
            self.made.is_cut = True
            return TestRun({}, "not run within the time limit")
        try:
            run = await self.copies.run_uncached(self.tree, tests, left)
        except SwarmError as error:
            return TestRun({}, error.message)
        self.made.failures.update(run.failures)
        return run


def _in_whole_files(tests: Sequence[str]) -> list[list[str]]:
    """Return the tests in batches that divide no file: a test may need what an earlier one of its file leaves."""
    batches: list[list[str]] = [[]]
    for _, group in itertools.groupby(tests, lambda test: test.partition("::")[0]):
        if len(batches[-1]) >= _BATCH:
            batches.append([])
        batches[-1] += group
    return batches


Live = Callable[[str], None]

NAMED: Final = 10
_TICK: Final = 0.5


@dataclass(frozen=True, slots=True)
class PreflightOptions:
    """What a person wants of the trial, and what the copies are made with."""

    arguments: Sequence[str] = ()
    setup: str = ""
    fill: tuple[str, ...] = ()
    limits: RunLimits = field(default_factory=RunLimits)
    baseline: int | None = None
    has_checkout: bool = True
    """Whether the set-up of an agent's copy finds the checkout: on other hosts it does not."""
    not_missed: tuple[str, ...] = ()
    """Folders that agents are known to do without in their copies."""


class Preflight:
    """A fresh copy that is made while something else is done, and then compared with the checkout."""

    def __init__(
        self,
        copies: TestCopies,
        repository: Repository,
        base: str,
        wishes: PreflightOptions,
        told: tuple[Progress, Live],
    ) -> None:
        self._copies = copies
        self._repository = repository
        self._base = base
        self._wishes = wishes
        self._progress, self._live = told
        self._tree = repository.tree_of(base)
        self._since = time.monotonic()
        # A set-up needs to know the project's Python, which is found by collecting.
        self._making: asyncio.Task[None] | None = None if wishes.setup else asyncio.create_task(self._make())

    async def _make(self) -> None:
        async with self._copies.checked_out(self._tree):
            pass

    async def close(self) -> None:
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait([self._making])
        await self._copies.close()

    async def compare(self, found: Found) -> Found:
        """Return the tests that a copy has too, with their baselines; raise SwarmError when it has none of them."""
        self._copies.settings = replace(
            self._copies.settings,
            python=found.python,
            folder=found.folder,
            import_roots=found.import_roots or (".",),
            options=found.run_options,
        )
        with self._told("setting up a fresh copy" if self._wishes.setup else "making a fresh copy"):
            try:
                await (self._making or self._make())
            except SetUpFailed as error:
                raise SwarmError("\n  ".join([error.problem, *error.lines]), "correct the command of --setup") from None
        number = 0

        def count(tests: int) -> None:
            nonlocal number
            number = tests

        what = "collecting in a fresh copy"
        with self._told(lambda: f"{what}, {counted(number, 'test')} so far" if number else what):
            copy, collected, complaint = await self._collect(count)
        facts = CopyFacts(
            self._repository,
            self._base,
            copy,
            found.folder,
            found.root,
            found.import_roots,
            self._wishes.setup,
            self._wishes.has_checkout,
            self._wishes.limits.passed_environment,
        )
        here = {test.test for test in collected.tests} if collected is not None else set()
        missing = [(test, file) for test, file, _ in found.tests if test not in here]
        errors = {"": complaint} if collected is None else _errors_by_file(collected, found.root)
        differences = await asyncio.to_thread(explain, missing, errors, here, facts)
        if collected is not None:
            for module in modules_of_checkout(collected.loaded, self._repository.root):
                facts.add_module(module)
            for module in await asyncio.to_thread(lambda: set(imported_later(self._repository, copy, collected))):
                facts.add_module(module)
        refuse_ignored_modules(facts)
        kept = _without(found, differences)
        if kept.tests and collected is not None and collected.loaded:
            modules = ", ".join(sorted(collected.loaded)[:5])
            self._progress(
                f"in a copy, {modules} would come from your checkout: what agents change there would not be tested; "
                "install the project in every copy with --setup, and name that Python with --python"
            )
        if kept.tests and self._wishes.baseline:
            kept = await self._run(kept, self._wishes.baseline, facts, differences)
        self._tell(found, kept, differences)
        return replace(kept, left_out=(*kept.left_out, *(difference.sentence for difference in differences)))

    async def _collect(self, count: Callable[[int], None]) -> tuple[Path, Collected | None, str]:
        """Return the copy and what pytest collects there, or what it says instead; `count` gets how many so far."""
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
        """Return pytest's arguments for the copy without files that it lacks; None when it lacks all that are named."""
        top = self._repository.root
        in_checkout = re.compile(re.escape(str(top)) + r"(?=/|$|::)")
        words, dropped, named = [], 0, 0
        for word in self._wishes.arguments:
            path = in_checkout.sub(".", word.partition("::")[0])
            places = [Path(self._copies.settings.folder) / path, Path(path)]
            is_path = not word.startswith("-") and any((top / place).exists() for place in places)
            named += is_path
            if is_path and not any((copy / place).exists() for place in places):
                dropped += 1
                continue
            words.append(in_checkout.sub(lambda _: str(copy), word))
        return None if dropped and dropped == named else words

    async def _run(self, found: Found, runs: int, facts: CopyFacts, differences: list[Difference]) -> Found:
        """Return the tests with their baselines, without those that are red because the copy lacks something."""
        copies = self._copies
        for test, file, _ in found.tests:
            copies.arguments[test] = pytest_argument(test, file, found.folder)
        # A test that hangs must not use up the time of all.
        limits = copies.settings.limits
        copies.settings = replace(
            copies.settings, limits=replace(limits, test_timeout=limits.test_timeout or LONGEST_TEST)
        )
        started = time.monotonic()
        said = [f"baseline: 0 of {runs * len(found.tests)} runs"]
        with self._told(lambda: said[-1]):
            made = await run_baseline(copies, self._tree, [test for test, _, _ in found.tests], runs, said.append)
        baselines = {test: made.baseline_of(test) for test, _, _ in found.tests}
        causes: dict[tuple[str, str], list[str]] = {}
        for test, file, _ in found.tests:
            if baselines[test] is Baseline.RED:
                cause = await asyncio.to_thread(cause_in, made.failures.get(test, ""), file, facts)
                if cause is not None:
                    causes.setdefault(cause, []).append(test)
        refuse_ignored_modules(facts)
        lacking = [Difference(cause, cure, tuple(tests)) for (cause, cure), tests in causes.items()]
        differences += lacking
        times = "once" if runs == 1 else f"{runs} times"
        cut = "; the time was over before all were run" if made.is_cut else ""
        seconds = time.monotonic() - started
        self._progress(f"baseline, {times}: {summarize(list(baselines.values()))} ({seconds:.0f} s{cut})")
        for kind, words in (
            (Baseline.FLAKY, "flaky"),
            (Baseline.CLASH, "fails beside others, passes alone, so they are kept apart"),
            (Baseline.ORDER, "passes only after other tests"),
        ):
            for test in [test for test, baseline in baselines.items() if baseline is kind][:NAMED]:
                self._progress(f"  {words}: {plain(test, 150)}")
        unknown: dict[str, list[str]] = {}
        for test in [test for test, baseline in baselines.items() if baseline is Baseline.UNKNOWN]:
            unknown.setdefault(plain(made.problems.get(test, ""), 300) or "pytest did not report it", []).append(test)
        for reason, tests in list(unknown.items())[:NAMED]:
            self._progress(f"  unknown: {name_tests(tests)}: {reason}")
        return replace(_without(found, lacking), baselines=baselines)

    def _tell(self, found: Found, kept: Found, differences: Sequence[Difference]) -> None:
        sentences = [difference.sentence for difference in differences]
        if not kept.tests:
            told = "\n".join(f"  {sentence}" for sentence in sentences)
            raise SwarmError(f"no agent could work on {_all_of(found)}, tried in a fresh copy\n{told}\n", "")
        for sentence in sentences:
            self._progress(f"left out: {sentence}")
        if not self._wishes.setup:
            behind = left_behind_sentence(self._left_behind())
            if behind:
                self._progress(behind)
        self._progress(f"tried in a fresh copy: {counted(len(kept.tests), 'test')} ({self._seconds:.1f} s)")

    def _left_behind(self) -> list[str]:
        top = self._repository.root
        known = {str((top / path).resolve()) for path in self._wishes.not_missed}
        return [path for path in ignored_project_files(self._repository) if str((top / path).resolve()) not in known]

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._since

    @contextlib.contextmanager
    def _told(self, what: str | Callable[[], str]) -> Iterator[None]:
        """Show what is done and for how long, while it is done."""

        async def tick() -> None:
            while True:
                await asyncio.sleep(_TICK)
                self._live(f"{what if isinstance(what, str) else what()}, {self._seconds:.0f} s")

        ticking = asyncio.ensure_future(tick())
        try:
            yield
        finally:
            ticking.cancel()


@contextlib.asynccontextmanager
async def run_preflight(
    repository: Repository, base: str, wishes: PreflightOptions, progress: Progress, live: Live
) -> AsyncIterator[Preflight]:
    """Begin to make a fresh copy; it is removed in the end."""
    count = max(COPIES, wishes.baseline or 0) if wishes.baseline else 1
    checkout = str(repository.root)
    settings = TestSettings("", setup=wishes.setup, checkout=checkout, fill=wishes.fill, limits=wishes.limits)
    with ObjectSpace(repository) as space:
        copies = TestCopies(space, settings, ResultCache(None, ""), base=base, count=count)
        trial = Preflight(copies, repository, base, wishes, (progress, live))
        try:
            yield trial
        finally:
            await trial.close()


def _errors_by_file(collected: Collected, root: str) -> Mapping[str, str]:
    """Return what pytest says of each file, by its path from the top; a folder's conftest.py speaks for all."""
    found: dict[str, str] = {}
    for broken in collected.errors:
        file = broken.test.partition("::")[0]
        key = str(Path(root) / file) if file.endswith(".py") and not file.endswith("conftest.py") else ""
        found.setdefault(key, broken.text)
    return found


def _without(found: Found, differences: Sequence[Difference]) -> Found:
    gone = {test for difference in differences for test in difference.tests}
    return replace(found, tests=tuple(entry for entry in found.tests if entry[0] not in gone))


def _all_of(found: Found) -> str:
    return "the test" if len(found.tests) == 1 else f"any of the {len(found.tests)} tests"
