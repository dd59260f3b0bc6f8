"""Checks out trees in scratch copies and runs their tests there, so that the tests import the tree's own code.

async with TestCopies(space, settings, base=commit, results=folder) as copies:
    run = await copies.run(tree, tests, timeout)             one pytest run for the tests that are not cached
    async for result in copies.results(tree, tests): ...     one result after the other, cached ones first
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from swarm_tui.adapters.git.checkouts import change_tree, check_out_tree, restore_settings, settings_of
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.adapters.processes.confinement import BoundedRunner, make_box
from swarm_tui.adapters.processes.environment import NO_BYTECODE, passed_variables, project_environment
from swarm_tui.adapters.processes.run import finish_in_thread
from swarm_tui.adapters.pytest import (
    CHECKOUT_VARIABLE,
    COPY_VARIABLE,
    NAMED_IN_VARIABLE,
    PLUGIN_FOLDER,
    Collected,
    PytestAdapter,
    SessionsHere,
    SetUpFailed,
    TestRun,
    run_command,
    run_tests,
)
from swarm_tui.adapters.python_env import activation, make_own_venv
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.errors import JournalError, SwarmError, resource_shortage
from swarm_tui.journal.append import append_line
from swarm_tui.journal.follow import LineFollower
from swarm_tui.model.run_limits import COPIES_NUMBER, OWN_HOME, own_folder, own_variables
from swarm_tui.testing.settings import TestSettings

MAX_CACHE_BYTES: Final = 64_000_000


class ResultCache:
    """Test results by tree. The next lookup finds results that another process appended."""

    def __init__(self, folder: Path | None, settings_key: str, max_bytes: int = MAX_CACHE_BYTES) -> None:
        """Without a folder, results are kept in memory only. Results with another `settings_key` are ignored."""
        self._folder = folder
        self._settings_key = settings_key
        self._max_bytes = max_bytes
        self._outcomes: dict[str, dict[str, str]] = {}
        self._followers: dict[str, LineFollower] = {}

    def outcomes(self, tree: str) -> Mapping[str, str]:
        """Return the cached results on a tree by test; incomplete or invalid lines are ignored."""
        outcomes = self._outcomes.setdefault(tree, {})
        if self._folder is not None:
            follower = self._followers.setdefault(tree, LineFollower(self._path(tree)))
            with contextlib.suppress(JournalError):
                for _, line in follower.read()[0]:
                    with contextlib.suppress(ValueError, KeyError, TypeError):
                        entry = json.loads(line)
                        if entry["how"] == self._settings_key:
                            outcomes[str(entry["test"])] = str(entry["outcome"])
        return outcomes

    def add(self, tree: str, outcomes: Mapping[str, str]) -> None:
        """Cache the results of tests on a tree. If writing fails, they are kept in memory."""
        self._outcomes.setdefault(tree, {}).update(outcomes)
        if self._folder is None or not outcomes:
            return
        lines = [
            json.dumps({"at": time.time(), "how": self._settings_key, "test": test, "outcome": outcome})
            for test, outcome in outcomes.items()
        ]
        if not self._path(tree).exists():
            # Another process may remove the same files.
            with contextlib.suppress(OSError):
                self._remove_oldest()
        # A full disk only slows down later runs.
        with contextlib.suppress(JournalError):
            append_line(self._path(tree), "\n".join(lines))

    def _path(self, tree: str) -> Path:
        assert self._folder is not None, "only called with a folder"
        return self._folder / f"{tree}.jsonl"

    def _remove_oldest(self) -> None:
        """Remove the least recently written files until half of the allowed size is left."""
        assert self._folder is not None, "only called with a folder"
        files = [(path.stat(), path) for path in self._folder.glob("*.jsonl")]
        size = sum(status.st_size for status, _ in files)
        if size <= self._max_bytes:
            return
        for status, path in sorted(files, key=lambda item: item[0].st_mtime):
            if size > self._max_bytes // 2:
                path.unlink(missing_ok=True)
                size -= status.st_size


COPIES: Final = 2
LARGEST_BATCH: Final = 32
SETUP_TIMEOUT: Final = 1800.0
MISSING: Final = "missing"


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one test on one tree."""

    __test__ = False

    test: str
    outcome: str
    """passed, failed, skipped, or missing if pytest did not report it."""
    is_cached: bool
    complaint: str = ""
    """Why it is missing, as reported by pytest."""


