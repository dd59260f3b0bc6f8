"""Runs the quick tests of a module against each of its mutants, in scratch copies of the project, side by side."""

from __future__ import annotations

import difflib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from tests.mutants.mutate import Mutant, choose_mutants

PROJECT: Final = Path(__file__).parents[2]
_PARTS: Final = ("swarm_tui", "tests", "tutorial", "pyproject.toml", "README.md")
_SLOWEST_BASELINE: Final = 240.0


class Fate(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


@dataclass(frozen=True)
class Tried:
    """A mutant and its fate."""

    module: str
    mutant: Mutant
    diff: str
    fate: Fate


class NotGreen(Exception):
    """The tests of a module fail, or try nothing, without any fault in it."""


class ScratchCopy:
    """A copy of the project whose modules can be broken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in _PARTS:
            source = PROJECT / part
            if source.is_dir():
                shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__", "shown_failed"))
            else:
                shutil.copy2(source, folder / part)

    def seconds_without_fault(self, tests: Sequence[str]) -> float:
        """Run the tests once as they are and return how long they take."""
        begun = time.monotonic()
        code, output = self._run(tests, _SLOWEST_BASELINE)
        if code != 0:
            raise NotGreen(f"{' '.join(tests)}: exit code {code}\n{output[-3000:]}")
        return time.monotonic() - begun

    def fate_of(self, module: str, mutant: Mutant, tests: Sequence[str], timeout: float) -> Fate:
        """Run the tests with the fault in place, and mend it again."""
        path = self.folder / module
        source = path.read_text()
        try:
            self._write(path, mutant.apply(source))
            code, _ = self._run(tests, timeout)
        finally:
            self._write(path, source)
        if code is None:
            return Fate.TIMED_OUT
        return Fate.SURVIVED if code == 0 else Fate.KILLED

    def _write(self, path: Path, source: str) -> None:
        path.write_text(source)
        # Byte code is told by size and second: two mutants of one second would be one.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def _run(self, tests: Sequence[str], timeout: float) -> tuple[int | None, str]:
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "HYPOTHESIS_STORAGE_DIRECTORY": "/dev/null/none"}
        environment.pop("PYTEST_ADDOPTS", None)
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        # A mutant may leave behind whatever it has started: its whole session is ended.
        with subprocess.Popen(
            [*words, "-m", "not slow", "--no-header", "--tb=line", *tests],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.communicate()
                return None, ""
        return process.returncode, output


def try_mutants(
    table: dict[str, tuple[str, ...]], *, limit: int, seed: str, workers: int, only_line: int | None = None
) -> Iterator[Tried]:
    """Return the fate of each chosen mutant of each module, as they become known."""
    with scratch_copies(workers) as copies, ThreadPoolExecutor(workers) as pool:
        free: queue.Queue[ScratchCopy] = queue.Queue()
        for one in copies:
            free.put(one)

        def baseline(tests: tuple[str, ...]) -> float:
            copy = free.get()
            try:
                return copy.seconds_without_fault(tests)
            finally:
                free.put(copy)

        def tried(module: str, source: str, mutant: Mutant, timeout: float) -> Tried:
            copy = free.get()
            try:
                fate = copy.fate_of(module, mutant, table[module], timeout)
            finally:
                free.put(copy)
            return Tried(module, mutant, diff_of(source, mutant), fate)

        seconds = dict(zip(table, pool.map(baseline, table.values()), strict=True))
        futures = []
        for module in table:
            source = (PROJECT / module).read_text()
            for mutant in choose_mutants(source, limit, f"{seed}:{module}"):
                if only_line in (None, mutant.line):
                    # Three times as long as without the fault, on a machine that may have become busy.
                    futures.append(pool.submit(tried, module, source, mutant, seconds[module] * 3 + 20))
        try:
            for future in futures:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def scratch_copies(count: int) -> Iterator[list[ScratchCopy]]:
    """Return scratch copies of the project; they are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="swarm-mutants-") as folder:
        yield [ScratchCopy(Path(folder) / str(number)) for number in range(count)]


def diff_of(source: str, mutant: Mutant) -> str:
    """Return the lines that differ, as `- before` and `+ after`."""
    lines = difflib.unified_diff(source.splitlines(), mutant.apply(source).splitlines(), n=0, lineterm="")
    return "\n".join(f"    {line[0]} {line[1:].strip()}" for line in list(lines)[3:])
