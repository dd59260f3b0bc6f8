"""The state of the merge view: one review, what was computed about it so far, and the facts that `draw.fixes` draws.

What takes long is computed in threads, started by the screen; everything else here only looks things up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from swarm_tui.insight.costs import cost_of_each
from swarm_tui.journal.fold import SweepState
from swarm_tui.model.fixes import Conflict, Fix, Preview
from swarm_tui.model.formatting import counted
from swarm_tui.model.outcome import LeftOut
from swarm_tui.model.progress import Progress
from swarm_tui.model.state import TestRecord
from swarm_tui.model.teeth import TestTeeth
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.changed_tests import ChangedTests
from swarm_tui.room.draw.fixes import EffectFacts, FixEvidence, FixFacts, PlanFacts, draw_report
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.test_runs import PASSED, ReviewTestRunner, TestRunFacts
from swarm_tui.triage.apply import reviewed_branch
from swarm_tui.triage.measurements import MeasuredEffect, read_measured_effects
from swarm_tui.triage.review import Review
from swarm_tui.triage.revisions import ReturnedFix, returned_fixes

TRAILERS: Final = ("Agent: ", "Test: ", "Sweep: ")


class ReviewState:
    """An open review and what is known about its fixes."""

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
        """Of the present plan; None while it is being computed."""
        self.applied = ""
        self.applying: Progress | None = None
        self._state = state
        self._clock = clock
        self._measured: dict[str, MeasuredEffect] = read_measured_effects(review.outcome)
        self._returned = returned_fixes(review.outcome)
        self._alone: dict[str, Conflict | None] = {}
        self._effects: dict[tuple[str, frozenset[str]], Preview] = {}
        self._records: tuple[int, dict[str, TestRecord]] = (-1, {})

    @property
    def fixes(self) -> tuple[Fix, ...]:
        return self.review.fixes

    @property
    def rows(self) -> tuple[Fix, ...]:
        """Row 0, the commit of all test and doc fixes, where there is one, and the fixes."""
        row = self.review.branch.tests
        return (*((row,) if row is not None else ()), *self.fixes, *self.review.left_out)

    @property
    def open_rows(self) -> tuple[Fix, ...]:
        """The rows that wait for a verdict; row 0 waits while one of its parts does."""
        row = self.review.branch.tests
        is_decided = row is None or self.review.verdict(row) in (Verdict.KEEP, Verdict.REVERT)
        if not is_decided and self.review.parts is not None:
            is_decided = not self.review.open_parts
        return (*((row,) if row is not None and not is_decided else ()), *self.review.open_fixes)

    def fix_of(self, row: Fix) -> Fix:
        """Return the fix that a row is a hunk of; any other row itself."""
        return self.review.find(row.hunk_of) or row if row.hunk_of else row

    def row_in_place_of(self, earlier: Fix) -> Fix | None:
        """Return the row that is what another one was before the branch was made anew."""
        same = (fix for fix in self.rows if fix.id == earlier.id)
        came = (fix for fix in self.rows if (old := self.returned(fix)) is not None and old.old == earlier.id)
        of_rank = (fix for fix in self.rows if fix.rank == earlier.rank)
        return next((fix for found in (same, came, of_rank) for fix in found), None)

    def sent_back(self, fix: Fix) -> TestRecord | None:
        """Return the test whose agent this very commit was sent back to; None when it was not."""
        return next(
            (rec for rec in self.records_of(fix) if rec.revision is not None and rec.revision.fix == fix.id), None
        )

    def returned(self, fix: Fix) -> ReturnedFix | None:
        """Return what this fix was before its author changed it; None when it was not sent back."""
        return self._returned.get(fix.id)

    # What was computed.

    def with_it_reverted(self, fix: Fix) -> frozenset[str]:
        return self.review.reverted | {fix.id}

    def known_effect(self, fix: Fix) -> Preview | None:
        """Return what the plan would be with this fix reverted too, if that was computed already."""
        return self._effects.get((fix.id, self.with_it_reverted(fix)))

    def keep_effect(self, fix: Fix, reverted: frozenset[str], preview: Preview) -> None:
        self._effects[fix.id, reverted] = preview

    def forget_effects(self) -> None:
        """Forget what was computed: a conflict was resolved, so that reverts go which did not."""
        self._effects.clear()
        self._alone.clear()

    async def preview_each_alone(self, is_open: Callable[[], bool], on_change: Callable[[Fix], None]) -> None:
        """Compute for each fix whether it can be reverted alone, until the review is closed."""
        while is_open() and (fix := next((fix for fix in self.fixes if fix.id not in self._alone), None)) is not None:
            self._alone[fix.id] = await asyncio.to_thread(self.review.conflict_when_reverted_alone, fix)
            on_change(fix)

    # Facts.

    def record_of(self, branch: str) -> TestRecord | None:
        state = self._state()
        if self._records[0] != state.last_seq:
            self._records = (state.last_seq, {record.branch: record for record in state.tests() if record.branch})
        return self._records[1].get(branch)

    def records_of(self, fix: Fix) -> list[TestRecord]:
        """Return the tests whose agents made a fix, the chosen one first."""
        found = (self.record_of(branch) for branch in fix.branches)
        return [record for record in found if record is not None]

    def number(self, commit: str) -> str:
        """Return a row as people name it here: `#5`, `#5.2` a hunk, `part 0.3`, or its short id when it is none."""
        fix = self.review.find(commit)
        if fix is not None and fix.hunk_of:
            return f"#{fix.rank}.{fix.position + 1}"
        if fix in self.review.known_parts:
            return f"part 0.{self.review.known_parts.index(fix) + 1}"
        return f"#{fix.rank}" if fix else commit[:9]

    def fix_facts(self, fix: Fix) -> FixFacts:
        verdict = self.review.verdict(fix)
        measured = self._measured.get(fix.id)
        blocked = {item.commit for item in self.preview.conflicts} if self.preview is not None else set()
        in_conflict = (fix.hunk_of or fix.id) in blocked and (not fix.hunk_of or fix.id in self.review.reverted)
        return FixFacts(
            rank=self._row_number(fix),
            title=self._row_title(fix),
            verdict=self._way_back(fix) or (verdict.value if verdict else self._verdict_of_parts(fix)),
            hunks_reverted=len(self._hunks_reverted(fix)),
            is_part=fix in self.review.known_parts,
            is_left_out=fix in self.review.left_out,
            weaker=sum(teeth.is_weaker for teeth in self.teeth_of(fix)),
            added=fix.added,
            without_lines=fix.change_without_lines,
            removed=fix.removed,
            greens=len(measured.turned_green) if measured and (measured.is_measured or measured.turned_green) else None,
            reds=len(measured.broken) if measured else 0,
            agents=len(fix.agents),
            is_conflicting=in_conflict,
            is_stuck=self._alone.get(fix.id) is not None,
            is_risky=fix.id in self.review.branch.risks,
        )

    def name_with_commit(self, fix: Fix) -> str:
        """Return how a row is named above its diff; a part or a hunk is no commit of the branch."""
        is_piece = bool(fix.hunk_of) or fix in self.review.known_parts
        return self.number(fix.id) if is_piece else f"#{fix.rank} {fix.id[:9]}"

    def _row_number(self, fix: Fix) -> int:
        parts = self.review.known_parts
        return parts.index(fix) + 1 if fix in parts else fix.position + 1 if fix.hunk_of else fix.rank

    def _hunks_reverted(self, fix: Fix) -> tuple[Fix, ...]:
        """Return the hunks of a fix that the plan reverts, where it keeps others."""
        hunks = self.review.known_hunks(fix)
        return tuple(hunk for hunk in hunks if hunk.id in self.review.reverted)

    def _row_title(self, fix: Fix) -> str:
        if fix is not self.review.branch.tests:
            return fix.title
        parts = self.review.known_parts
        out = sum(self.review.verdict(part) is Verdict.REVERT for part in parts)
        words = (counted(len(parts), "part") if parts else "", f"{out} left out" if out else "")
        return f"[TEST/DOC] {': '.join(filter(None, (' · '.join(filter(None, words)), fix.title)))}"

    def _way_back(self, fix: Fix) -> str:
        """Return where a fix is that was sent back: with its author, back as it was, or new; "" for all others."""
        record = self.sent_back(fix)
        if record is not None:
            return (
                ""
                if self.review.verdict(fix) in (Verdict.KEEP, Verdict.REVERT) and record.is_finished
                else ("back" if record.is_finished else "sent")
            )
        return "new" if self.returned(fix) is not None and self.review.verdict(fix) is None else ""

    def _verdict_of_parts(self, fix: Fix) -> str:
        """Return the verdict of row 0 when each of its parts has one."""
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
            doubt=next(iter((*review.branch.risk_lines, *review.branch.doubts)), ""),
            cost=cost_of_each(self._state().spending, words.count(Verdict.KEEP), len(self.fixes)),
        )

    def _commits_of_plan(self) -> int:
        """Return how many commits the branch has with the plan's reverts on top."""
        preview = self.preview
        reverts = sum(fix.id in self.review.reverted for fix in self.fixes) + len(self.fixes_reverted_in_part)
        return len(self.review.branch.commits) + reverts - (len(preview.unchanging) if preview else 0)

    @property
    def fixes_reverted_in_part(self) -> tuple[Fix, ...]:
        """The fixes of which the plan reverts some hunks and keeps the others."""
        return tuple(fix for fix in self.fixes if self._hunks_reverted(fix))

    def named(self, commits: Sequence[str]) -> str:
        """Return some rows as people name them: `#2+#6+#7 and 4 more`."""
        more = f" and {len(commits) - 3} more" if len(commits) > 3 else ""
        return "+".join(self.number(commit) for commit in commits[:3]) + more

    @property
    def running_here(self) -> Progress | None:
        """What this room runs in the background, and how far it is."""
        run = self.test_runner.running
        return run.progress if run is not None else self.changed_tests.progress

    @property
    def running(self) -> Progress | None:
        """What runs in the background, here or in another process."""
        return self.running_here or self.changed_tests.elsewhere

    def teeth_of(self, fix: Fix) -> tuple[TestTeeth, ...]:
        """Return the changed tests of a row, the weakest first."""
        is_row_0 = fix is self.review.branch.tests
        return tuple(self.changed_tests.of_row(fix, () if is_row_0 else self.records_of(fix)))

    def _parts_words(self) -> str:
        """Return what became of the parts of row 0: how many are left out, else how many are open."""
        review = self.review
        out, still_open = len(review.reverted & {part.id for part in review.known_parts}), len(review.open_parts)
        return f"{counted(out, 'part')} out" if out else f"{counted(still_open, 'part')} open" if still_open else ""

    def doubts_of_plan(self) -> list[str]:
        """Return what was measured against this plan, to be said before it is applied."""
        found = []
        for fix in self.fixes:
            measured = self._measured.get(fix.id)
            if measured and measured.is_measured and measured.broken and fix.id not in self.review.reverted:
                more = f" and {len(measured.broken) - 1} more" if len(measured.broken) > 1 else ""
                found.append(f"! #{fix.rank} stays, and breaks {plain(measured.broken[0], 100)}{more}")
        weaker = [teeth for teeth in self.changed_tests.weaker if self._stays(teeth)]
        if weaker:
            found.append(f"! {counted(len(weaker), 'weaker test')} in it, {plain(weaker[0].test, 100)} first")
        reverted = (self._measured[commit] for commit in self.review.reverted if commit in self._measured)
        given_up = {test for measured in reverted for test in measured.turned_green}
        if given_up:
            found.append(f"! it gives up {counted(len(given_up), 'test')} that the reverted fixes turned green")
        run = self.test_runner.run_of_plan
        if run is not None and run.is_over and run.reverted == self.review.reverted and run.went_red:
            found.append(f"! without them {counted(len(run.went_red), 'test')} went red: {plain(run.went_red[0], 100)}")
        return found

    def _stays(self, teeth: TestTeeth) -> bool:
        """Return whether no part that changes this test is left out."""
        out = (part for part in self.review.known_parts if part.id in self.review.reverted)
        return not any(teeth in self.teeth_of(part) for part in out)

    def _plan_test_result(self) -> str:
        run = self.test_runner.run_of_plan
        if run is None or not run.is_over or run.reverted != self.review.reverted or not run.after:
            return ""
        passed = sum(outcome == PASSED for outcome in run.after.values())
        red = len(run.went_red)
        return f"{passed} of {len(run.tests)} tests pass" + (f", {red} went red" if red else "")

    def conflict_of(self, fix: Fix) -> Conflict | None:
        """Return the conflict of reverting a fix within the plan, as far as it is known."""
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
        """Return who made what was left out: the test, else the branch or the commit."""
        record = self.record_of(left.branch)
        return record.test if record else left.branch or left.commit[:12]

    def _finished_run_of(self, fix: Fix) -> TestRunFacts | None:
        """Return the run of tests without a fix, if it is over and still about this plan."""
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
        """Return who sent a fix back and what became of it in one line, and what was said."""
        record, returned = self.sent_back(fix), self.returned(fix)
        if record is not None and record.revision is not None:
            came = "its author has changed nothing" if record.is_finished else "its author is at it"
            return f"sent back by {record.revision.by}: {came}", record.revision.comment
        if returned is not None:
            return f"came back from its author, sent by {returned.by}: v shows the difference", returned.comment
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
            is_measured=measured.is_measured if measured else False,
            agents=() if fix is self.review.branch.tests else tuple(self.records_of(fix)),
            runs=self._runs_of(fix),
            teeth=self.teeth_of(fix),
            sent_back=self._words_of_the_way_back(fix),
            risks=self.review.branch.risks.get(fix.hunk_of or fix.id, ()),
            hunks_reverted=tuple(f"{self.number(hunk.id)} {hunk.title}" for hunk in self._hunks_reverted(fix)),
        )


def body_of(message: str) -> str:
    """Return a commit's message without its subject and the integrator's trailers: these have a place of their own."""
    lines = message.strip().split("\n")[1:]
    while lines and (not lines[-1].strip() or lines[-1].startswith(TRAILERS)):
        lines.pop()
    return "\n".join(lines).strip("\n")
