"""Runs tests and records the lines of the copy that each test executes, including in programs that it starts."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.run import finish_in_thread
from swarm_tui.adapters.pytest import TestRun
from swarm_tui.files import read_regular
from swarm_tui.testing.copies import TestCopies

_TRACING: Final = Path(__file__).parent / "tracing"
_PROGRAM: Final = "program"
_SETUP: Final = "setup"
Place = tuple[str, int]
"""A file of the copy and one of its lines."""


@dataclass(frozen=True, slots=True)
class TracedRun:
    """The results of some tests, and the lines that each of them executed."""

    run: TestRun
    lines: Mapping[str, frozenset[Place]] = field(default_factory=dict)
    """By test, without parameters."""
    prepared: frozenset[Place] = frozenset()
    """Lines that were executed in the set-up of any test, because fixtures may be shared."""
    starting_programs: frozenset[str] = frozenset()
    """The tests that start other programs, whose code may not be recorded."""


async def run_traced(
    copies: TestCopies, tree: str, tests: Sequence[str], timeout: float, *, is_coarse: bool = False
) -> TracedRun:
    """Run tests on a tree without using the cache, and record the lines that they execute.

    A coarse record is cheaper and contains only the first line of each function.
    """
    with tempfile.TemporaryDirectory(prefix="swarm-lines-", ignore_cleanup_errors=True) as folder:
        target = Path(folder) / "lines"

        def variables(copy: Path) -> Mapping[str, str]:
            coarse = {"SWARM_LINES_COARSE": "1"} if is_coarse else {}
            return {"SWARM_LINES": str(target), "SWARM_LINES_TOP": str(copy), **coarse}

        run = await copies.run_uncached(
            tree, tests, timeout, variables=variables, first_on_path=[str(_TRACING)], writable=Path(folder)
        )
        return await finish_in_thread(lambda: _read(target, run))


def _read(target: Path, run: TestRun) -> TracedRun:
    lines: defaultdict[str, set[Place]] = defaultdict(set)
    prepared, starting = set[Place](), set[str]()
    try:
        rows = read_regular(target).decode("utf-8", "replace").splitlines()
    except OSError:
        return TracedRun(run)
    for row in rows:
        parts = row.split("\t")
        if len(parts) != 4:
            continue
        test, phase, file, line = without_case(parts[0]), *parts[1:]
        if phase == _PROGRAM:
            starting.add(test)
        elif line.isdigit():
            lines[test].add((file, int(line)))
            if phase == _SETUP:
                prepared.add((file, int(line)))
    lines_of_tests = {test: frozenset(places) for test, places in lines.items()}
    return TracedRun(run, lines_of_tests, frozenset(prepared), frozenset(starting))


def without_case(test: str) -> str:
    """Return the node id of a test without its parameters."""
    file, separator, rest = test.partition("::")
    return file + separator + rest.partition("[")[0]
