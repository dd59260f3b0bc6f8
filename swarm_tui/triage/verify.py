"""Runs tests on the trees that a plan leads to, in scratch copies whose own code is what is tested.

    runs = TestRuns(review, how_of_sweep(spec))                  or how_without_sweep(repository)
    tests = await runs.concerned(fix, records)                   records of the sweep's tests; () without a sweep
    async for result in runs.run(preview.tree, tests): ...       live; what is known already comes first, at once
    consequence = await runs.without(fix, tests)                 "without it 3 go red"
    await runs.close()

Results are kept by tree and test in the review's folder: nothing is run twice, and a closed room forgets nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from swarm_tui.adapters.git.checkouts import change_tree, check_out_tree
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.adapters.git.scratch import ScratchFolder
from swarm_tui.adapters.process import run_process
from swarm_tui.adapters.pytest import PytestAdapter
from swarm_tui.adapters.pytest_runs import TestRun, run_chosen_tests
from swarm_tui.errors import SwarmError
from swarm_tui.journal.follow import LineFollower
from swarm_tui.model.fixes import Fix
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.triage.affected_tests import files_concerned, imported_modules, is_test_file, tests_concerned, went_red
from swarm_tui.triage.review import Review
from swarm_tui.triage.store import append_line

PLUGIN_FOLDER: Final = Path(__file__).resolve().parent.parent / "agents" / "live"
COPIES: Final = 2
LARGEST_BITE: Final = 32
SETUP_TIMEOUT: Final = 1800.0
MISSING: Final = "missing"

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class HowToTest:
    """How this project's tests are run."""

    python: str
    folder: str = ""
    """Where pytest is run, from the top of a copy."""
    import_roots: tuple[str, ...] = (".",)
    options: tuple[str, ...] = ()
    setup: str = ""
    """The project's own command for a fresh copy."""
    timeout: float = 1800.0

    @property
    def key(self) -> str:
        """What results depend on beside the tree."""
        words = [self.python, self.folder, *self.import_roots, "", *self.options, "", self.setup]
        return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class TestResult:
    """What one test came to on one tree."""

    __test__ = False

    test: str
    outcome: str
    """passed, failed, skipped, or missing when pytest did not report it."""
    is_known: bool
    """It was run before."""
    complaint: str = ""
    """Why it is missing, in pytest's words."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What would become of the tests without a fix."""

    tests: tuple[str, ...]
    went_red: tuple[str, ...]
    """They pass as things are, and do not without the fix."""
    complaint: str = ""


def how_of_sweep(spec: SweepSpec) -> HowToTest:
    """Return how a sweep's tests are run: as its agents ran them."""
    return HowToTest(
        python=spec.python or "python3",
        folder=spec.folder,
        import_roots=spec.import_roots or (".",),
        options=spec.run_options,
        setup=spec.setup or "",
        timeout=spec.timeout,
    )


def how_without_sweep(repository: Repository) -> HowToTest:
    """Return how the tests of a repository are run, as far as it can be told by looking."""
    root = repository.root
    active = os.environ.get("VIRTUAL_ENV", "")
    candidates = [Path(active) / "bin/python"] if active else []
    candidates += [root / name / "bin/python" for name in (".venv", "venv")]
    python = next((str(path) for path in candidates if path.is_file()), None) or shutil.which("python3") or "python3"
    return HowToTest(python, import_roots=("src", ".") if (root / "src").is_dir() else (".",))