@dataclass(slots=True)
class _Copy:
    """A scratch copy for one run at a time. Trees are checked out in it one after the other."""

    number: int
    folder: Path
    repository: Repository | None = None
    tree: str = ""
    git_settings: dict[str, bytes] = field(default_factory=dict)
    """The copy's git settings from before any test ran."""

    @property
    def venv(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-venv")


@dataclass(slots=True)
class _Batches:
    """The remaining tests in batches: small ones first, so that the first results arrive soon."""

    waiting: deque[str]
    size: int = 1

    def next_batch(self, workers: int) -> list[str]:
        batch = [self.waiting.popleft() for _ in range(min(self.size, len(self.waiting)))]
        self.size = max(1, min(LARGEST_BATCH, self.size * 2, len(self.waiting) // workers))
        return batch


class TestCopies:
    """Scratch copies of one repository and test runs in them. Close it, or use it with `async with`."""

    __test__ = False

    def __init__(
        self,
        space: ObjectSpace,
        settings: TestSettings,
        *,
        base: str,
        results: Path | None = None,
        count: int = COPIES,
        parent_folder: Path | None = None,
    ) -> None:
        """Trees are looked up in `space` and checked out as commits on top of `base`.

        Without a folder for results, these are cached in memory only.
        """
        self.settings = settings
        self.arguments: dict[str, str] = {}
        """The pytest arguments that select tests, by node id, if they differ from the node id."""
        self.on_tests: Callable[[int], object] = lambda tests: None
        """Called with the number of tests that `run` has finished since the last call."""
        self._space = space
        self._cache = ResultCache(results, settings.key)
        self._base = base
        self._scratch = ScratchFolder("swarm-copies-", parent_folder)
        self._count = max(1, min(count, os.cpu_count() or 1))
        # The most recently used copy comes first, because it is set up and others may never be needed.
        self._free: asyncio.LifoQueue[_Copy] = asyncio.LifoQueue()
        for number in range(self._count):
            self._free.put_nowait(_Copy(COPIES_NUMBER + number, self.folder / f"copy{number}"))
        self._is_holding = False

    @property
    def folder(self) -> Path:
        return self._scratch.path

    @property
    def count(self) -> int:
        """The maximum number of concurrent runs."""
        return self._count

    def hold_objects(self) -> None:
        """Keep the new objects of the space until closed, because copies borrow them. Every run does this too."""
        if not self._is_holding:
            self._is_holding = True
            self._space.retain()

    async def close(self) -> None:
        """Remove the copies. Cached results remain."""
        if self._is_holding:
            self._is_holding = False
            self._space.release()
        await asyncio.to_thread(self._scratch.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Running tests

    def known(self, tree: str, tests: Sequence[str]) -> TestRun | None:
        """Return the outcomes of tests on a tree if all of them are cached, else None."""
        cached = self._cache.outcomes(tree)
        return TestRun(_only(cached, tests)) if all(test in cached for test in tests) else None

    async def run(
        self,
        tree: str,
        tests: Sequence[str],
        timeout: float | None = None,
        *,
        variables: Callable[[Path], Mapping[str, str]] | None = None,
    ) -> TestRun:
        """Run tests on a tree, except those with cached results."""
        cached = self._cache.outcomes(tree)
        uncached = [test for test in tests if test not in cached]
        self.on_tests(len(tests) - len(uncached))
        if not uncached:
            return TestRun(_only(cached, tests))
        reported = 0

        def tell(number: int) -> None:
            nonlocal reported
            self.on_tests(number - reported)
            reported = number

        timeout = self.settings.timeout if timeout is None else timeout
        new_run = await self.run_uncached(tree, uncached, timeout, variables=variables, tell=tell)
        tell(len(uncached))
        if new_run.is_complete:
            self._cache.add(tree, new_run.outcomes)
        return TestRun(
            _only({**cached, **new_run.outcomes}, tests), new_run.complaint, new_run.is_complete, new_run.failures
        )

    async def run_uncached(
        self,
        tree: str,
        tests: Sequence[str],
        timeout: float,
        *,
        variables: Callable[[Path], Mapping[str, str]] | None = None,
        first_on_path: Sequence[str] = (),
        writable: Path | None = None,
        tell: Callable[[int], object] | None = None,
    ) -> TestRun:
        """Run tests on a tree without using the cache.

        `variables` returns additional variables for a copy's folder. `first_on_path` are folders outside of the copy,
        and `writable` is a folder for the output of the run. `tell` is called with the number of finished tests.
        """
        async with self._checked_out(tree) as copy:
            if self.settings.command:
                roots, variables_of_copy = self.settings.import_roots, self._variables(copy)
                return await run_command(
                    self.settings.command,
                    copy.folder,
                    import_roots=roots,
                    variables=variables_of_copy,
                    timeout=timeout,
                    runner=await self._runner(copy),
                )
            return await run_tests(
                SessionsHere(
                    await self._python_in(copy),
                    copy.folder,
                    folder=self.settings.folder,
                    import_roots=self.settings.import_roots,
                    first_on_path=first_on_path,
                    options=self.settings.options,
                    variables={**self._variables(copy), **(variables(copy.folder) if variables else {})},
                    timeout=timeout,
                    runner=await self._runner(copy, *first_on_path, writable=writable),
                ),
                {test: self.arguments.get(test, test) for test in tests},
                tell=tell,
            )

    async def collect(
        self,
        tree: str,
        arguments: Sequence[str],
        top: Path | None = None,
        tell: Callable[[int], object] | None = None,
    ) -> tuple[Path, Collected]:
        """Return a copy's folder and the collected tests; modules must not be imported from `top`."""
        settings = self.settings
        async with self._checked_out(tree) as copy:
            roots = [copy.folder / root for root in settings.import_roots]
            folder = copy.folder / settings.folder
            python, runner = await self._python_in(copy), await self._runner(copy)
            tops = () if top is None else (top,)
            adapter = PytestAdapter(python, folder, roots, tops, self._variables(copy), runner)
            return copy.folder, await adapter.collect(arguments, tell)

    async def results(self, tree: str, tests: Sequence[str]) -> AsyncIterator[TestResult]:
        """Yield the result of each test on a tree when it is available. Closing the iterator stops remaining runs."""
        cached = dict(self._cache.outcomes(tree))
        for test in tests:
            if test in cached:
                yield TestResult(test, cached[test], is_cached=True)
        batches = _Batches(deque(test for test in dict.fromkeys(tests) if test not in cached))
        found: asyncio.Queue[TestResult | None] = asyncio.Queue()
        workers = [
            asyncio.create_task(self._run_batches(tree, batches, found))
            for _ in range(min(self._count, len(batches.waiting)))
        ]
        try:
            working = len(workers)
            while working:
                result = await found.get()
                if result is None:
                    working -= 1
                else:
                    yield result
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _run_batches(self, tree: str, batches: _Batches, found: asyncio.Queue[TestResult | None]) -> None:
        try:
            while batches.waiting:
                batch = batches.next_batch(self._count)
                run = await self.run(tree, batch)
                for test in batch:
                    outcome = run.outcomes.get(test, MISSING)
                    complaint = run.complaint if outcome == MISSING else ""
                    found.put_nowait(TestResult(test, outcome, is_cached=False, complaint=complaint))
        finally:
            found.put_nowait(None)

    async def _python_in(self, copy: _Copy) -> str:
        """Return the interpreter for a copy: its own, or one that the set-up cannot write to."""
        python = self.settings.python
        if os.path.isabs(python):
            return str(await asyncio.to_thread(make_own_venv, copy.venv, python)) if self.settings.setup else python
        return str(copy.folder / python) if os.sep in python else python

    async def _runner(self, copy: _Copy, *readable: str, writable: Path | None = None) -> BoundedRunner:
        """Return a runner with resource limits. Confined programs can read the folders of this copy and `readable`."""
        limits, settings = self.settings.limits, self.settings
        if limits.confinement is None:
            return BoundedRunner(limits.process_limit)
        shown: list[str | Path] = [PLUGIN_FOLDER, *self._space.object_folders, *filter(None, readable)]
        box = await asyncio.to_thread(make_box, limits.confinement, settings.python, settings.checkout, shown)
        own = [copy.folder, copy.venv, own_folder(str(self.folder), copy.number), *([writable] if writable else [])]
        return BoundedRunner(limits.process_limit, replace(box, writable=tuple(map(str, own))))

    # Copies

    @contextlib.asynccontextmanager
    async def checked_out(self, tree: str) -> AsyncIterator[Path]:
        """Check out and set up a tree in a folder, and return the folder for the duration of the context."""
        async with self._checked_out(tree) as copy:
            yield copy.folder

    @contextlib.asynccontextmanager
    async def _checked_out(self, tree: str) -> AsyncIterator[_Copy]:
        copy = await self._free.get()
        try:
            if copy.repository is None or copy.tree != tree:
                # A cancelled check-out leaves a copy without a complete tree.
                copy.tree = ""
                await self._check_out(copy, tree)
                copy.tree = tree
            yield copy
        finally:
            self._free.put_nowait(copy)

    async def _check_out(self, copy: _Copy, tree: str) -> None:
        space, base = self._space, self._base
        self.hold_objects()
        if copy.repository is not None:
            repository = copy.repository
            # The set-up may create files that are neither committed nor ignored.
            is_cleaned = not self.settings.setup
            try:
                await finish_in_thread(lambda: restore_settings(repository, copy.git_settings))
                await finish_in_thread(lambda: change_tree(space, repository, tree, parent=base, is_cleaned=is_cleaned))
            except SwarmError as error:
                if resource_shortage(error) is not None:
                    raise
                # Tests of one commit have damaged the copy. Results of other commits must not depend on that.
                copy.repository = None
                await finish_in_thread(lambda: shutil.rmtree(copy.folder, ignore_errors=True))
            else:
                return
        commit = await finish_in_thread(lambda: check_out_tree(space, tree, copy.folder, parent=base))
        await self._set_up(copy)
        copy.git_settings = await finish_in_thread(lambda: settings_of(commit))
        copy.repository = commit

    async def _set_up(self, copy: _Copy) -> None:
        variables = self._variables(copy)
        for folder in (own_folder(str(self.folder), copy.number), variables.get(OWN_HOME)):
            if folder is not None:
                Path(folder).mkdir(exist_ok=True)
        commands = list(self.settings.fill)
        if self.settings.setup:
            # The project's own set-up command, given by the user who started the sweep.
            commands.append(self.settings.setup)
            variables |= {CHECKOUT_VARIABLE: self.settings.checkout}
        for command in commands:
            words = ["/bin/sh", "-c", command]
            environment = project_environment({**NO_BYTECODE, **variables})
            if Path(await self._python_in(copy)).is_relative_to(copy.venv):
                environment |= activation(copy.venv, environment)
            runner = await self._runner(copy, self.settings.checkout)
            finished = await runner.run(words, cwd=copy.folder, environment=environment, timeout=SETUP_TIMEOUT)
            if finished.code:
                await asyncio.to_thread(shutil.rmtree, copy.folder, ignore_errors=True)
                output = finished.text + finished.error_text
                if runner.box is not None and not runner.box.has_network:
                    output += "\nit had no network access (use --confine=network to allow it)"
                raise SetUpFailed(finished.code, output)

    def _variables(self, copy: _Copy) -> dict[str, str]:
        named = {NAMED_IN_VARIABLE: self.settings.checkout} if self.settings.checkout else {}
        own = own_variables(copy.number, str(self.folder), self.settings.limits)
        passed = passed_variables(self.settings.limits.passed_environment)
        return passed | own | named | {COPY_VARIABLE: str(copy.folder)}


def _only(outcomes: Mapping[str, str], tests: Sequence[str]) -> dict[str, str]:
    return {test: outcomes[test] for test in tests if test in outcomes}
