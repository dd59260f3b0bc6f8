"""Screen 3: the merge view. One ranked fix after the other: its diff, its evidence, and a verdict by one key.

Verdicts are a plan until it is applied; what the plan gives is computed beside the repository.
"""

from __future__ import annotations

from collections.abc import Awaitable

from swarm_tui.errors import SwarmError
from swarm_tui.model.fixes import Fix
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.draw.fixes import draw_report
from swarm_tui.room.merge_state import MergeState
from swarm_tui.room.screens.fixes_view import FixesView
from swarm_tui.room.test_runs import TestRunFacts
from swarm_tui.room.widgets.lines import Lines


class FixesScreen(FixesView):
    """The walk through the ranked fixes."""

    # Verdicts.

    def _why_no_verdict(self) -> str:
        if self.merge is None:
            return self.trouble or ("the branch is still being read" if self.is_opening else "there are no fixes yet")
        return "" if self.lines.current is not None else "there is no fix under the cursor"

    why_not_keep = why_not_revert = why_not_later = why_not_clear = why_not_evidence = _why_no_verdict

    def _give(self, verdict: Verdict) -> None:
        merge, fix = self.merge, self.lines.current
        assert merge is not None, "asked for by why_not"
        assert fix is not None, "asked for by why_not"
        merge.review.give(fix, verdict)
        if verdict is not Verdict.CLEAR:
            self._to_next_open(fix)
        self.verdicts_changed()

    def _to_next_open(self, fix: Fix) -> None:
        assert self.merge is not None, "only called with a review"
        still_open = {found.id for found in self.merge.review.open_fixes}
        place = self.lines.shown.index(fix)
        after = [
            number for number in range(place + 1, len(self.lines.shown)) if self.lines.shown[number].id in still_open
        ]
        before = [number for number in range(place) if self.lines.shown[number].id in still_open]
        if after or before:
            self.lines.move_to((after or before)[0])
        elif not still_open:
            self.say("every fix has its verdict: A applies the plan", "good")

    def do_keep(self) -> None:
        self._give(Verdict.KEEP)

    def do_revert(self) -> None:
        self._give(Verdict.REVERT)

    def do_later(self) -> None:
        self._give(Verdict.LATER)

    def do_clear(self) -> None:
        self._give(Verdict.CLEAR)

    def why_not_undo(self) -> str:
        return "" if self.merge is not None else "there is nothing to undo"

    why_not_redo = why_not_undo

    def do_undo(self) -> None:
        self._step(is_undo=True)

    def do_redo(self) -> None:
        self._step(is_undo=False)

    def _step(self, *, is_undo: bool) -> None:
        assert self.merge is not None, "asked for by why_not"
        fix = self.merge.review.undo() if is_undo else self.merge.review.redo()
        if fix is None:
            self.say("you have given no verdict to undo" if is_undo else "nothing was undone")
            return
        if fix in self.lines.shown:
            self.lines.move_to(self.lines.shown.index(fix))
        self.verdicts_changed()

    # Looking.

    def do_evidence(self) -> None:
        self.wants_evidence = not self.has_class("-evidence")
        self.place_evidence()
        fix = self.lines.current
        if fix is not None:
            self.call_after_refresh(self.show_evidence, fix)

    def _reading(self) -> Lines:
        return self.evidence if self.has_class("-evidence") and not self.has_class("-tall") else self.diff

    def do_diff_down(self) -> None:
        self._reading().scroll_rows(self._reading().first_visible + 3)

    def do_diff_up(self) -> None:
        self._reading().scroll_rows(self._reading().first_visible - 3)

    def do_diff_page(self) -> None:
        self._reading().scroll_rows(self._reading().first_visible + self._reading().visible_rows - 1)

    def do_next_hunk(self) -> None:
        if not self.diff.move_hunk(1):
            self.say("this was the last hunk")

    def do_previous_hunk(self) -> None:
        if not self.diff.move_hunk(-1):
            self.say("this was the first hunk")

    def set_filter(self, words: str) -> None:
        fix = self.lines.current
        self.filter_words = words
        if self.merge is None:
            return
        self.show_fixes()
        if fix in self.lines.shown:
            self.lines.move_to(self.lines.shown.index(fix))
        self.fix_changed()

    def _search(self, step: int) -> None:
        if self.lines.shown:
            self.lines.move_to((self.lines.cursor + step) % len(self.lines.shown))

    def do_next_match(self) -> None:
        self._search(1)

    def do_previous_match(self) -> None:
        self._search(-1)

    def current_tests(self) -> tuple[str, ...]:
        fix = self.lines.current
        return tuple(record.test for record in self.merge.records_of(fix)) if self.merge and fix else ()

    def name_to_copy(self) -> str:
        fix = self.lines.current
        return fix.id if fix else ""

    def why_not_open(self) -> str:
        return "" if self.current_tests() else "no test of this sweep is known to have led to this fix"

    def do_open(self) -> None:
        self.room.show_test(self.current_tests()[0])

    def why_not_report(self) -> str:
        if self.merge is None:
            return self._why_no_verdict()
        return "" if draw_report(self.merge.report(), 80) else "the integrator has reported nothing besides its fixes"

    def do_report(self) -> None:
        from swarm_tui.room.screens.text import ReadingScreen

        assert self.merge is not None, "asked for by why_not"
        report = self.merge.report()
        self.app.push_screen(ReadingScreen("The integrator's report", lambda width: draw_report(report, width)))

    def why_not_net(self) -> str:
        return self._why_no_verdict()

    def do_net(self) -> None:
        assert self.merge is not None, "asked for by why_not"
        self.run_worker(self.show_net_diff(self.merge), group="fixes: net", exclusive=True, exit_on_error=False)

    def why_not_pager(self) -> str:
        return self._why_no_verdict()

    def do_pager(self) -> None:
        from swarm_tui.room.screens.external_view import open_commit

        assert self.merge is not None, "asked for by why_not"
        assert self.lines.current is not None, "asked for by why_not"
        open_commit(self, self.merge, self.lines.current)

    def why_not_tree(self) -> str:
        return self._why_no_verdict()

    def do_tree(self) -> None:
        from swarm_tui.room.screens.external_view import open_tree

        assert self.merge is not None, "asked for by why_not"
        self.run_worker(open_tree(self, self.merge), group="fixes: tree", exclusive=True, exit_on_error=False)

    # What stands in the way of a revert, and the end of the review.

    def why_not_resolve(self) -> str:
        fix = self.lines.current
        if self.merge is None or fix is None:
            return self._why_no_verdict()
        return "" if self.merge.conflict_of(fix) is not None else "nothing stands in the way of reverting this fix"

    def do_resolve(self) -> None:
        from swarm_tui.room.screens.conflict import offer_resolutions

        assert self.merge is not None, "asked for by why_not"
        assert self.lines.current is not None, "asked for by why_not"
        offer_resolutions(self, self.merge, self.lines.current)

    # Running tests.

    def why_not_test(self) -> str:
        if self.merge is not None and self.merge.trials.running is not None:
            return f"{self.merge.trials.running.words}: one run at a time"
        return self._why_no_verdict()

    why_not_test_plan = why_not_test

    def do_test(self) -> None:
        merge, fix = self.merge, self.lines.current
        assert merge is not None, "asked for by why_not"
        assert fix is not None, "asked for by why_not"
        self._try_out(merge, merge.trials.without(fix, merge.with_it_reverted(fix), self._trial_changed))

    def do_test_plan(self) -> None:
        assert self.merge is not None, "asked for by why_not"
        trials = self.merge.trials
        self._try_out(self.merge, trials.whole_plan(self.merge.review.reverted, self._trial_changed))

    def _try_out(self, merge: MergeState, trial: Awaitable[TestRunFacts]) -> None:
        async def work() -> None:
            try:
                made = await trial
            except SwarmError as error:
                self.say(str(error), "error")
                return
            self.say(*tell_trial(made))

        self.run_worker(work(), group="fixes: tests", exit_on_error=False)

    def _trial_changed(self) -> None:
        self.show_plan()
        self.show_effect()
        fix = self.lines.current
        if fix is not None and self.has_class("-evidence"):
            self.show_evidence(fix, is_kept=True)

    def why_not_apply(self) -> str:
        if self.merge is None:
            return self._why_no_verdict()
        if not self.merge.review.reverted:
            return f"nothing is reverted: {self.merge.review.tip_name} is the result as it stands"
        return ""

    def do_apply(self) -> None:
        from swarm_tui.room.screens.applying import offer_apply

        assert self.merge is not None, "asked for by why_not"
        offer_apply(self, self.merge)

    def plan_applied(self, branch: str) -> None:
        """Take in that the plan was made so."""
        assert self.merge is not None, "only a review is applied"
        self.merge.applied = branch
        self.show_plan()


def tell_trial(trial: TestRunFacts) -> tuple[str, str]:
    """Return what a run of tests came to as a sentence, and its level."""
    red = trial.went_red
    if red:
        return f"{trial.about}: {len(red)} of {len(trial.tests)} tests go red, {red[0]} first", "warning"
    if trial.complaint:
        return f"{trial.about}: {trial.complaint}", "error"
    if not trial.tests:
        return f"{trial.about}: no test is known to be concerned", "warning"
    return f"{trial.about}: no test goes red ({len(trial.tests)} were run)", "good"
