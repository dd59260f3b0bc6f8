"""Runs all tests of a sweep at the tip of an integrated branch, finds the tests that the integration broke.

Also counts the progress of an integration in executed tests, compared with the expected number.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.adapters.git.history import read_tree_changes
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import FILE_MODES
from swarm_tui.errors import SwarmError
from swarm_tui.model.formatting import Progress, counted, named, seconds_left
from swarm_tui.model.text import plain
from swarm_tui.testing.copies import TestCopies

TESTS = "tests"


class Meter:
    """Counts finished work, and shows each change."""

    def __init__(self, show: Callable[[Progress], object] = lambda progress: None) -> None:
        self._show = show
        self._step = Progress("")
        self._run = 0
        self._expected = 0
        self._whole = 0.0
        self._began = time.monotonic()

    def begin(self, doing: str, total: int = 0, noun: str = "") -> None:
        """Begin a step. If its noun is TESTS, it advances with each executed test."""
        self._step = Progress(doing, 0, total, noun)
        self._show_now()

    def advance(self) -> None:
        """Count one more unit of the step."""
        self._step = replace(self._step, done=min(self._step.total, self._step.done + 1))
        self._show_now()

    def expect(self, tests: int) -> None:
        """Set the expected number of remaining tests."""
        self._expected = self._run + tests

    def count(self, tests: int) -> None:
        """Count tests that were run or found in the cache."""
        self._run += tests
        if self._step.noun == TESTS:
            self._step = replace(self._step, done=min(self._step.total, self._step.done + tests))
        self._show_now()

    def _show_now(self) -> None:
        if self._expected:
            # More tests than expected may be necessary. The bar then waits and does not move back.
            self._whole = max(self._whole, min(1.0, self._run / self._expected))
        left = seconds_left(self._run, self._expected, time.monotonic() - self._began)
        self._show(replace(self._step, seconds_left=left, whole=self._whole if self._expected else None))


REPEATS: Final = 2
MAX_CHECKED: Final = 50
"""Failures beyond this number are neither repeated nor compared with their agents' commits."""
SMALLEST_PART: Final = 20
LARGEST_PART: Final = 100
"""The tests in one pytest run. If a run takes too long, only its own results are lost."""

BINARY_PROBE: Final = 8_000
_MARKERS: Final = tuple(re.compile(rb"^%b(?:[ \r]|$)" % (sign * 7), re.MULTILINE) for sign in (b"<", b"=", b">"))


@dataclass(frozen=True, slots=True)
class Before:
    """The test results before the integration."""

    base: str
    passed_on: Mapping[str, str]
    """The commit that a test passed on for its agent: the agent's last commit, or the base."""
    tree_of: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class TipRun:
    """The results of all tests of a sweep at the tip of a branch."""

    outcomes: Mapping[str, str]
    """passed, failed or skipped by node id; tests that were not found are missing."""
    complaint: str = ""
    """Why outcomes are missing, as reported by pytest."""
    regressed: tuple[str, ...] = ()
    """Tests that passed before the integration and fail here."""
    flaky: tuple[str, ...] = ()
    """Tests that failed here and passed when they were repeated."""
    failed_before: tuple[str, ...] = ()
    """Tests that passed for their agents but fail on this machine even without the integration."""
    not_run: tuple[str, ...] = ()
    """Tests that were not run, because of the time limit or a failed set-up of a copy."""
    missing: tuple[str, ...] = ()
    """Tests that pytest did not find or run on the branch, although nothing stopped it."""
    doubts: tuple[str, ...] = ()
    """How commits of the branch may tamper with results, so that these are not reliable."""
    is_testable: bool = True
    """False if no test runs on the base either, so that failures do not indicate a problem of the branch."""

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(test for test, outcome in self.outcomes.items() if outcome == "passed") | set(self.flaky)

    @property
    def problems(self) -> list[str]:
        """Return the problems of the branch that the results show, as sentences."""
        if not self.outcomes and self.complaint and self.is_testable:
            return [f"no test could be run on the integrated branch: {self.complaint}"]
        if not self.regressed:
            return []
        verb = "fails" if len(self.regressed) == 1 else "fail"
        count = counted(len(self.regressed), "test")
        return [f"{count} that passed before integration {verb} on the integrated branch: {named(self.regressed)}"]


