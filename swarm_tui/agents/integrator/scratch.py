"""Scratch copies of the repository in which commits are checked out and tested, and the memory of what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import Repository, clone_into
from swarm_tui.adapters.process import run_process
from swarm_tui.adapters.pytest_runs import TestRun, run_chosen_tests
from swarm_tui.agents.integrator.inputs import IntegratorInputs
from swarm_tui.errors import AdapterError
from swarm_tui.journal.folder import write_beside

COPIES_AT_ONCE: Final = 4
PLUGIN_FOLDER: Final = Path(__file__).resolve().parent.parent / "live"


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
                if not self._inputs.setup:
                    # What the set-up has made may be neither committed nor ignored.
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
                # The next one who needs it is not to take it for a good one.
                await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)
                raise AdapterError(f"the set-up command failed with code {finished.code} in a fresh copy")

    def close(self) -> None:
        """Remove the copies."""
        shutil.rmtree(self._folder, ignore_errors=True)
