"""Test runs on the plan of a review, and the strength of the tests that its branch changes. Without Textual."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.commits import Commit
from swarm_tui.model.formatting import Progress, seconds_left
from swarm_tui.model.test_strength import TestStrength, weakest_first
from swarm_tui.review.changes import Change
from swarm_tui.review.review import Review
from swarm_tui.review.tests import ReviewTests
from swarm_tui.strength.review import ReviewStrength
from swarm_tui.testing.traced import without_case


class ChangedTests:
    """The changed tests of one review, weakest first."""

    def __init__(self, strength: ReviewStrength) -> None:
        self.known: list[TestStrength] = []
        self.progress: Progress | None = None
        """Progress of the measurement in this process; None if it is not running."""
        self.elsewhere: Progress | None = None
        """Progress of a measurement in another process, usually the engine after its sweep."""
        self.unmeasured = 0
        self._strength = strength
        self._of_commits: dict[str, list[TestStrength]] = {}

    async def load(self, commits: Sequence[Commit] = ()) -> None:
        """Load the sources of the changed tests on the branch and in these commits, and earlier measurements."""
        self.known = await asyncio.to_thread(self._strength.known)
        self._of_commits = await asyncio.to_thread(
            lambda: {commit.id: self._strength.of_commit(commit, self.known) for commit in commits}
        )
        self.unmeasured = await asyncio.to_thread(lambda: self._strength.unmeasured)

    async def measure(self, on_change: Callable[[], None]) -> str:
        """Measure the tests that have no measurement yet. Return a summary."""

        def show(progress: Progress) -> None:
            self.progress = progress
            on_change()

        try:
            self.known = await self._strength.measure(show)
            self.unmeasured = 0
        finally:
            self.progress = None
            on_change()
        return self.summary

    @property
    def summary(self) -> str:
        """The result of the measurement in a sentence."""
        weaker = self.weaker
        first = f", first {weaker[0].test}: {weaker[0].words}" if weaker else ""
        return f"test strength: {len(weaker)} of {len(self.known)} changed tests are weaker{first}"

    def look_elsewhere(self) -> bool:
        """Check the progress of a measurement in another process. Return whether it has changed."""
        before, self.elsewhere = self.elsewhere, self._strength.turn.progress() if self.progress is None else None
        return before != self.elsewhere

    def stop_elsewhere(self) -> None:
        """Ask the other process to stop measuring."""
        self._strength.turn.stop()

    @property
    def level(self) -> str:
        """The level of the summary."""
        return "warning" if self.weaker else "good"

    @property
    def weaker(self) -> list[TestStrength]:
        return [strength for strength in self.known if strength.is_weaker]

    def of_row(self, row: Change, records: Iterable[TestRecord]) -> Sequence[TestStrength]:
        """Return the changed tests of a row: the tests of its agents, and tests that its commit weakens or renames.

        For row 0 and for hunks, changed tests in the same files are added.
        """
        found = {strength.test: strength for strength in self._of_agents(row, records)}
        found |= {strength.test: strength for strength in self._of_commits.get(row.id, ())}
        return weakest_first(list(found.values()))

    def _of_agents(self, row: Change, records: Iterable[TestRecord]) -> Sequence[TestStrength]:
        names = {without_case(test) for test in (*row.tests, *(record.test for record in records))}
        own = [strength for strength in self.known if strength.test in names]
        if own or row.rank:
            return own
        return [strength for strength in self.known if strength.file in row.commit.paths] if not names else []


PASSED = "passed"

OnChange = Callable[[], None]


@dataclass(slots=True)
class TestRun:
    """Results of a test run on two trees."""

    about: str
    """`without #3` or `the plan`."""
    reverted: frozenset[str]
    tests: tuple[str, ...] = ()
    before: dict[str, str] = field(default_factory=dict)
    """Result of each test on the current tree."""
    after: dict[str, str] = field(default_factory=dict)
    """Result of each test on the tree with the change."""
    complaint: str = ""
    is_over: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def went_red(self) -> tuple[str, ...]:
        """The tests that pass on the current tree and fail with the change."""
        return tuple(test for test, found in self.after.items() if found != PASSED and self.before.get(test) == PASSED)

    @property
    def progress(self) -> Progress:
        done, total = len(self.before) + len(self.after), 2 * len(self.tests)
        if not total:
            return Progress(f"{self.about}: collecting tests")
        left = seconds_left(done, total, time.monotonic() - self.began)
        return Progress(self.about, done // 2, total // 2, "tests", left, done / total)


class ReviewTestRunner:
    """Runs tests for one review and stores the results."""

    def __init__(self, review: Review, tests: ReviewTests) -> None:
        self.running: TestRun | None = None
        self.run_of_plan: TestRun | None = None
        self._review = review
        self._tests = tests
        self._runs_of_fixes: dict[str, TestRun] = {}

    def _name(self, fix: Change) -> str:
        parts = self._review.known_parts
        if fix.hunk_of:
            return f"#{fix.rank}.{fix.position + 1}"
        return f"test change 0.{parts.index(fix) + 1}" if fix in parts else f"#{fix.rank}"

    def run_of_fix(self, fix: Change) -> TestRun | None:
        return self._runs_of_fixes.get(fix.id)

    async def run_without_fix(self, fix: Change, reverted: frozenset[str], on_change: OnChange) -> TestRun:
        """Run the tests that a fix affects, with and without this fix in the plan."""
        run = self._runs_of_fixes[fix.id] = TestRun(f"without {self._name(fix)}", reverted)
        await self._run_both(run, self._tests.affected_by([fix]), reverted - {fix.id}, on_change)
        return run

    async def run_plan(self, reverted: frozenset[str], on_change: OnChange) -> TestRun:
        """Run all tests of the sweep on the branch and on the plan. Outside a sweep, run the tests of all fixes."""
        run = self.run_of_plan = TestRun("the plan", reverted)
        await self._run_both(run, self._tests.all_tests(), frozenset(), on_change)
        return run

    async def _run_both(
        self, run: TestRun, tests: Awaitable[Sequence[str]], kept: frozenset[str], on_change: OnChange
    ) -> None:
        """Run tests on the tree with the reverts in `kept`, and on the tree of this run."""
        self.running = run
        self._tests.copies.hold_objects()
        on_change()
        try:
            run.tests = tuple(await tests)
            run.began = time.monotonic()
            previews = [await asyncio.to_thread(self._review.preview_of, reverts) for reverts in (kept, run.reverted)]
            if previews[0].tree is None:
                # A fix that was swapped in conflicts with it. Compare with the branch without the plan.
                previews[0] = await asyncio.to_thread(self._review.preview_of, frozenset())
            for preview, outcomes in zip(previews, (run.before, run.after), strict=True):
                if preview.tree is None:
                    run.complaint = "conflict: nothing was run"
                    return
                async for result in self._tests.copies.results(preview.tree, run.tests):
                    outcomes[result.test] = result.outcome
                    run.complaint = run.complaint or result.complaint
                    on_change()
        finally:
            self.running = None
            run.is_over = True
            on_change()

    async def close(self) -> None:
        await self._tests.copies.close()


def run_summary(run: TestRun) -> tuple[str, str]:
    """Return a summary of a test run, and its level."""
    red = run.went_red
    if red:
        return f"{run.about}: {len(red)} of {len(run.tests)} tests go red, first {red[0]}", "warning"
    if run.complaint:
        return f"{run.about}: {run.complaint}", "error"
    if not run.tests:
        return f"{run.about}: no related tests found", "warning"
    return f"{run.about}: no test goes red ({len(run.tests)} were run)", "good"
