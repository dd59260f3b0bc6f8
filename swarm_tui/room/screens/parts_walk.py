"""The walk through one row: the list shows the parts of row 0, or the hunks of a fix, until Esc."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from swarm_tui.errors import SwarmError
from swarm_tui.model.fixes import Fix
from swarm_tui.model.formatting import counted
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.actions import Action
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.services import FixesServices


class PartsWalk:
    """Which rows the list of the merge view shows: row 0 and the fixes, the parts of row 0, or the hunks of a fix."""

    def __init__(self, screen: FixesServices, show_rows: Callable[[], None]) -> None:
        self._screen = screen
        self._show_rows = show_rows
        self.of: Fix | None = None
        """The row that is walked; None while the fixes are shown."""

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("fixes.hunks", ("H",), "hunks", "Keep or revert this fix hunk by hunk", self.enter_hunks,
                   self.why_no_hunks, rank=6),
        )  # fmt: skip

    def rows(self) -> tuple[Fix, ...]:
        state = self._screen.review_state
        if state is None:
            return ()
        if self.of is None:
            return state.rows
        if self.of is not state.review.branch.tests:
            return state.review.known_hunks(self.of)
        # Those that make a test weaker first: they are what a person should see.
        weaker = {part.id for part in state.review.known_parts if any(each.is_weaker for each in state.teeth_of(part))}
        return tuple(sorted(state.review.known_parts, key=lambda part: part.id not in weaker))

    def still_open(self) -> frozenset[str]:
        """Return the rows shown that wait for a verdict; row 0 waits while one of its parts does."""
        state = self._screen.review_state
        if state is None:
            return frozenset()
        if self.of is None:
            return frozenset(row.id for row in state.open_rows)
        return frozenset(row.id for row in self.rows() if state.review.verdict(row) in (None, Verdict.LATER))

    def nothing_open(self) -> str:
        if self.of is not None:
            return f"every {self._word()} has its verdict: Esc goes back to the fixes"
        return "every fix has its verdict: A applies the plan"

    def title(self) -> str:
        state = self._screen.review_state
        if state is None:
            return "Ranked 0"
        if self.of is None:
            unlisted = state.review.branch.unlisted
            more = f" · {counted(unlisted, 'commit')} not listed: --all" if unlisted else ""
            return f"Ranked {len(state.fixes)}{more}"
        count = counted(len(self.rows()), self._word())
        if self.of is not state.review.branch.tests:
            return f"#{self.of.rank} {count}"
        return f"[TEST/DOC] {count}{', woven into one' if self._word() == 'hunk' else ''}"

    def _word(self) -> str:
        state = self._screen.review_state
        parts = state.review.parts if state is not None else None
        is_row_0 = state is not None and self.of is state.review.branch.tests
        return "part" if is_row_0 and parts is not None and not parts.are_hunks else "hunk"

    def is_at_row_0(self) -> bool:
        state, row = self._screen.review_state, self._screen.current_fix
        return state is not None and row is not None and row is state.review.branch.tests

    def enter(self) -> None:
        """Show the parts of row 0 in the place of the fixes."""
        state, row = self._screen.reviewed_fix()
        self._screen.start(partial(self._enter, state, row), "parts")

    def why_no_hunks(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        if self.of is not None:
            is_part = self.of is state.review.branch.tests
            return "a part is kept or left out as a whole" if is_part else "Esc goes back to the fixes"
        is_out = fix in state.review.left_out and fix not in state.review.taken
        return "it is not in the plan: s swaps it in, then its hunks can be left out" if is_out else ""

    def enter_hunks(self) -> None:
        """Show the hunks of the fix under the cursor in the place of the fixes; of row 0 its parts."""
        state, fix = self._screen.reviewed_fix()
        self._screen.start(partial(self._enter, state, fix), "parts")

    async def _enter(self, state: ReviewState, row: Fix) -> None:
        is_row_0 = row is state.review.branch.tests
        if not await (self.load(state) if is_row_0 else self._load_hunks(state, row)):
            return
        if state is not self._screen.review_state or self._screen.current_fix is not row:
            return
        pieces = state.review.known_parts if is_row_0 else state.review.known_hunks(row)
        if not pieces or (len(pieces) == 1 and not is_row_0):
            self._screen.show_message(_why_not_split(pieces), "warning")
            return
        self.of = row
        self._show_rows()
        still_open = self.still_open()
        first = next((part for part in self.rows() if part.id in still_open), self.rows()[0])
        self._screen.show_fix(first)

    async def _load_hunks(self, state: ReviewState, fix: Fix) -> bool:
        try:
            await asyncio.to_thread(state.review.load_hunks, fix)
        except SwarmError as error:
            self._screen.show_message(f"#{fix.rank} cannot be taken apart: {error}", "error")
            return False
        return True

    async def load(self, state: ReviewState) -> bool:
        """Take row 0 apart; return whether that was possible."""
        if state.review.branch.tests is None:
            return False
        try:
            await asyncio.to_thread(state.review.load_parts)
        except SwarmError as error:
            self._screen.show_message(f"row 0 cannot be taken apart: {error}", "error")
            return False
        return True

    def leave(self) -> bool:
        """Show the fixes again, the cursor on the row that was walked; return False when they are shown already."""
        row, self.of = self.of, None
        if row is None:
            return False
        self._show_rows()
        self._screen.show_fix(row)
        return True


def _why_not_split(pieces: Sequence[Fix]) -> str:
    if not pieces:
        return "it changes nothing, so it has no parts"
    return f"it is one piece, {pieces[0].title}: y or n decides about it"
