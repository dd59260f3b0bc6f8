"""The line about the plan of verdicts: how many fixes are kept and reverted, and whether the plan builds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from swarm_tui.errors import SwarmError
from swarm_tui.room.draw.fixes import draw_plan
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.fix_details import FixDetails
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.room.widgets.band import Band
from swarm_tui.triage.apply import applied_branch


class PlanPanel:
    """Shows the plan and computes its preview."""

    def __init__(self, screen: FixesServices, details: FixDetails, redraw_fixes: Callable[[], None]) -> None:
        self._screen = screen
        self._details = details
        self._redraw_fixes = redraw_fixes
        self.band = Band(id="plan")
        self.closing_line = ""
        """What the review has come to, for scripts; it outlives the screen."""

    def show(self) -> None:
        state = self._screen.review_state
        if state is not None:
            self.band.show([draw_plan(state.plan_facts(), self._screen.room.size.width)])

    def show_applied(self, branch: str) -> None:
        state = self._screen.review_state
        if state is not None:
            state.applied = branch
            self.show()

    def show_verdicts(self) -> None:
        """Draw the verdicts, and compute the preview of the plan."""
        state = self._screen.review_state
        if state is None:
            return
        state.applied = ""
        state.preview = None
        self.closing_line = state.review.closing_line()
        self._redraw_fixes()
        self.show()
        self._details.show_effect()
        self._details.show_evidence()
        self._screen.start(partial(self._compute, state), "plan")

    async def _compute(self, state: ReviewState) -> None:
        try:
            state.preview = await asyncio.to_thread(state.review.preview)
            state.applied = await asyncio.to_thread(applied_branch, state.review, state.preview, state.sweep)
        except SwarmError as error:
            self._screen.show_message(str(error), "error")
            return
        self._redraw_fixes()
        self.show()
        fix = self._screen.current_fix
        if fix is not None:
            await self._details.compute_effect(state, fix)

    def show_net_diff(self) -> None:
        """Show what the plan as a whole does to the base, until the cursor moves on."""
        state = self._screen.review_state
        if state is not None:
            self._screen.start(partial(self._show_net_diff, state), "net")

    async def _show_net_diff(self, state: ReviewState) -> None:
        diff = await asyncio.to_thread(state.review.net_diff)
        if diff.files:
            self._details.show_diff(diff, "The plan as a whole, against the base")
            return
        is_conflicting = state.preview is not None and not state.preview.is_clean
        self._screen.show_message("the plan does not build yet" if is_conflicting else "no difference")