async def run_tip(
    copies: TestCopies,
    tree: str,
    tests: Sequence[str],
    before: Before,
    seconds: float,
    meter: Meter,
) -> TipRun:
    """Run tests on a tree within a time limit.

    Failing tests are repeated, and run on the commits of `before`. A test that passes there and always fails here has
    regressed.
    """
    deadline = time.monotonic() + seconds
    meter.begin("running all tests on the branch", len(tests), TESTS)
    outcomes, complaint, not_run = await _run_all(copies, tree, tests, deadline)
    if not outcomes:
        is_testable = await _can_run(copies, before, tests[:SMALLEST_PART], seconds)
        return TipRun({}, complaint, not_run=tuple(not_run) if is_testable else tuple(tests), is_testable=is_testable)
    was_run = set(tests).difference(not_run)
    failing = [test for test in tests if test in was_run and outcomes.get(test) != "passed"]
    failed_before = await _failing_before(copies, failing, before, deadline)
    broken = [test for test in failing if test not in failed_before]
    flaky = await passing_sometimes(copies, tree, broken[:MAX_CHECKED], deadline - time.monotonic())
    return TipRun(
        outcomes,
        complaint,
        regressed=tuple(test for test in broken if test not in flaky),
        flaky=tuple(sorted(flaky)),
        failed_before=tuple(sorted(failed_before & before.passed_on.keys())),
        not_run=tuple(not_run),
        missing=tuple(test for test in tests if test in was_run and test not in outcomes),
    )


async def _run_all(
    copies: TestCopies, tree: str, tests: Sequence[str], deadline: float
) -> tuple[dict[str, str], str, list[str]]:
    """Return the outcomes, the first complaint, and the tests that were not run."""
    size = max(SMALLEST_PART, min(LARGEST_PART, -(-len(tests) // copies.count)))
    outcomes: dict[str, str] = {}
    complaints: list[str] = []
    not_run: list[str] = []

    async def run_part(part: Sequence[str]) -> None:
        try:
            if (left := deadline - time.monotonic()) <= 0:
                raise SwarmError("the time limit was reached")
            run = await copies.run(tree, part, left)
        except SwarmError as error:
            complaints.append(plain(str(error), 300))
            not_run.extend(part)
        else:
            outcomes.update(run.outcomes)
            complaints.extend(filter(None, [run.complaint]))

    await asyncio.gather(*(run_part(tests[start : start + size]) for start in range(0, len(tests), size)))
    return outcomes, next(iter(complaints), ""), not_run


async def _can_run(copies: TestCopies, before: Before, tests: Sequence[str], seconds: float) -> bool:
    """Return whether any of these tests can be run on the base."""
    with contextlib.suppress(SwarmError):
        return bool((await copies.run(await asyncio.to_thread(before.tree_of, before.base), tests, seconds)).outcomes)
    return False


async def passing_sometimes(copies: TestCopies, tree: str, tests: Sequence[str], seconds: float) -> set[str]:
    """Run tests again on a tree; return those that pass at least once."""
    if not tests or seconds <= 0:
        return set()

    async def run_again() -> set[str]:
        with contextlib.suppress(SwarmError):
            run = await copies.run_uncached(tree, tests, seconds)
            return {test for test in tests if run.is_green(test)}
        return set()

    return set[str]().union(*await asyncio.gather(*(run_again() for _ in range(REPEATS))))


async def _failing_before(copies: TestCopies, tests: Sequence[str], before: Before, deadline: float) -> set[str]:
    """Run each test on the commit that it passed on before the integration; return those that fail there now."""
    by_commit: dict[str, list[str]] = {}
    for test in tests:
        by_commit.setdefault(before.passed_on.get(test, before.base), []).append(test)
    # The base needs one run for many tests.
    checked = sorted(by_commit, key=lambda commit: commit != before.base)[:MAX_CHECKED]

    async def run_there(commit: str) -> set[str]:
        with contextlib.suppress(SwarmError):
            if (left := deadline - time.monotonic()) > 0:
                tree = await asyncio.to_thread(before.tree_of, commit)
                run = await copies.run(tree, by_commit[commit], left)
                return {test for test in by_commit[commit] if not run.is_green(test)}
        # Only tests that are known to pass for their agents count.
        return {test for test in by_commit[commit] if test not in before.passed_on}

    return set[str]().union(*await asyncio.gather(*map(run_there, checked)))


def files_with_markers(space: ObjectSpace, base: str, tree: str) -> tuple[str, ...]:
    """Return the text files of a tree with conflict markers that the base tree does not have."""
    changes = read_tree_changes(space.repository, base, tree)
    return tuple(
        change.path
        for change in changes
        if change.new_mode in FILE_MODES
        and _has_markers(space, change.new_id)
        and not (change.old_mode in FILE_MODES and _has_markers(space, change.old_id))
    )


def _has_markers(space: ObjectSpace, blob: str) -> bool:
    content = space.read(blob)[1]
    is_binary = b"\0" in content[:BINARY_PROBE]
    return not is_binary and all(marker.search(content) for marker in _MARKERS)
