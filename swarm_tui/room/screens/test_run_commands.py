"""Running tests from the merge view: those that a fix concerns, without it; or all of them, on the plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from swarm_tui.errors import SwarmError
from swarm_tui.room.actions import Action
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.room.test_runs import TestRunFacts


class TestRunCommands:
    """The actions that run tests, one run at a time."""

    __test__ = False

    def __init__(self, screen: FixesServices, on_change: Callable[[], None]) -> None:
        self._screen = screen
        self._on_change = on_change

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("fixes.test", ("T",), "test", "Run the tests that this fix concerns, without it: what goes red?",
                   self.run_without_fix, self.why_not),
            Action("fixes.test_plan", ("V",), "", "Run all tests of the sweep on what the plan makes of the branch",
                   self.run_plan, self.why_not),
        )  # fmt: skip

    def why_not(self) -> str:
        state = self._screen.review_state
        if state is not None and state.test_runner.running is not None:
            return f"{state.test_runner.running.progress}: one run at a time"
        return self._screen.why_no_fix()

    def run_without_fix(self) -> None:
        """Run the tests that the fix under the cursor concerns on the plan with that fix reverted."""
        state, fix = self._screen.reviewed_fix()
        reverted = state.with_it_reverted(fix)
        self._start(lambda: state.test_runner.run_without_fix(fix, reverted, self._on_change))

    def run_plan(self) -> None:
        """Run all tests of the sweep on the tree of the plan."""
        state, _ = self._screen.reviewed_fix()
        reverted = state.review.reverted
        self._start(lambda: state.test_runner.run_plan(reverted, self._on_change))

    def _start(self, run: Callable[[], Awaitable[TestRunFacts]]) -> None:
        self._screen.start(partial(self._run, run), "tests", is_exclusive=False)

    async def _run(self, run: Callable[[], Awaitable[TestRunFacts]]) -> None:
        try:
            facts = await run()
        except SwarmError as error:
            self._screen.show_message(str(error), "error")
            return
        self._screen.show_message(*run_summary(facts))


def run_summary(run: TestRunFacts) -> tuple[str, str]:
    """Return what a run of tests came to as a sentence, and its level."""
    red = run.went_red
    if red:
        return f"{run.about}: {len(red)} of {len(run.tests)} tests go red, {red[0]} first", "warning"
    if run.complaint:
        return f"{run.about}: {run.complaint}", "error"
    if not run.tests:
        return f"{run.about}: no test is known to be concerned", "warning"
    return f"{run.about}: no test goes red ({len(run.tests)} were run)", "good"
