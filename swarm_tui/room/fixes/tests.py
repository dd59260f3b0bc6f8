"""Test runs from the Fixes screen: without one fix, or all tests on the plan."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from swarm_tui.errors import SwarmError
from swarm_tui.room.actions import Action, FixesServices
from swarm_tui.room.fixes.session import ReviewState, TestRunFacts

if TYPE_CHECKING:
    from textual.worker import Worker


LOOK_SECONDS: Final = 1.0


class TestRunCommands:
    """Actions that start or stop test runs in the background. One runs at a time."""

    __test__ = False

    def __init__(self, screen: FixesServices, on_change: Callable[[], None]) -> None:
        self._screen = screen
        self._on_change = on_change
        self._worker: Worker[None] | None = None

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("fixes.test", ("T",), "test", "Run the tests of this fix without it: which go red?",
                   self.run_without_fix, self.why_not),
            Action("fixes.test_plan", ("V",), "", "Run all tests of the sweep on the plan",
                   self.run_plan, self.why_not),
            Action("fixes.teeth", ("W",), "weaker", "Measure whether changed tests detect fewer bugs than before",
                   self.measure_teeth, self.why_no_teeth),
            Action("fixes.stop", ("X",), "", "Stop the test run in the background", self.stop, self.why_not_stop),
        )  # fmt: skip

    def why_not(self) -> str:
        state = self._screen.review_state
        if state is not None and state.running_here:
            return f"{state.running_here.words}: one run at a time, press X to stop it"
        return self._screen.why_no_fix()

    def why_no_teeth(self) -> str:
        why_not, state = self.why_not(), self._screen.review_state
        if why_not or state is None:
            return why_not
        if not state.changed_tests.known:
            return "this branch changes no test"
        if state.changed_tests.elsewhere is not None:
            return f"{state.changed_tests.elsewhere.words}: measured in the background, press X to stop"
        return "" if state.changed_tests.unmeasured else f"all changed tests are measured: {self._weaker_words(state)}"

    @staticmethod
    def _weaker_words(state: ReviewState) -> str:
        return f"{len(state.changed_tests.weaker)} of {len(state.changed_tests.known)} are weaker"

    def why_not_stop(self) -> str:
        state = self._screen.review_state
        return "" if state is not None and state.running else "no test run in the background"

    async def load_teeth(self, state: ReviewState) -> None:
        """Load the results for the changed tests and show them."""
        try:
            rows = (*state.rows, *state.review.known_parts)
            await state.changed_tests.load([row.commit for row in rows])
        except SwarmError as error:
            self._screen.show_message(f"cannot read the changed tests: {error}", "warning")
        if state is self._screen.review_state:
            self._on_change()

    async def follow_teeth(self, state: ReviewState) -> None:
        """Show progress and results of a measurement in another process, until the review is closed."""
        changed = state.changed_tests
        while state is self._screen.review_state:
            was_measuring = changed.elsewhere is not None
            if changed.look_elsewhere():
                self._on_change()
            if was_measuring and changed.elsewhere is None and changed.progress is None:
                await self.load_teeth(state)
                if not changed.unmeasured:
                    self._screen.show_message(changed.summary, "warning" if changed.weaker else "good")
            await asyncio.sleep(LOOK_SECONDS)

    def run_without_fix(self) -> None:
        """Run the tests of the fix under the cursor on the plan without this fix."""
        state, fix = self._screen.reviewed_fix()
        reverted = state.with_it_reverted(fix)
        self._start(lambda: self._summed_up(state.test_runner.run_without_fix(fix, reverted, self._on_change)))

    def run_plan(self) -> None:
        """Run all tests of the sweep on the tree of the plan."""
        state, _ = self._screen.reviewed_fix()
        reverted = state.review.reverted
        self._start(lambda: self._summed_up(state.test_runner.run_plan(reverted, self._on_change)))

    def measure_teeth(self) -> None:
        """Run the changed tests on mutants of the program."""
        state, _ = self._screen.reviewed_fix()

        async def measure() -> tuple[str, str]:
            sentence = await state.changed_tests.measure(self._on_change)
            return sentence, "warning" if state.changed_tests.weaker else "good"

        self._start(measure)

    def stop(self) -> None:
        """Stop the test run of this room, or else a measurement in another process. Results so far are kept."""
        state = self._screen.review_state
        if self._worker is not None and state is not None and state.running_here:
            self._worker.cancel()
            self._screen.show_message("stopped")
        elif state is not None:
            state.changed_tests.stop_elsewhere()
            self._screen.show_message("stopped: press W to continue")

    def end(self) -> None:
        """Stop the test run without a message, because its review is closed."""
        if self._worker is not None:
            self._worker.cancel()

    async def _summed_up(self, run: Awaitable[TestRunFacts]) -> tuple[str, str]:
        return run_summary(await run)

    def _start(self, run: Callable[[], Awaitable[tuple[str, str]]]) -> None:
        self._worker = self._screen.start(partial(self._run, run), "tests", is_exclusive=False)

    async def _run(self, run: Callable[[], Awaitable[tuple[str, str]]]) -> None:
        try:
            sentence, level = await run()
        except SwarmError as error:
            self._screen.show_message(str(error), "error")
            return
        self._screen.show_message(sentence, level)


def run_summary(run: TestRunFacts) -> tuple[str, str]:
    """Return a summary of a test run, and its level."""
    red = run.went_red
    if red:
        return f"{run.about}: {len(red)} of {len(run.tests)} tests go red, first {red[0]}", "warning"
    if run.complaint:
        return f"{run.about}: {run.complaint}", "error"
    if not run.tests:
        return f"{run.about}: no related tests found", "warning"
    return f"{run.about}: no test goes red ({len(run.tests)} were run)", "good"
