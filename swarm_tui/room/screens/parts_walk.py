"""The walk through row 0: the list shows the parts of the commit of all test and doc fixes, until Esc."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from swarm_tui.errors import SwarmError
from swarm_tui.model.fixes import Fix
from swarm_tui.model.formatting import counted
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.services import FixesServices


class PartsWalk:
    """Which rows the list of the merge view shows: row 0 and the fixes, or the parts of row 0."""

    def __init__(self, screen: FixesServices, show_rows: Callable[[], None]) -> None:
        self._screen = screen
        self._show_rows = show_rows
        self.is_open = False

    def rows(self) -> tuple[Fix, ...]:
        state = self._screen.review_state
        if state is None:
            return ()
        if not self.is_open:
            return state.rows
        # Those that make a test weaker first: they are what a person should see.
        weaker = {part.id for part in state.review.known_parts if any(each.is_weaker for each in state.teeth_of(part))}
        return tuple(sorted(state.review.known_parts, key=lambda part: part.id not in weaker))

    def still_open(self) -> frozenset[str]:
        """Return the rows shown that wait for a verdict; row 0 waits while one of its parts does."""
        state = self._screen.review_state
        if state is None:
            return frozenset()
        rows = state.review.open_parts if self.is_open else state.open_rows
        return frozenset(row.id for row in rows)

    def nothing_open(self) -> str:
        if self.is_open:
            return "every part has its verdict: Esc goes back to the fixes"
        return "every fix has its verdict: A applies the plan"

    def title(self) -> str:
        state = self._screen.review_state
        if state is None or not self.is_open:
            return f"Ranked {len(state.fixes) if state else 0}"
        parts = state.review.parts
        are_hunks = parts is not None and parts.are_hunks
        count = counted(len(self.rows()), "hunk" if are_hunks else "part")
        return f"[TEST/DOC] {count}{', woven into one' if are_hunks else ''}"

    def is_at_row_0(self) -> bool:
        state, row = self._screen.review_state, self._screen.current_fix
        return state is not None and row is not None and row is state.review.branch.tests

    def enter(self) -> None:
        """Show the parts of row 0 in the place of the fixes."""
        state, _ = self._screen.reviewed_fix()
        self._screen.start(partial(self._enter, state), "parts")

    async def _enter(self, state: ReviewState) -> None:
        if not await self.load(state) or state is not self._screen.review_state:
            return
        if not state.review.known_parts:
            self._screen.show_message("it changes nothing, so it has no parts", "warning")
            return
        self.is_open = True
        self._show_rows()
        still_open = self.still_open()
        first = next((part for part in self.rows() if part.id in still_open), self.rows()[0])
        self._screen.show_fix(first)

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
        """Show the fixes again, the cursor on row 0; return False when they are shown already."""
        if not self.is_open:
            return False
        self.is_open = False
        self._show_rows()
        return True