async def _to_its_end(work: Callable[[], Made]) -> Made:
    """Do something in a thread; whoever is cancelled meanwhile waits for it: a thread cannot be stopped."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise


@dataclass(slots=True)
class _Copy:
    """A scratch copy, used by one run at a time; it goes from tree to tree."""

    folder: Path
    repository: Repository | None = None
    tree: str = ""


@dataclass(slots=True)
class _Bites:
    """The tests still to run, taken in bites: small ones first, so that the first results come soon."""

    waiting: deque[str]
    size: int = 1

    def take(self, takers: int) -> list[str]:
        bite = [self.waiting.popleft() for _ in range(min(self.size, len(self.waiting)))]
        self.size = max(1, min(LARGEST_BITE, self.size * 2, len(self.waiting) // takers))
        return bite


@dataclass(slots=True)
class TestRuns:
    """The test runs of one review."""

    __test__ = False

    review: Review
    how: HowToTest
    arguments: Mapping[str, str] = field(default_factory=dict)
    """How pytest is told of a test, where that is not by its node id."""
    _scratch: ScratchFolder = field(default_factory=lambda: ScratchFolder("swarm-verify-"))
    _free: asyncio.Queue[_Copy] = field(default_factory=asyncio.Queue)
    _is_holding: bool = False
    _known: dict[str, dict[str, str]] = field(default_factory=dict)
    _imports: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in range(min(COPIES, os.cpu_count() or 1)):
            self._free.put_nowait(_Copy(self.folder / str(number)))

    def rely(self) -> None:
        """From now on keep the trees of previews, until closed: copies borrow their objects. Any run does this too."""
        if not self._is_holding:
            self._is_holding = True
            self.review.space.hold()

    @property
    def folder(self) -> Path:
        """Where the copies are."""
        return self._scratch.path

    async def close(self) -> None:
        """Remove the copies; the results stay."""
        if self._is_holding:
            self._is_holding = False
            self.review.space.release()
        await asyncio.to_thread(self._scratch.close)

    # Which tests

    async def concerned(self, fix: Fix, records: Sequence[TestRecord] = ()) -> tuple[str, ...]:
        """Return the tests that a fix concerns; without a sweep's records they are collected in a copy."""
        return await self.concerned_by_any((fix,), records)

    async def concerned_by_any(self, fixes: Sequence[Fix], records: Sequence[TestRecord] = ()) -> tuple[str, ...]:
        """Return the tests that some of these fixes concern."""
        tree = self.review.branch.tip_tree
        imports = await asyncio.to_thread(self._imports_of, tree)
        if records:
            return tuple(dict.fromkeys(test for fix in fixes for test in tests_concerned(fix, records, imports)))
        paths = frozenset(path for fix in fixes for path in fix.commit.paths)
        files = sorted(files_concerned(paths, imports))
        if not files:
            return ()
        async with self._copy_of(tree) as copy:
            place = copy / self.how.folder
            roots = [copy / root for root in self.how.import_roots]
            adapter = PytestAdapter(self.how.python, place, PLUGIN_FOLDER, roots)
            # A folder's name may begin with a dash.
            words = [f"./{os.path.relpath(copy / file, place)}" for file in files]
            found = await adapter.collect([*self.how.options, *words])
        if found.errors and not found.tests:
            raise SwarmError(
                f"pytest cannot collect {files[0]}: {plain(found.errors[0], 300)}", "is its project set up?"
            )
        return tuple(test.test for test in found.tests)

    def _imports_of(self, tree: str) -> dict[str, frozenset[str]]:
        """Return what each test file of a tree imports."""
        listed = self.review.space.repository.run("ls-tree", "-r", "-z", "--format=%(objectname) %(path)", tree)
        found = {}
        for blob, _, path in (line.partition(" ") for line in listed.fields):
            if is_test_file(path):
                if blob not in self._imports:
                    self._imports[blob] = imported_modules(self.review.space.read(blob)[1])
                found[path] = self._imports[blob]
        return found

    # Running them

    def known(self, tree: str) -> Mapping[str, str]:
        """Return what is known of a tree without running anything."""
        if tree not in self._known:
            self._known[tree] = {}
            for _, line in LineFollower(self.review.store.folder.results(tree)).read()[0]:
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    told = json.loads(line)
                    if told["how"] == self.how.key:
                        self._known[tree][str(told["test"])] = str(told["outcome"])
        return self._known[tree]

    async def run(self, tree: str, tests: Sequence[str]) -> AsyncIterator[TestResult]:
        """Return the result of each test on a tree as it comes; leaving early ends what still runs."""
        known = self.known(tree)
        for test in tests:
            if test in known:
                yield TestResult(test, known[test], is_known=True)
        bites = _Bites(deque(test for test in dict.fromkeys(tests) if test not in known))
        results: asyncio.Queue[TestResult | None] = asyncio.Queue()
        workers = [
            asyncio.create_task(self._work(tree, bites, results)) for _ in range(min(COPIES, len(bites.waiting)))
        ]
        try:
            left = len(workers)
            while left:
                result = await results.get()
                if result is None:
                    left -= 1
                else:
                    yield result
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def outcomes(self, tree: str, tests: Sequence[str]) -> tuple[dict[str, str], str]:
        """Return the outcome of each test on a tree, and pytest's complaint where some are missing."""
        results = [result async for result in self.run(tree, tests)]
        complaint = next((result.complaint for result in results if result.complaint), "")
        return {result.test: result.outcome for result in results}, complaint

    async def without(self, fix: Fix, tests: Sequence[str]) -> Consequence:
        """Say which tests go red when just this fix is reverted."""
        preview = await asyncio.to_thread(self.review.preview_of, {fix.id})
        if preview.tree is None:
            raise SwarmError(
                f"#{fix.rank} cannot be reverted alone, so it cannot be tested without", "see its conflict"
            )
        kept, first = await self.outcomes(self.review.branch.tip_tree, tests)
        green = [test for test in tests if kept.get(test) == "passed"]
        without, second = await self.outcomes(preview.tree, green)
        return Consequence(tuple(tests), went_red(green, kept, without), first or second)

    async def _work(self, tree: str, bites: _Bites, results: asyncio.Queue[TestResult | None]) -> None:
        try:
            while bites.waiting:
                bite = bites.take(COPIES)
                async with self._copy_of(tree) as copy:
                    made = await self._run_bite(copy, bite)
                self._keep(tree, made.outcomes)
                for test in bite:
                    outcome = made.outcomes.get(test, MISSING)
                    complaint = made.complaint if outcome == MISSING else ""
                    results.put_nowait(TestResult(test, outcome, is_known=False, complaint=complaint))
        finally:
            results.put_nowait(None)

    async def _run_bite(self, copy: Path, tests: Sequence[str]) -> TestRun:
        return await run_chosen_tests(
            self.how.python,
            copy,
            {test: self.arguments.get(test, test) for test in tests},
            plugin_folder=PLUGIN_FOLDER,
            folder=self.how.folder,
            import_roots=self.how.import_roots,
            options=self.how.options,
            timeout=self.how.timeout,
        )

    def _keep(self, tree: str, outcomes: Mapping[str, str]) -> None:
        self._known.setdefault(tree, {}).update(outcomes)
        lines = [
            json.dumps({"at": time.time(), "how": self.how.key, "test": test, "outcome": outcome})
            for test, outcome in outcomes.items()
        ]
        if lines:
            append_line(self.review.store.folder.results(tree), "\n".join(lines))

    @contextlib.asynccontextmanager
    async def _copy_of(self, tree: str) -> AsyncIterator[Path]:
        """Return a copy in which a tree is checked out, for as long as it is used."""
        copy = await self._free.get()
        try:
            if copy.repository is None or copy.tree != tree:
                # Whoever gives up in the middle leaves a copy that holds no tree.
                copy.tree = ""
                await self._check_out(copy, tree)
                copy.tree = tree
            yield copy.folder
        finally:
            self._free.put_nowait(copy)

    async def _check_out(self, copy: _Copy, tree: str) -> None:
        space, parent = self.review.space, self.review.branch.tip
        self.rely()
        if copy.repository is None:
            made = await _to_its_end(lambda: check_out_tree(space, tree, copy.folder, parent=parent))
            await self._set_up(copy.folder)
            copy.repository = made
        else:
            repository = copy.repository
            await _to_its_end(lambda: change_tree(space, repository, tree, parent=parent))

    async def _set_up(self, folder: Path) -> None:
        if not self.how.setup:
            return
        # The project's own command for a fresh copy, given by the person who started the sweep.
        finished = await run_process(["/bin/sh", "-c", self.how.setup], cwd=folder, timeout=SETUP_TIMEOUT)
        if finished.code:
            raise SwarmError(f"the set-up command failed with code {finished.code} in a fresh copy", self.how.setup)
