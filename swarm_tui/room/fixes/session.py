"""ReviewSession: a review, its plan, the listed rows, and what was computed about them. Without Textual."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, Protocol

from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.commits import Diff
from swarm_tui.model.formatting import Progress, counted, seconds_left
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.test_strength import TestStrength
from swarm_tui.review.apply import (
    AppliedPlan,
    ApplyPlan,
    applied_branch,
    apply_plan,
    checkout_hint,
    plan_apply,
    reviewed_branch,
)
from swarm_tui.review.changes import Change, Conflict, Preview
from swarm_tui.review.open import RevisedChange, difference_of, revised_changes
from swarm_tui.review.ranking import read_measured_effects
from swarm_tui.review.review import Review
from swarm_tui.review.tests import ReviewTests
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.fixes.tests import ChangedTests, ReviewTestRunner, run_summary
from swarm_tui.room.grid.draw_layout import fits_words
from swarm_tui.strength.review import ReviewStrength
from swarm_tui.testing.settings import guess_settings, settings_of_sweep

SHOWN_EVERY: Final = 0.1
POLL_SECONDS: Final = 1.0
_VERDICT_WORDS: Final[dict[Verdict | None, str]] = {
    Verdict.KEEP: "kept",
    Verdict.REVERT: "reverted",
    Verdict.LATER: "for later",
    Verdict.PARTLY: "kept in part",
}


class PlanChanges(NamedTuple):
    """The numbers of fixes and test changes that a plan removes from the branch."""

    reverted: int
    in_part: int
    """Fixes with some hunks reverted and others kept."""
    parts_out: int
    """Test changes that are left out."""

    @property
    def reverts(self) -> int:
        """The number of revert commits of fixes."""
        return self.reverted + self.in_part


class SessionView(Protocol):
    """What shows a session: the Fixes screen, or a test."""

    def show_session(self) -> None:
        """Show the plan and the rows, which have changed."""

    def show_message(self, text: str, level: str = "info") -> None:
        """Show a message."""

    def start(self, work: Callable[[], Awaitable[None]], group: str) -> object:
        """Start a task in place of the running task of its group."""


def open_session(
    review: Review,
    view: SessionView,
    state: Callable[[], SweepState],
    spec: SweepSpec | None,
    clock: Callable[[], float] = time.time,
    command: str = "",
) -> ReviewSession:
    """Return the session of a review. `spec` is None for a branch outside a sweep; `command` replaces pytest."""
    # In a tutorial sweep agents have no test. The tests of a commit are found by its changes.
    records = state().tests() if spec is not None and spec.kind == "tests" else ()
    settings = settings_of_sweep(spec) if spec is not None else guess_settings(review.repository)
    folder = SweepFolder(review.store.folder.verdicts.parent) if spec is not None else None
    runs = replace(settings, command=command) if command else settings
    runner = ReviewTestRunner(review, ReviewTests(review, runs, records, folder))
    changed_tests = ChangedTests(ReviewStrength(review, settings, records))
    return ReviewSession(review, view, state, spec.sweep if spec is not None else "", clock, runner, changed_tests)


class ReviewSession:
    """An open review, its plan, and the rows that are listed: the fixes, or the pieces of one of them."""

    def __init__(
        self,
        review: Review,
        view: SessionView,
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
        """The branch that was created from the current plan, or ""."""
        self.applying: Progress | None = None
        self.split_row: Change | None = None
        """The row whose test changes or hunks are listed; None while the fixes are listed."""
        self.filter_words = ""
        self.rows: list[Change] = []
        """The listed rows that match the filter."""
        self.current: Change | None = None
        """The row under the cursor."""
        self.is_closed = False
        self._view = view
        self._state = state
        self._clock = clock
        self.measured = read_measured_effects(review.outcome, review.branch.not_measured)
        self._returned = revised_changes(review.outcome)
        self.alone: dict[str, Conflict | None] = {}
        self._effects: dict[tuple[str, frozenset[str]], Preview] = {}
        self._records: tuple[int, dict[str, TestRecord]] = (-1, {})
        self.list_rows(next(iter((*self.review.open_fixes, *self.fixes)), None))

    async def close(self) -> None:
        self.is_closed = True
        await self.test_runner.close()
        self.review.close()

    # Rows.

    @property
    def fixes(self) -> tuple[Change, ...]:
        return self.review.fixes

    @property
    def tests_row(self) -> Change | None:
        """Row 0, the commit of all test and doc fixes, if there is one."""
        return self.review.branch.tests

    @property
    def all_rows(self) -> tuple[Change, ...]:
        """Row 0, the fixes, and the fixes that the integrator left out."""
        return (*((self.tests_row,) if self.tests_row is not None else ()), *self.fixes, *self.review.left_out)

    @property
    def unfiltered_rows(self) -> tuple[Change, ...]:
        """The fixes, or the test changes or hunks of the split row."""
        if self.split_row is None:
            return self.all_rows
        if self.split_row is not self.tests_row:
            return self.review.known_hunks(self.split_row)
        # Weaker tests come first, because they matter most.
        parts = self.review.known_parts
        return tuple(sorted(parts, key=lambda part: not any(each.is_weaker for each in self.strength_of(part))))

    def list_rows(self, current: Change | None) -> None:
        """List the rows that match the filter, with the cursor on one of them, else on the first."""
        self.rows = [row for row in self.unfiltered_rows if fits_words(self.filter_words, _searched_text(row))]
        self.current = current if current in self.rows else next(iter(self.rows), None)

    def set_filter(self, words: str) -> None:
        self.filter_words = words
        self.list_rows(self.current)

    @property
    def title(self) -> str:
        """The title of the list."""
        filtered = f" · {len(self.rows)} match /{self.filter_words}" if self.filter_words else ""
        if self.split_row is None:
            unlisted = self.review.branch.unlisted
            more = f" · {counted(unlisted, 'commit')} not listed: --all" if unlisted else ""
            return f"Ranked {len(self.fixes)}{more}{filtered}"
        count = counted(len(self.unfiltered_rows), self._piece)
        if self.split_row is not self.tests_row:
            return f"#{self.split_row.rank} {count}{filtered}"
        return f"[TEST/DOC] {count}{', combined' if self._piece == 'hunk' else ''}{filtered}"

    @property
    def _piece(self) -> str:
        parts = self.review.parts
        is_part = self.split_row is self.tests_row and parts is not None and not parts.are_hunks
        return "test change" if is_part else "hunk"

    def fix_of(self, row: Change) -> Change:
        """Return the fix that contains this hunk. Return any other row unchanged."""
        return self.review.find(row.hunk_of) or row if row.hunk_of else row

    def row_in_place_of(self, earlier: Change) -> Change | None:
        """Return the row that replaced this one when the branch was rebuilt."""
        same = (fix for fix in self.all_rows if fix.id == earlier.id)
        revised = (fix for fix in self.all_rows if (old := self.returned(fix)) is not None and old.old == earlier.id)
        of_rank = (fix for fix in self.all_rows if fix.rank == earlier.rank)
        return next((fix for found in (same, revised, of_rank) for fix in found), None)

    async def split(self, row: Change) -> None:
        """List the hunks of a row in place of the fixes. For row 0, list its test changes."""
        is_row_0 = row is self.tests_row
        try:
            await asyncio.to_thread(self.review.load_parts if is_row_0 else partial(self.review.load_hunks, row))
        except SwarmError as error:
            self._view.show_message(f"cannot split #{row.rank}: {error}", "error")
            return
        if self.is_closed or self.current is not row:
            return
        pieces = self.review.known_parts if is_row_0 else self.review.known_hunks(row)
        if not pieces or (len(pieces) == 1 and not is_row_0):
            one = f"this fix has one hunk, {pieces[0].title}: press y or n" if pieces else "this fix has no hunks"
            self._view.show_message(one, "warning")
            return
        self.split_row, self.filter_words = row, ""
        self.list_rows(None)
        self.current = next((piece for piece in self.rows if self._is_open(piece)), self.current)
        self._view.show_session()

    def leave_split(self) -> bool:
        """List the fixes again, with the cursor on the row that was split. Return False if they are listed already."""
        row, self.split_row = self.split_row, None
        if row is not None:
            self.filter_words = ""
            self.list_rows(row)
            self._view.show_session()
        return row is not None

    def why_not_split(self, row: Change) -> str:
        if self.split_row is not None:
            is_part = self.split_row is self.tests_row
            return "a test change is kept or left out as a whole" if is_part else "press Esc to return to the fixes"
        is_out = row in self.review.left_out and row not in self.review.taken
        return "not in the plan: press s to swap it in, then choose hunks" if is_out else ""

    # Verdicts.

    def decide(self, row: Change, verdict: Verdict) -> None:
        """Record a verdict and go to the next open row."""
        self.review.set_verdicts([(row, verdict)])
        if verdict is not Verdict.CLEAR:
            self._go_to_next_open(row)
        self.change_plan()

    def decide_all(self, verdicts: Iterable[tuple[Change, Verdict]], why: str = "") -> None:
        """Record verdicts as one action."""
        self.review.set_verdicts(verdicts, why)
        self.change_plan()

    def undo(self) -> None:
        """Undo the user's last action, and go to its first row."""
        self._show_step(self.review.undo(), "undone", "nothing to undo: you have given no verdict")

    def redo(self) -> None:
        """Redo the last undone action, and go to its first row."""
        self._show_step(self.review.redo(), "again", "nothing was undone")

    def change_plan(self) -> None:
        """Show the verdicts, and compute the preview of the plan."""
        self.applied, self.preview = "", None
        self._view.show_session()
        self._view.start(self.compute_plan, "plan")

    async def compute_plan(self) -> None:
        """Compute the preview of the plan, and the effect of the row under the cursor."""
        self.preview = await asyncio.to_thread(self.review.preview)
        self.applied = await asyncio.to_thread(applied_branch, self.review, self.preview, self.sweep)
        self._view.show_session()
        if self.current is not None and await self.compute_effect(self.current):
            self._view.show_session()

    @property
    def open_rows(self) -> tuple[Change, ...]:
        """The rows of the list without a verdict. A left-out fix needs none."""
        rows = self.unfiltered_rows if self.split_row is not None else (self.review.branch.tests, *self.review.fixes)
        return tuple(row for row in rows if row is not None and self._is_open(row))

    def _is_open(self, row: Change) -> bool:
        """Return whether a row has no verdict. Row 0 is open while one of its test changes is open."""
        if self.review.verdict(row) not in (None, Verdict.LATER):
            return False
        return row is not self.review.branch.tests or self.review.parts is None or bool(self.review.open_parts)

    def _go_to_next_open(self, row: Change) -> None:
        place = self.rows.index(row)
        following = (*self.rows[place + 1 :], *self.rows[:place])
        still_open = {each.id for each in self.open_rows}
        self.current = next((each for each in following if each.id in still_open), row)
        if still_open:
            return
        if self.split_row is not None:
            self._view.show_message(f"every {self._piece} has a verdict: press Esc to return to the fixes", "good")
        else:
            self._view.show_message("every fix has a verdict: press A to apply the plan", "good")

    def _show_step(self, rows: Sequence[Change], word: str, nothing: str) -> None:
        if not rows:
            self._view.show_message(nothing)
            return
        if self.current not in rows and rows[0] in self.rows:
            self.current = rows[0]
        self.change_plan()
        by_word: dict[str, list[str]] = {}
        for row in sorted(rows, key=lambda row: row.rank):
            by_word.setdefault(self._verdict_word(row), []).append(row.id)
        verdicts = ", ".join(
            f"{self.named(ids)} {'is' if len(ids) == 1 else 'are'} {each}" for each, ids in by_word.items()
        )
        self._view.show_message(f"{word}: {verdicts}")

    def _verdict_word(self, row: Change) -> str:
        verdict = self.review.verdict(row)
        if row in self.review.left_out:
            return "swapped in" if row in self.review.taken else "out"
        is_out = row in self.review.known_parts and verdict is Verdict.REVERT
        return "left out" if is_out else _VERDICT_WORDS.get(verdict, "open")

    # Swapping in a fix that the integrator left out.

    def why_not_swap(self, row: Change) -> str:
        is_left_out = row in self.review.left_out
        return "" if is_left_out else "already on the branch: only rows marked `out` can be swapped in"

    def swap_in(self, fix: Change, others: tuple[Change, ...]) -> None:
        """Include a left-out fix in place of the fixes that it conflicts with."""
        instead = f" for {ranks(others)}" if others else ""
        why = f"#{fix.rank} of {', '.join(fix.agents) or 'another agent'} is kept{instead}" if others else ""
        self.decide_all([*((other, Verdict.REVERT) for other in others), (fix, Verdict.KEEP)], why)
        self._view.show_message(f"#{fix.rank} is in the plan{instead}: press V to test it, z to undo", "good")

    def swap_out(self, fix: Change) -> None:
        """Leave a fix out again."""
        self.decide_all([(fix, Verdict.CLEAR)])
        self._view.show_message(f"#{fix.rank} is out again; verdicts on the fixes it replaced do not change")

    # Applying.

    def why_not_apply(self) -> str:
        return "" if self.review.reverted else f"nothing is reverted: {self.review.tip_name} already is the result"

    def propose(self, *, is_drop: bool) -> ApplyPlan:
        """Return the result of applying the plan, without creating anything."""
        return plan_apply(self.review, reviewed_branch(self.review, self.sweep), is_drop=is_drop)

    async def apply(self, proposal: ApplyPlan) -> tuple[AppliedPlan, str]:
        """Create the branch and show the progress. Return the result, and the command to check it out."""
        began, total, count = time.monotonic(), len(proposal.subjects), 0

        def count_commit(number: int) -> None:
            nonlocal count
            count = number

        create = partial(apply_plan, self.review, proposal, sweep=self.sweep, on_commit=count_commit)
        work = asyncio.ensure_future(asyncio.to_thread(create))
        try:
            while not (await asyncio.wait({work}, timeout=SHOWN_EVERY))[0]:
                left = seconds_left(count, total, time.monotonic() - began)
                self.applying = Progress("applying", count, total, "commits", left)
                self._view.show_session()
            applied = work.result()
            self.applied = applied.branch
        finally:
            self.applying = None
            self._view.show_session()
        return applied, await asyncio.to_thread(checkout_hint, self.review.repository, applied)

    # Test runs and test strength.

    async def run_without(self, row: Change) -> None:
        """Run the tests of a row on the plan without this row."""
        run = self.test_runner.run_without_fix(row, self.with_it_reverted(row), self._view.show_session)
        self._view.show_message(*run_summary(await run))

    async def run_plan(self) -> None:
        """Run all tests of the sweep on the tree of the plan."""
        run = self.test_runner.run_plan(self.review.reverted, self._view.show_session)
        self._view.show_message(*run_summary(await run))

    async def measure_strength(self) -> None:
        """Run the changed tests on mutants of the program."""
        summary = await self.changed_tests.measure(self._view.show_session)
        self._view.show_message(summary, self.changed_tests.level)

    def why_no_run(self) -> str:
        return f"{self.running_here.words}: one run at a time, press X to stop it" if self.running_here else ""

    def why_not_measure(self) -> str:
        changed = self.changed_tests
        if not changed.known:
            return "this branch changes no test"
        if changed.elsewhere is not None:
            return f"{changed.elsewhere.words}: measured in the background, press X to stop"
        weaker = f"{len(changed.weaker)} of {len(changed.known)} are weaker"
        return "" if changed.unmeasured else f"all changed tests are measured: {weaker}"

    async def load_strength(self) -> None:
        """Load what is known about the changed tests."""
        try:
            await self.changed_tests.load([row.commit for row in (*self.all_rows, *self.review.known_parts)])
        except SwarmError as error:
            self._view.show_message(f"cannot read the changed tests: {error}", "warning")
        if not self.is_closed:
            self._view.show_session()

    async def follow_strength(self) -> None:
        """Show progress and results of a measurement in another process, until the review is closed."""
        changed = self.changed_tests
        while not self.is_closed:
            was_measuring = changed.elsewhere is not None
            if changed.look_elsewhere():
                self._view.show_session()
            if was_measuring and changed.elsewhere is None and changed.progress is None:
                await self.load_strength()
                if not changed.unmeasured:
                    self._view.show_message(changed.summary, changed.level)
            await asyncio.sleep(POLL_SECONDS)

    @property
    def running_here(self) -> Progress | None:
        """Progress of the test run of this room."""
        run = self.test_runner.running
        return run.progress if run is not None else self.changed_tests.progress

    @property
    def running(self) -> Progress | None:
        """Progress of the test run of this room or of another process."""
        return self.running_here or self.changed_tests.elsewhere

    def strength_of(self, row: Change) -> tuple[TestStrength, ...]:
        """Return the changed tests of a row, weakest first."""
        return tuple(self.changed_tests.of_row(row, () if row is self.tests_row else self.records_of(row)))

    # Agents.

    @property
    def state(self) -> SweepState:
        return self._state()

    @property
    def now(self) -> float:
        return self._clock()

    def record_of(self, branch: str) -> TestRecord | None:
        state = self._state()
        if self._records[0] != state.last_seq:
            self._records = (state.last_seq, {record.branch: record for record in state.tests() if record.branch})
        return self._records[1].get(branch)

    def records_of(self, fix: Change) -> list[TestRecord]:
        """Return the tests whose agents wrote a fix, the selected agent first."""
        found = (self.record_of(branch) for branch in fix.branches)
        return [record for record in found if record is not None]

    def sent_back(self, fix: Change) -> TestRecord | None:
        """Return the test whose agent has this commit for revision, or None."""
        return next(
            (rec for rec in self.records_of(fix) if rec.revision is not None and rec.revision.fix == fix.id), None
        )

    def returned(self, fix: Change) -> RevisedChange | None:
        """Return the previous version of this fix if its agent revised it, or None."""
        return self._returned.get(fix.id)

    def why_no_difference(self, fix: Change) -> str:
        return "" if self.returned(fix) is not None else "it was not sent back"

    def difference(self, fix: Change) -> Diff | None:
        """Return the changes since a fix was sent back, or None if its previous version is missing."""
        return difference_of(self.review, fix, self._returned[fix.id])

    def why_not_send_back(self, row: Change) -> str:
        if row.rank == 0:
            return "test changes are kept or left out; press m to write to the agent"
        if self.fix_of(row) in self.review.left_out:
            return "not on the branch, so a revision of it would have no place"
        records = self.records_of(row)
        if not records:
            return "the agent of this fix is unknown"
        is_sent = self.sent_back(self.fix_of(row)) is not None and not records[0].is_finished
        return "already sent back to its agent" if is_sent else ""

    # Effects.

    async def load_rest(self) -> None:
        """Compute what the list shows besides the fixes: which cannot be reverted alone, and the test changes."""
        while not self.is_closed and (left := [fix for fix in self.fixes if fix.id not in self.alone]):
            self.alone[left[0].id] = await asyncio.to_thread(self.review.conflict_when_reverted_alone, left[0])
            if self.alone[left[0].id] is not None and not self.is_closed:
                self._view.show_session()
        if self.tests_row is not None and not self.is_closed:
            try:
                await asyncio.to_thread(self.review.load_parts)
            except SwarmError as error:
                self._view.show_message(f"cannot split #0 (test and doc changes): {error}", "error")
            if not self.is_closed:
                self.change_plan()
        await self.load_strength()

    def with_it_reverted(self, fix: Change) -> frozenset[str]:
        return self.review.reverted | {fix.id}

    def known_effect(self, fix: Change) -> Preview | None:
        """Return the effect of also reverting this fix, if it is computed."""
        return self._effects.get((fix.id, self.with_it_reverted(fix)))

    async def compute_effect(self, fix: Change) -> bool:
        """Compute the plan with this fix also reverted. Return False if it was known."""
        reverted = self.with_it_reverted(fix)
        if (fix.id, reverted) in self._effects:
            return False
        self._effects[fix.id, reverted] = await asyncio.to_thread(self.review.preview_of, reverted)
        return True

    def forget_effects(self) -> None:
        """Discard computed effects: after a conflict was resolved, more reverts apply."""
        self._effects.clear()
        self.alone.clear()

    def conflict_of(self, fix: Change) -> Conflict | None:
        """Return the conflict of reverting a fix within the plan, if it is known."""
        effect = self.known_effect(fix)
        commit = fix.hunk_of or fix.id
        return next((item for item in effect.conflicts if item.commit == commit), None) if effect else None

    def why_not_resolve(self, fix: Change) -> str:
        if fix in self.review.left_out:
            return "this fix is not on the branch: press s to swap it in"
        return "" if self.conflict_of(fix) is not None else "reverting this fix does not conflict"

    # Data for drawing.

    def number(self, commit: str) -> str:
        """Return the name of a row: `#5`, `#5.2` for a hunk, `test change 0.3`, or the short commit id."""
        fix = self.review.find(commit)
        if fix is not None and fix.hunk_of:
            return f"#{fix.rank}.{fix.position + 1}"
        if fix in self.review.known_parts:
            return f"test change 0.{self.review.known_parts.index(fix) + 1}"
        return f"#{fix.rank}" if fix else commit[:9]

    def named(self, commits: Sequence[str]) -> str:
        """Return the names of some rows: `#2+#6+#7 and 4 more`."""
        more = f" and {len(commits) - 3} more" if len(commits) > 3 else ""
        return "+".join(self.number(commit) for commit in commits[:3]) + more

    def hunks_reverted(self, fix: Change) -> tuple[Change, ...]:
        """Return the hunks of a fix that the plan reverts, if it keeps others."""
        hunks = self.review.known_hunks(fix)
        reverted = self.review.reverted if hunks else ()
        return tuple(hunk for hunk in hunks if hunk.id in reverted)

    def plan_changes(self) -> PlanChanges:
        review, reverted = self.review, self.review.reverted
        return PlanChanges(
            sum(fix.id in reverted for fix in review.fixes),
            sum(any(hunk.id in reverted for hunk in review.known_hunks(fix)) for fix in review.fixes),
            sum(part.id in reverted for part in review.known_parts),
        )


def _searched_text(fix: Change) -> str:
    paths = " ".join(change.path for change in fix.commit.changes)
    return f"{fix.title} {' '.join(fix.agents)} {paths} {fix.id}"


def ranks(fixes: Iterable[Change]) -> str:
    return ", ".join(f"#{fix.rank}" for fix in fixes)
