"""ReviewSession: review, computed facts, test runs, strength."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.commits import Commit
from swarm_tui.model.formatting import Progress, counted, seconds_left
from swarm_tui.model.pulled import without_marks
from swarm_tui.model.report import LeftOut
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.test_strength import TestStrength, weakest_first
from swarm_tui.model.text import plain
from swarm_tui.money.forecast import cost_of_each
from swarm_tui.review.apply import reviewed_branch
from swarm_tui.review.build import subject_without
from swarm_tui.review.changes import Conflict, Fix, Preview
from swarm_tui.review.open import RevisedChange, revised_changes
from swarm_tui.review.ranking import problem_in_short, read_measured_effects
from swarm_tui.review.review import Review
from swarm_tui.review.tests import ReviewTests
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.draw.spans import Line
from swarm_tui.room.fixes.draw import EffectFacts, FixEvidence, FixFacts, PlanFacts, draw_report
from swarm_tui.strength.review import ReviewStrength
from swarm_tui.testing.settings import TestSettings, guess_settings, settings_of_sweep
from swarm_tui.testing.traced import without_case


class ChangedTests:
    """The changed tests of one review, weakest first."""

    def __init__(self, teeth: ReviewStrength) -> None:
        self.known: list[TestStrength] = []
        self.progress: Progress | None = None
        """Progress of the measurement in this process; None if it is not running."""
        self.elsewhere: Progress | None = None
        """Progress of a measurement in another process, usually the engine after its sweep."""
        self.unmeasured = 0
        self._teeth = teeth
        self._of_commits: dict[str, list[TestStrength]] = {}

    async def load(self, commits: Sequence[Commit] = ()) -> None:
        """Load the sources of the changed tests on the branch and in these commits, and earlier measurements."""
        self.known = await asyncio.to_thread(self._teeth.known)
        self._of_commits = await asyncio.to_thread(
            lambda: {commit.id: self._teeth.of_commit(commit, self.known) for commit in commits}
        )
        self.unmeasured = await asyncio.to_thread(lambda: self._teeth.unmeasured)

    async def measure(self, on_change: Callable[[], None]) -> str:
        """Measure the tests that have no measurement yet. Return a summary."""

        def show(progress: Progress) -> None:
            self.progress = progress
            on_change()

        try:
            self.known = await self._teeth.measure(show)
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
        before, self.elsewhere = self.elsewhere, self._teeth.turn.progress() if self.progress is None else None
        return before != self.elsewhere

    def stop_elsewhere(self) -> None:
        """Ask the other process to stop measuring."""
        self._teeth.turn.stop()

    @property
    def weaker(self) -> list[TestStrength]:
        return [teeth for teeth in self.known if teeth.is_weaker]

    def of_row(self, row: Fix, records: Iterable[TestRecord]) -> Sequence[TestStrength]:
        """Return the changed tests of a row: the tests of its agents, and tests that its commit weakens or renames.

        For row 0 and for hunks, changed tests in the same files are added.
        """
        found = {teeth.test: teeth for teeth in self._of_agents(row, records)}
        found |= {teeth.test: teeth for teeth in self._of_commits.get(row.id, ())}
        return weakest_first(list(found.values()))

    def _of_agents(self, row: Fix, records: Iterable[TestRecord]) -> Sequence[TestStrength]:
        names = {without_case(test) for test in (*row.tests, *(record.test for record in records))}
        own = [teeth for teeth in self.known if teeth.test in names]
        if own or row.rank:
            return own
        return [teeth for teeth in self.known if teeth.file in row.commit.paths] if not names else []


PASSED = "passed"

OnChange = Callable[[], None]


@dataclass(slots=True)
class TestRunFacts:
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
        self.running: TestRunFacts | None = None
        self.run_of_plan: TestRunFacts | None = None
        self._review = review
        self._tests = tests
        self._runs_of_fixes: dict[str, TestRunFacts] = {}

    def _name(self, fix: Fix) -> str:
        parts = self._review.known_parts
        if fix.hunk_of:
            return f"#{fix.rank}.{fix.position + 1}"
        return f"test change 0.{parts.index(fix) + 1}" if fix in parts else f"#{fix.rank}"

    def run_of_fix(self, fix: Fix) -> TestRunFacts | None:
        return self._runs_of_fixes.get(fix.id)

    async def run_without_fix(self, fix: Fix, reverted: frozenset[str], on_change: OnChange) -> TestRunFacts:
        """Run the tests that a fix affects, with and without this fix in the plan."""
        run = self._runs_of_fixes[fix.id] = TestRunFacts(f"without {self._name(fix)}", reverted)
        await self._run_both(run, self._tests.affected_by([fix]), reverted - {fix.id}, on_change)
        return run

    async def run_plan(self, reverted: frozenset[str], on_change: OnChange) -> TestRunFacts:
        """Run all tests of the sweep on the branch and on the plan. Outside a sweep, run the tests of all fixes."""
        run = self.run_of_plan = TestRunFacts("the plan", reverted)
        await self._run_both(run, self._tests_of_plan(), frozenset(), on_change)
        return run

    async def _tests_of_plan(self) -> Sequence[str]:
        return await self._tests.all_tests()

    async def _run_both(
        self, run: TestRunFacts, tests: Awaitable[Sequence[str]], kept: frozenset[str], on_change: OnChange
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


def with_command(settings: TestSettings, command: str) -> TestSettings:
    """Return settings that use this command instead of pytest, if there is one."""
    return replace(settings, command=command) if command else settings


def tests_of_sweep(review: Review, spec: SweepSpec, state: SweepState) -> ChangedTests:
    """Return the tests that the branch of a sweep changes."""
    return ChangedTests(ReviewStrength(review, settings_of_sweep(spec), state.tests() if spec.kind == "tests" else ()))


def tests_without_sweep(review: Review, repository: Repository) -> ChangedTests:
    """Return the tests that a branch outside a sweep changes."""
    return ChangedTests(ReviewStrength(review, guess_settings(repository)))


def runner_of_sweep(review: Review, spec: SweepSpec, state: SweepState, command: str = "") -> ReviewTestRunner:
    """Return a test runner for the review of a sweep, with the same settings as its agents."""
    # In a tutorial sweep agents have no test. The tests of a commit are found by its changes.
    records = state.tests() if spec.kind == "tests" else ()
    settings = with_command(settings_of_sweep(spec), command)
    folder = SweepFolder(review.store.folder.verdicts.parent)
    return ReviewTestRunner(review, ReviewTests(review, settings, records, folder))


def runner_without_sweep(review: Review, repository: Repository, command: str = "") -> ReviewTestRunner:
    """Return a test runner for the review of a branch outside a sweep."""
    return ReviewTestRunner(review, ReviewTests(review, with_command(guess_settings(repository), command)))


TRAILERS: Final = ("Agent: ", "Test: ", "Sweep: ")


class ReviewState:
    """An open review and the computed results about its fixes."""

    def __init__(
        self,
        review: Review,
        state: Callable[[], SweepState],
        sweep: str,
        clock: Callable[[], float],
        test_runner: ReviewTestRunner,
        changed_tests: ChangedTests,
    ) -> None:
        self.review = review
        self.sweep = sweep
        self.test_runner = test_runner
        self.changed_tests = changed_tests
        self.preview: Preview | None = None
        """Preview of the current plan; None while it is being computed."""
        self.applied = ""
        self.applying: Progress | None = None
        self._state = state
        self._clock = clock
        self._measured = read_measured_effects(review.outcome, review.branch.not_measured)
        self._returned = revised_changes(review.outcome)
        self._alone: dict[str, Conflict | None] = {}
        self._effects: dict[tuple[str, frozenset[str]], Preview] = {}
        self._records: tuple[int, dict[str, TestRecord]] = (-1, {})

    @property
    def fixes(self) -> tuple[Fix, ...]:
        return self.review.fixes

    @property
    def rows(self) -> tuple[Fix, ...]:
        """Row 0, which is the commit of all test and doc fixes (if there is one), and the fixes."""
        row = self.review.branch.tests
        return (*((row,) if row is not None else ()), *self.fixes, *self.review.left_out)

    @property
    def open_rows(self) -> tuple[Fix, ...]:
        """The rows without a verdict. Row 0 counts as open while one of its test changes is open."""
        row = self.review.branch.tests
        is_decided = row is None or self.review.verdict(row) in (Verdict.KEEP, Verdict.REVERT)
        if not is_decided and self.review.parts is not None:
            is_decided = not self.review.open_parts
        return (*((row,) if row is not None and not is_decided else ()), *self.review.open_fixes)

    def fix_of(self, row: Fix) -> Fix:
        """Return the fix that contains this hunk. Return any other row unchanged."""
        return self.review.find(row.hunk_of) or row if row.hunk_of else row

    def row_in_place_of(self, earlier: Fix) -> Fix | None:
        """Return the row that replaced this one when the branch was rebuilt."""
        same = (fix for fix in self.rows if fix.id == earlier.id)
        came = (fix for fix in self.rows if (old := self.returned(fix)) is not None and old.old == earlier.id)
        of_rank = (fix for fix in self.rows if fix.rank == earlier.rank)
        return next((fix for found in (same, came, of_rank) for fix in found), None)

    def sent_back(self, fix: Fix) -> TestRecord | None:
        """Return the test whose agent has this commit for revision, or None."""
        return next(
            (rec for rec in self.records_of(fix) if rec.revision is not None and rec.revision.fix == fix.id), None
        )

    def returned(self, fix: Fix) -> RevisedChange | None:
        """Return the previous version of this fix if its agent revised it, or None."""
        return self._returned.get(fix.id)

    # Computed results.

    def with_it_reverted(self, fix: Fix) -> frozenset[str]:
        return self.review.reverted | {fix.id}

    def known_effect(self, fix: Fix) -> Preview | None:
        """Return the effect of also reverting this fix, if it is computed."""
        return self._effects.get((fix.id, self.with_it_reverted(fix)))

    def keep_effect(self, fix: Fix, reverted: frozenset[str], preview: Preview) -> None:
        self._effects[fix.id, reverted] = preview

    def forget_effects(self) -> None:
        """Discard computed effects: after a conflict was resolved, more reverts apply."""
        self._effects.clear()
        self._alone.clear()

    async def preview_each_alone(self, is_open: Callable[[], bool], on_change: Callable[[Fix], None]) -> None:
        """Compute for each fix whether it can be reverted alone, until the review is closed."""
        while is_open() and (fix := next((fix for fix in self.fixes if fix.id not in self._alone), None)) is not None:
            self._alone[fix.id] = await asyncio.to_thread(self.review.conflict_when_reverted_alone, fix)
            on_change(fix)

    # Data for drawing.

    def record_of(self, branch: str) -> TestRecord | None:
        state = self._state()
        if self._records[0] != state.last_seq:
            self._records = (state.last_seq, {record.branch: record for record in state.tests() if record.branch})
        return self._records[1].get(branch)

    def records_of(self, fix: Fix) -> list[TestRecord]:
        """Return the tests whose agents wrote a fix, the selected agent first."""
        found = (self.record_of(branch) for branch in fix.branches)
        return [record for record in found if record is not None]

    def number(self, commit: str) -> str:
        """Return the name of a row: `#5`, `#5.2` for a hunk, `test change 0.3`, or the short commit id."""
        fix = self.review.find(commit)
        if fix is not None and fix.hunk_of:
            return f"#{fix.rank}.{fix.position + 1}"
        if fix in self.review.known_parts:
            return f"test change 0.{self.review.known_parts.index(fix) + 1}"
        return f"#{fix.rank}" if fix else commit[:9]

    def fix_facts(self, fix: Fix) -> FixFacts:
        verdict = self.review.verdict(fix)
        measured = self._measured.get(fix.id)
        blocked = {item.commit for item in self.preview.conflicts} if self.preview is not None else set()
        teeth_of_row = [teeth for teeth in self.teeth_of(fix) if fix.rank or self._stays(teeth, fix)]
        in_conflict = (fix.hunk_of or fix.id) in blocked and (not fix.hunk_of or fix.id in self.review.reverted)
        return FixFacts(
            rank=self._row_number(fix),
            title=self._row_title(fix),
            verdict=self._way_back(fix) or (verdict.value if verdict else self._verdict_of_parts(fix)),
            hunks_reverted=len(self._hunks_reverted(fix)),
            is_part=fix in self.review.known_parts,
            is_left_out=fix in self.review.left_out,
            weaker=sum(teeth.is_weaker for teeth in teeth_of_row),
            renamed=sum(teeth.is_renamed and not teeth.is_weaker for teeth in teeth_of_row),
            added=fix.added,
            without_lines=fix.change_without_lines,
            removed=fix.removed,
            greens=len(measured.turned_green) if measured and (measured.is_measured or measured.turned_green) else None,
            reds=len(measured.broken) if measured else 0,
            agents=len(fix.agents),
            is_conflicting=in_conflict,
            is_stuck=self._alone.get(fix.id) is not None,
            origin=fix.origin,
            is_risky=bool(self.review.branch.risks_of(fix.id)),
        )

    def name_with_commit(self, fix: Fix) -> str:
        """Return the title above the diff of a row. Test changes and hunks have no commit id."""
        is_piece = bool(fix.hunk_of) or fix in self.review.known_parts
        return self.number(fix.id) if is_piece else f"#{fix.rank} {fix.id[:9]}"

    def _row_number(self, fix: Fix) -> int:
        parts = self.review.known_parts
        return parts.index(fix) + 1 if fix in parts else fix.position + 1 if fix.hunk_of else fix.rank

    def _hunks_reverted(self, fix: Fix) -> tuple[Fix, ...]:
        """Return the hunks of a fix that the plan reverts, if it keeps others."""
        hunks = self.review.known_hunks(fix)
        return tuple(hunk for hunk in hunks if hunk.id in self.review.reverted)

    def _row_title(self, fix: Fix) -> str:
        if fix is not self.review.branch.tests:
            return fix.title
        parts = self.review.known_parts
        out = [part.id for part in parts if self.review.verdict(part) is Verdict.REVERT]
        words = (counted(len(parts), "test change") if parts else "", f"{len(out)} left out" if out else "")
        title = fix.title
        if self.review.parts is not None and 0 < len(out) < len(parts):
            title = without_marks(subject_without(self.review.parts, out))
        return f"[TEST/DOC] {': '.join(filter(None, (' · '.join(filter(None, words)), title)))}"

    def _way_back(self, fix: Fix) -> str:
        """Return the state of a fix that was sent back: `sent`, `back` (unchanged), `new`, or ""."""
        record = self.sent_back(fix)
        if record is not None:
            return (
                ""
                if self.review.verdict(fix) in (Verdict.KEEP, Verdict.REVERT) and record.is_finished
                else ("back" if record.is_finished else "sent")
            )
        return "new" if self.returned(fix) is not None and self.review.verdict(fix) is None else ""

    def _verdict_of_parts(self, fix: Fix) -> str:
        """Return the verdict of row 0 if each of its test changes has one."""
        is_row_0 = fix is self.review.branch.tests and bool(self.review.known_parts)
        return "keep" if is_row_0 and not self.review.open_parts else ""

    def plan_facts(self) -> PlanFacts:
        review, preview = self.review, self.preview
        words = [review.verdict(fix) for fix in self.fixes]
        reverted = words.count(Verdict.REVERT)
        return PlanFacts(
            total=len(self.fixes),
            kept=words.count(Verdict.KEEP),
            partly=words.count(Verdict.PARTLY),
            reverted=reverted,
            later=words.count(Verdict.LATER),
            is_known=preview is not None,
            conflicts=tuple(
                " with ".join(filter(None, [self.number(item.commit), self.named(item.opponents)]))
                for item in (preview.conflicts if preview else ())
            ),
            commits=self._commits_of_plan(),
            has_tests=review.branch.squashed is not None,
            parts=self._parts_words(),
            branch=reviewed_branch(review, self.sweep),
            applied=self.applied,
            running=self.applying or self.running_here,
            elsewhere=self.changed_tests.elsewhere,
            tests=self._plan_test_result(),
            problem="" if self._plan_test_result() else problem_in_short(review.outcome),
            doubt=next(iter((*review.branch.risk_lines, *review.branch.doubts)), ""),
            cost=cost_of_each(self._state().spending, words.count(Verdict.KEEP), len(self.fixes)),
        )

    def _commits_of_plan(self) -> int:
        """Return the number of commits of the branch with the plan's reverts on top."""
        preview = self.preview
        reverts = sum(fix.id in self.review.reverted for fix in self.fixes) + len(self.fixes_reverted_in_part)
        return len(self.review.branch.commits) + reverts - (len(preview.unchanging) if preview else 0)

    @property
    def fixes_reverted_in_part(self) -> tuple[Fix, ...]:
        """Fixes with some hunks reverted and others kept."""
        return tuple(fix for fix in self.fixes if self._hunks_reverted(fix))

    def named(self, commits: Sequence[str]) -> str:
        """Return the names of some rows: `#2+#6+#7 and 4 more`."""
        more = f" and {len(commits) - 3} more" if len(commits) > 3 else ""
        return "+".join(self.number(commit) for commit in commits[:3]) + more

    @property
    def running_here(self) -> Progress | None:
        """Progress of the background task of this room."""
        run = self.test_runner.running
        return run.progress if run is not None else self.changed_tests.progress

    @property
    def running(self) -> Progress | None:
        """Progress of the background task of this room or of another process."""
        return self.running_here or self.changed_tests.elsewhere

    def teeth_of(self, fix: Fix) -> tuple[TestStrength, ...]:
        """Return the changed tests of a row, weakest first."""
        is_row_0 = fix is self.review.branch.tests
        return tuple(self.changed_tests.of_row(fix, () if is_row_0 else self.records_of(fix)))

    def _parts_words(self) -> str:
        """Return the number of test changes left out of row 0, or else of those without a verdict."""
        review = self.review
        out, still_open = len(review.reverted & {part.id for part in review.known_parts}), len(review.open_parts)
        if out:
            return f"{counted(out, 'test change')} out"
        return f"{counted(still_open, 'test change')} open" if still_open else ""

    def doubts_of_plan(self) -> list[str]:
        """Return warnings about this plan to show before it is applied."""
        found = []
        for fix in self.fixes:
            measured = self._measured.get(fix.id)
            if measured and measured.is_measured and measured.broken and fix.id not in self.review.reverted:
                more = f" and {len(measured.broken) - 1} more" if len(measured.broken) > 1 else ""
                found.append(f"! #{fix.rank} is kept and breaks {plain(measured.broken[0], 100)}{more}")
        weaker = [teeth for teeth in self.changed_tests.weaker if self._stays(teeth)]
        if weaker:
            found.append(f"! {counted(len(weaker), 'weaker test')}, first {plain(weaker[0].test, 100)}")
        reverted = (self._measured[commit] for commit in self.review.reverted if commit in self._measured)
        given_up = {test for measured in reverted for test in measured.turned_green}
        if given_up:
            found.append(f"! reverted fixes had turned {counted(len(given_up), 'test')} green")
        run = self.test_runner.run_of_plan
        if run is not None and run.is_over and run.reverted == self.review.reverted and run.went_red:
            red = counted(len(run.went_red), "test")
            found.append(f"! without the reverted fixes {red} went red: {plain(run.went_red[0], 100)}")
        return found

    def _stays(self, teeth: TestStrength, row: Fix | None = None) -> bool:
        """Return whether every test change of this test is kept. The row itself is ignored."""
        out = (part for part in self.review.known_parts if part.id in self.review.reverted and part is not row)
        return not any(teeth.test == each.test for part in out for each in self.teeth_of(part))

    def _plan_test_result(self) -> str:
        run = self.test_runner.run_of_plan
        if run is None or not run.is_over or run.reverted != self.review.reverted or not run.after:
            return ""
        passed = sum(outcome == PASSED for outcome in run.after.values())
        red = len(run.went_red)
        return f"{passed} of {len(run.tests)} tests pass" + (f", {red} went red" if red else "")

    def conflict_of(self, fix: Fix) -> Conflict | None:
        """Return the conflict of reverting a fix within the plan, if it is known."""
        effect = self.known_effect(fix)
        commit = fix.hunk_of or fix.id
        return next((item for item in effect.conflicts if item.commit == commit), None) if effect else None

    def effect_facts(self, fix: Fix) -> EffectFacts:
        effect = self.known_effect(fix)
        conflict = self.conflict_of(fix)
        measured = self._measured.get(fix.id)
        run = self._finished_run_of(fix)
        return EffectFacts(
            is_reverted=fix.id in self.review.reverted,
            is_part=fix.rank == 0,
            is_left_out=fix in self.review.left_out,
            is_known=effect is not None,
            conflict_with=tuple(self.number(other) for other in conflict.opponents) if conflict else (),
            conflict_paths=conflict.paths if conflict else (),
            is_unchanging=effect is not None and (fix.hunk_of or fix.id) in effect.unchanging,
            tests_red=len(run.went_red) if run else None,
            tests_run=len(run.after) if run else 0,
            why_rank="" if fix.rank == 0 else f"rank {fix.rank}: {measured.why}" if measured and measured.why else "",
        )

    def draw_report(self, width: int) -> list[Line]:
        return draw_report(self.review.outcome, self.review.branch, self._maker_of, width)

    def _maker_of(self, left: LeftOut) -> str:
        """Return the source of a left-out change: the test, else the branch or the commit."""
        record = self.record_of(left.branch)
        return record.test if record else left.branch or left.commit[:12]

    def _finished_run_of(self, fix: Fix) -> TestRunFacts | None:
        """Return the test run without a fix, if it has finished and still matches this plan."""
        run = self.test_runner.run_of_fix(fix)
        is_usable = run is not None and run.is_over and run.after and run.reverted == self.with_it_reverted(fix)
        return run if is_usable else None

    def _runs_of(self, fix: Fix) -> tuple[tuple[str, bool | None, str], ...]:
        run = self.test_runner.run_of_fix(fix)
        if run is None:
            return ()
        runs: list[tuple[str, bool | None, str]] = []
        for test in run.tests:
            outcome, before = run.after.get(test), run.before.get(test)
            passed = None if outcome is None else outcome == PASSED
            was_red = before not in (None, PASSED)
            runs.append((test, passed, "red with it too" if was_red and not passed else ""))
        if run.complaint:
            runs.append(("", False, run.complaint))
        return tuple(runs)

    def _words_of_the_way_back(self, fix: Fix) -> tuple[str, str]:
        """Return who sent a fix back and the result in one line, and the comment."""
        record, returned = self.sent_back(fix), self.returned(fix)
        if record is not None and record.revision is not None:
            came = "its agent has changed nothing" if record.is_finished else "its agent is working on it"
            return f"sent back by {record.revision.by}: {came}", record.revision.comment
        if returned is not None:
            return f"revised by its agent, sent back by {returned.by}: press v to see the difference", returned.comment
        return "", ""

    def evidence(self, fix: Fix) -> FixEvidence:
        line = self.review.verdict_line(fix)
        measured = self._measured.get(fix.id)
        return FixEvidence(
            message=body_of(fix.commit.message),
            author=f"{fix.commit.author_name} <{fix.commit.author_email}>",
            verdict=line.verdict.value if line else "",
            verdict_by=line.by if line else "",
            verdict_age=self._clock() - line.at if line else None,
            verdict_why=line.why if line else "",
            turned_green=measured.turned_green[:20] if measured else (),
            broken=measured.broken[:20] if measured else (),
            source=measured.source if measured else "",
            agents=() if fix is self.review.branch.tests else tuple(self.records_of(fix)),
            runs=self._runs_of(fix),
            teeth=self.teeth_of(fix),
            sent_back=self._words_of_the_way_back(fix),
            risks=self.review.branch.risks_of(fix.hunk_of or fix.id),
            origin=f"{fix.origin}: {fix.by_integrator}" if fix.origin else "",
            hunks_reverted=tuple(f"{self.number(hunk.id)} {hunk.title}" for hunk in self._hunks_reverted(fix)),
        )


def body_of(message: str) -> str:
    """Return a commit's message without its subject and the integrator's trailers, which are shown elsewhere."""
    lines = message.strip().split("\n")[1:]
    while lines and (not lines[-1].strip() or lines[-1].startswith(TRAILERS)):
        lines.pop()
    return "\n".join(lines).strip("\n")
