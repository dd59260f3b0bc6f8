"""What the merge view shows of the fix under the cursor: its diff, its evidence, and what a revert would do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from textual.containers import Container

from swarm_tui.model.diff import Diff
from swarm_tui.model.fixes import Fix
from swarm_tui.model.formatting import counted
from swarm_tui.room.draw.code import draw_ahead
from swarm_tui.room.draw.fixes import draw_effect, draw_evidence
from swarm_tui.room.draw.screen_line import LOW
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.diff import EMPTY, DiffLines
from swarm_tui.room.widgets.lines import TextLines

REST_SECONDS = 0.03
"""How long the cursor rests on a fix before more is computed about it than its diff."""


class FixDetails:
    """Shows one fix; what takes longer than a frame is computed in threads, and ahead for its neighbours."""

    def __init__(self, screen: FixesServices) -> None:
        self._screen = screen
        self.diff = DiffLines(id="diff")
        self.evidence = TextLines(id="evidence")
        self.reading = Container(self.diff, self.evidence, id="reading")
        self.effect = Band(id="effect")

    def show(self, shown: Sequence[Fix]) -> None:
        """Show the fix under the cursor: its diff at once when it was read ahead, the rest when the cursor rests."""
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            self.diff.show(EMPTY)
            return
        self._show_diff(state, fix)
        self.show_evidence()
        self.show_effect()
        place = shown.index(fix)
        near = (place, place + 1, place - 1, place + 2, place + 3)
        around = [shown[index] for index in near if 0 <= index < len(shown)]
        self._screen.start(partial(self._read_around, state, fix, around), "read")

    async def _read_around(self, state: ReviewState, fix: Fix, around: Sequence[Fix]) -> None:
        await asyncio.to_thread(state.review.diff, fix)
        if self._screen.current_fix is fix:
            self._show_diff(state, fix)
        # Threads take turns with the drawing: what is read ahead waits for the frame that shows this fix.
        await asyncio.sleep(REST_SECONDS)
        await self.compute_effect(state, fix)
        for near in around:
            diff = await asyncio.to_thread(state.review.diff, near)
            await asyncio.to_thread(draw_ahead, diff, self.diff.visible_rows)
            await asyncio.to_thread(state.review.content, near)

    def _show_diff(self, state: ReviewState, fix: Fix) -> None:
        diff = state.review.known_diff(fix)
        if diff is not None:
            self.show_diff(diff, f"{state.name_with_commit(fix)} {fix.title}")

    def show_diff(self, diff: Diff, title: str) -> None:
        """Show a diff in the place of the fix's, until the cursor moves on."""
        self.diff.show(diff)
        self.diff.title(title, counted(len(diff.files), "file"))

    def show_evidence(self, *, keeps_place: bool = False) -> None:
        """Show the evidence for the fix under the cursor, from its beginning or where it was scrolled to."""
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return
        self.evidence.show(draw_evidence(state.evidence(fix), max(20, self.evidence.text_width)))
        if not keeps_place:
            self.evidence.scroll_rows(0)
        agents = counted(len(fix.agents), "agent") if fix.agents else ""
        self.evidence.title(f"Evidence for {state.number(fix.id)} {fix.title}", agents)

    async def compute_effect(self, state: ReviewState, fix: Fix) -> None:
        """Compute what the plan would be with the fix reverted too, and show it."""
        reverted = state.with_it_reverted(fix)
        if state.known_effect(fix) is None:
            state.keep_effect(fix, reverted, await asyncio.to_thread(state.review.preview_of, reverted))
        self.show_effect()

    def show_effect(self) -> None:
        """Show what a revert of the fix under the cursor would do, as far as it is known."""
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is not None and fix is not None and self._screen.room.size.height < LOW:
            self.effect.show([])
        elif state is not None and fix is not None:
            self.effect.show([draw_effect(state.effect_facts(fix), self._screen.room.size.width)])
