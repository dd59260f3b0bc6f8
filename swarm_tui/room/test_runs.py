"""The test runs that a person starts in the merge view: without one fix, or of the whole plan; live, one at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from swarm_tui.adapters.git import Repository
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.fixes import Fix
from swarm_tui.model.progress import Progress, seconds_left
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.room.changed_tests import ChangedTests
from swarm_tui.teeth.review_teeth import ReviewTeeth
from swarm_tui.testing.settings import TestSettings, guess_settings, settings_of_sweep
from swarm_tui.triage.review import Review
from swarm_tui.triage.verify import ReviewTests

PASSED = "passed"

OnChange = Callable[[], None]


@dataclass(slots=True)
class TestRunFacts:
    """What a run of tests on two trees has shown so far."""

    about: str
    """`without #3`, `the plan`."""
    reverted: frozenset[str]
    tests: tuple[str, ...] = ()
    before: dict[str, str] = field(default_factory=dict)
    """Each test's outcome as things are."""
    after: dict[str, str] = field(default_factory=dict)
    """Each test's outcome with what is tried."""
    complaint: str = ""
    is_over: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def went_red(self) -> tuple[str, ...]:
        """The tests that pass as things are, and do not with what is tried."""
        return tuple(test for test, found in self.after.items() if found != PASSED and self.before.get(test) == PASSED)

    @property
    def progress(self) -> Progress:
        done, total = len(self.before) + len(self.after), 2 * len(self.tests)
        if not total:
            return Progress(f"{self.about}: looking for its tests")
        left = seconds_left(done, total, time.monotonic() - self.began)
        return Progress(self.about, done // 2, total // 2, "tests", left, done / total)


class ReviewTestRunner:
    """Runs tests for one review and keeps what each run has shown."""

    def __init__(self, review: Review, tests: ReviewTests) -> None:
        self.running: TestRunFacts | None = None
        self.run_of_plan: TestRunFacts | None = None
        self._review = review
        self._tests = tests
        self._runs_of_fixes: dict[str, TestRunFacts] = {}

    def _name(self, fix: Fix) -> str:
        parts = self._review.known_parts
        if fix.hunk_of:
            return f"#{fix.rank}.{fix.position + 1}"
        return f"part 0.{parts.index(fix) + 1}" if fix in parts else f"#{fix.rank}"

    def run_of_fix(self, fix: Fix) -> TestRunFacts | None:
        return self._runs_of_fixes.get(fix.id)

    async def run_without_fix(self, fix: Fix, reverted: frozenset[str], on_change: OnChange) -> TestRunFacts:
        """Run the tests that a fix affects, on the plan with it and without it."""
        run = self._runs_of_fixes[fix.id] = TestRunFacts(f"without {self._name(fix)}", reverted)
        await self._run_both(run, self._tests.affected_by([fix]), reverted - {fix.id}, on_change)
        return run

    async def run_plan(self, reverted: frozenset[str], on_change: OnChange) -> TestRunFacts:
        """Run all tests of the sweep, or without a sweep all that some fix affects, on the branch and on the plan."""
        run = self.run_of_plan = TestRunFacts("the plan", reverted)
        await self._run_both(run, self._tests_of_plan(), frozenset(), on_change)
        return run

    async def _tests_of_plan(self) -> Sequence[str]:
        return await self._tests.all_tests()

    async def _run_both(
        self, run: TestRunFacts, tests: Awaitable[Sequence[str]], kept: frozenset[str], on_change: OnChange
    ) -> None:
        """Run tests on what the reverts in `kept` lead to, and on what those of the run lead to."""
        self.running = run
        self._tests.copies.hold_objects()
        on_change()
        try:
            run.tests = tuple(await tests)
            run.began = time.monotonic()
            previews = [await asyncio.to_thread(self._review.preview_of, reverts) for reverts in (kept, run.reverted)]
            for preview, outcomes in zip(previews, (run.before, run.after), strict=True):
                if preview.tree is None:
                    run.complaint = "it conflicts, so there is nothing to run"
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


def with_command(settings: TestSettings, command: str) -> TestSettings:
    """Return settings by which this command is run in place of pytest, if there is one."""
    return replace(settings, command=command) if command else settings


def tests_of_sweep(review: Review, spec: SweepSpec, state: SweepState) -> ChangedTests:
    """Return the tests that the branch of a sweep changes."""
    return ChangedTests(ReviewTeeth(review, settings_of_sweep(spec), state.tests() if spec.kind == "tests" else ()))


def tests_without_sweep(review: Review, repository: Repository) -> ChangedTests:
    """Return the tests that a branch changes that no sweep made."""
    return ChangedTests(ReviewTeeth(review, guess_settings(repository)))


def runner_of_sweep(review: Review, spec: SweepSpec, state: SweepState, command: str = "") -> ReviewTestRunner:
    """Return what runs tests for the review of a sweep, as its agents ran theirs."""
    # Over a tutorial no agent has a test of its own: those that a commit wrote are found by what it changes.
    records = state.tests() if spec.kind == "tests" else ()
    settings = with_command(settings_of_sweep(spec), command)
    folder = SweepFolder(review.store.folder.verdicts.parent)
    return ReviewTestRunner(review, ReviewTests(review, settings, records, folder))


def runner_without_sweep(review: Review, repository: Repository, command: str = "") -> ReviewTestRunner:
    """Return what runs tests for the review of a branch that no sweep made."""
    return ReviewTestRunner(review, ReviewTests(review, with_command(guess_settings(repository), command)))
