"""Swapping a fix in that the integrator left out, in the place of those that it fights with; and out again."""

from __future__ import annotations

import asyncio
from functools import partial

from swarm_tui.model.fixes import Fix
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.actions import Action
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.dialog import Choosable, PickScreen
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.triage.ways_out import WaysOut, ways_out


class Swapping:
    """The action that takes a left-out fix into the plan."""

    def __init__(self, screen: FixesServices) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("fixes.swap", ("s",), "", "Swap a left-out fix in, for those that it fights with; or out again",
                   self.swap, self.why_not),
        )  # fmt: skip

    def why_not(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        return "" if fix in state.review.left_out else "it is on the branch; a row that says `out` can be swapped in"

    def swap(self) -> None:
        state, fix = self._screen.reviewed_fix()
        if fix in state.review.taken:
            state.review.set_verdict(fix, Verdict.CLEAR)
            self._screen.show_message(f"#{fix.rank} is out again; what it took the place of stays as it was decided")
            self._screen.show_verdicts()
            return
        self._screen.show_message(f"looks what #{fix.rank} fights with …")
        self._screen.start(partial(self._look, state, fix), "swap")

    async def _look(self, state: ReviewState, fix: Fix) -> None:
        reverted = state.with_it_reverted(fix)
        found = await asyncio.to_thread(ways_out, state.review, reverted)
        if self._screen.current_fix is not fix or reverted != state.with_it_reverted(fix):
            return
        if not found.sets:
            self._screen.show_message(
                f"#{fix.rank} cannot be taken in: a commit that is no fix stands in the way", "error"
            )
        elif len(found.sets) == 1:
            self._take(state, fix, found.sets[0])
        else:
            self._ask(state, fix, found)

    def _ask(self, state: ReviewState, fix: Fix, found: WaysOut) -> None:
        entries = [
            Choosable(
                str(number), f"in the place of {_names(fixes)}", plain(" · ".join(one.title for one in fixes), 50)
            )
            for number, fixes in enumerate(found.sets)
        ]

        def take(values: tuple[str, ...] | None) -> None:
            if values:
                self._take(state, fix, found.sets[int(values[0])])

        self._screen.room.push_screen(PickScreen(f"Swap #{fix.rank} in", entries), take)

    def _take(self, state: ReviewState, fix: Fix, others: tuple[Fix, ...]) -> None:
        instead = f" for {_names(others)}" if others else ""
        why = f"#{fix.rank} of {', '.join(fix.agents) or 'another agent'} stands{instead}" if others else ""
        verdicts = [*((other, Verdict.REVERT) for other in others), (fix, Verdict.KEEP)]
        state.review.set_verdicts(verdicts, why)
        self._screen.show_verdicts()
        self._screen.show_message(f"#{fix.rank} is in the plan{instead}: V tests it, z takes all back", "good")


def _names(fixes: tuple[Fix, ...]) -> str:
    return ", ".join(f"#{fix.rank}" for fix in fixes)
