"""The test runs that a person asks for in the merge view: without one fix, or of the whole plan; live, one a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.pytest import pytest_argument
from swarm_tui.journal.fold import SweepState
from swarm_tui.model.fixes import Fix, Preview
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.triage.review import Review
from swarm_tui.triage.verify import HowToTest, TestResult, TestRuns, how_of_sweep, how_without_sweep

PASSED = "passed"


@dataclass(slots=True)
class TestRunFacts:
    """What running tests has told so far."""

    about: str
    """`without #3`, `the plan`."""
    reverted: frozenset[str]
    tests: tuple[str, ...] = ()
    before: dict[str, str] = field(default_factory=dict)
    """Each test's outcome as things are."""
    after: dict[str, str] = field(default_factory=dict)
    """And with what is tried."""
    complaint: str = ""
    is_over: bool = False

    @property
    def went_red(self) -> tuple[str, ...]:
        """The tests that pass as things are, and do not with what is tried."""
        return tuple(test for test, found in self.after.items() if found != PASSED and self.before.get(test) == PASSED)

    @property
    def words(self) -> str:
        """What it does now: `without #3: 4 of 9 tests`."""
        done, total = len(self.before) + len(self.after), 2 * len(self.tests)
        return f"{self.about}: {done // 2} of {total // 2} tests" if total else f"{self.about}: looking for its tests"


class Trials:
    """All runs of one review. Results are cached by tree and test, so asking again costs nothing."""

    def __init__(self, review: Review, how: HowToTest, records: Sequence[TestRecord]) -> None:
        self.review = review
        self.records = tuple(records)
        arguments = {record.test: pytest_argument(record.test, record.file, how.folder) for record in records}
        self.runs = TestRuns(review, how, arguments)
        self.running: TestRunFacts | None = None
        self._of_fixes: dict[str, TestRunFacts] = {}
        self.of_plan: TestRunFacts | None = None

    def of_fix(self, fix: Fix) -> TestRunFacts | None:
        """Return what was run about a fix."""
        return self._of_fixes.get(fix.id)

    async def without(self, fix: Fix, reverted: frozenset[str], changed: Callable[[], None]) -> TestRunFacts:
        """Run the tests that a fix concerns, on the plan with it and without it."""
        trial = TestRunFacts(f"without #{fix.rank}", reverted)
        self._of_fixes[fix.id] = self.running = trial
        self.runs.rely()
        changed()
        try:
            trial.tests = await self.runs.concerned(fix, self.records)
            kept = await asyncio.to_thread(self.review.preview_of, reverted - {fix.id})
            gone = await asyncio.to_thread(self.review.preview_of, reverted)
            await self._run_both(trial, kept, gone, changed)
        finally:
            self.running = None
            trial.is_over = True
            changed()
        return trial

    async def whole_plan(self, reverted: frozenset[str], changed: Callable[[], None]) -> TestRunFacts:
        """Run all tests of the sweep on the integrated branch and on what the plan makes of it.

        Without a sweep these are the tests that some fix concerns.
        """
        trial = TestRunFacts("the plan", reverted)
        self.of_plan = self.running = trial
        self.runs.rely()
        changed()
        try:
            every = [record.test for record in self.records]
            trial.tests = tuple(every) if every else await self.runs.concerned_by_any(self.review.fixes)
            kept = await asyncio.to_thread(self.review.preview_of, frozenset())
            planned = await asyncio.to_thread(self.review.preview_of, reverted)
            await self._run_both(trial, kept, planned, changed)
        finally:
            self.running = None
            trial.is_over = True
            changed()
        return trial

    async def _run_both(self, trial: TestRunFacts, kept: Preview, tried: Preview, changed: Callable[[], None]) -> None:
        for preview, outcomes in ((kept, trial.before), (tried, trial.after)):
            if preview.tree is None:
                trial.complaint = "it conflicts, so there is nothing to run"
                return
            async for result in self.runs.run(preview.tree, trial.tests):
                self._take(trial, result, outcomes)
                changed()

    def _take(self, trial: TestRunFacts, result: TestResult, outcomes: dict[str, str]) -> None:
        outcomes[result.test] = result.outcome
        trial.complaint = trial.complaint or result.complaint

    async def close(self) -> None:
        """Remove the scratch copies."""
        await self.runs.close()


def trials_of_sweep(review: Review, spec: SweepSpec, state: SweepState) -> Trials:
    """Return the runs for the review of a sweep, made as its agents made theirs."""
    # Over a tutorial no agent has a test of its own: those that a commit wrote are found by what it changes.
    return Trials(review, how_of_sweep(spec), list(state.tests()) if spec.kind == "tests" else ())


def trials_without_sweep(review: Review, repository: Repository) -> Trials:
    """Return the runs for the review of a branch that no sweep made."""
    return Trials(review, how_without_sweep(repository), ())
