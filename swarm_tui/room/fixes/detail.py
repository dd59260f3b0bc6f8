"""Diff and evidence of one fix, in the pager or editor too."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from textual.containers import Container

from swarm_tui.adapters.git.checkouts import check_out_tree
from swarm_tui.adapters.processes.foreground import editor_command
from swarm_tui.adapters.processes.run import finish_in_thread
from swarm_tui.errors import SwarmError
from swarm_tui.model.commits import Diff
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Fix
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.actions import Action, FixesServices
from swarm_tui.room.draw.code import draw_ahead
from swarm_tui.room.draw.frame import LOW
from swarm_tui.room.external import run_in_terminal
from swarm_tui.room.fixes.draw import draw_effect, draw_evidence
from swarm_tui.room.fixes.session import ReviewState
from swarm_tui.room.widgets.diff import EMPTY, DiffLines
from swarm_tui.room.widgets.lines import Band, TextLines


class ExternalView:
    """Opens data of the review in other programs."""

    def __init__(self, screen: FixesServices) -> None:
        self._screen = screen

    def open_commit(self) -> None:
        """Open the commit of the fix under the cursor in git's pager."""
        state, fix = self._screen.reviewed_fix()
        if fix in state.review.known_parts:
            self._screen.show_message(
                "test changes have no commit: press o on row 0 to open the whole commit", "warning"
            )
            return
        words = ("git", "--paginate", "show", "--stat", "--patch", "--no-ext-diff", fix.hunk_of or fix.id, "--")
        # By default git tells less to exit at once if everything fits on the screen.
        problem = run_in_terminal(self._screen.room, words, state.review.repository.root, {"LESS": "R"})
        if problem:
            self._screen.show_message(problem, "error")

    def open_tree(self) -> None:
        """Check out the plan's tree in a scratch folder and open it in the editor. Changes there are discarded."""
        state, _ = self._screen.reviewed_fix()
        self._screen.start(partial(self._open_tree, state), "tree")

    async def _open_tree(self, state: ReviewState) -> None:
        preview = await asyncio.to_thread(state.review.preview)
        if preview.tree is None:
            self._screen.show_message("the plan has conflicts, so it has no tree", "warning")
            return
        with tempfile.TemporaryDirectory(prefix="swarm-tree-", ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch) / "plan"
            try:
                await finish_in_thread(
                    partial(check_out_tree, state.review.space, preview.tree, folder, parent=state.review.branch.tip)
                )
            except SwarmError as error:
                self._screen.show_message(str(error), "error")
                return
            problem = run_in_terminal(self._screen.room, (*editor_command(), "."), folder)
        message = problem or "scratch folder of the plan's tree removed"
        self._screen.show_message(message, "error" if problem else "info")


REST_SECONDS = 0.03
"""Seconds that the cursor must rest on a fix before more than its diff is computed."""


class FixDetails:
    """Shows one fix. Slow data is computed in threads, and ahead of time for its neighbours."""

    def __init__(self, screen: FixesServices) -> None:
        self._screen = screen
        self.diff = DiffLines(id="diff")
        self.evidence = TextLines(id="evidence")
        self.reading = Container(self.diff, self.evidence, id="reading")
        self.effect = Band(id="effect")

    def show(self, shown: Sequence[Fix]) -> None:
        """Show the fix under the cursor: its diff immediately if it is loaded, the rest when the cursor rests."""
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
        # Threads would slow down drawing, so loading ahead waits for the frame that shows this fix.
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
        """Show another diff in place of the fix's until the cursor moves."""
        self.diff.show(diff)
        files = diff.files
        self.diff.title(title, plain(files[0].path, 200) if len(files) == 1 else counted(len(files), "file"))

    def show_evidence(self, *, keeps_place: bool = False) -> None:
        """Show the evidence for the fix under the cursor, from its beginning or from the last scroll position."""
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return
        self.evidence.show(draw_evidence(state.evidence(fix), max(20, self.evidence.text_width)))
        if not keeps_place:
            self.evidence.scroll_rows(0)
        agents = counted(len(fix.agents), "agent") if fix.agents else ""
        self.evidence.title(f"Evidence for {state.number(fix.id)} {fix.title}", agents)

    async def compute_effect(self, state: ReviewState, fix: Fix) -> None:
        """Compute the plan with this fix also reverted, and show the effect."""
        reverted = state.with_it_reverted(fix)
        if state.known_effect(fix) is None:
            state.keep_effect(fix, reverted, await asyncio.to_thread(state.review.preview_of, reverted))
        self.show_effect()

    def show_effect(self) -> None:
        """Show the effect of reverting the fix under the cursor, if it is computed."""
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is not None and fix is not None and self._screen.room.size.height < LOW:
            self.effect.show([])
        elif state is not None and fix is not None:
            self.effect.show([draw_effect(state.effect_facts(fix), self._screen.room.size.width)])


class PartsWalk:
    """Selects the rows of the Fixes screen: row 0 and the fixes, the test changes of row 0, or the hunks of a fix."""

    def __init__(self, screen: FixesServices, show_rows: Callable[[], None]) -> None:
        self._screen = screen
        self._show_rows = show_rows
        self.of: Fix | None = None
        """The row whose changes or hunks are listed; None while the fixes are listed."""

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
        # Weaker tests come first, because they matter most.
        weaker = {part.id for part in state.review.known_parts if any(each.is_weaker for each in state.teeth_of(part))}
        return tuple(sorted(state.review.known_parts, key=lambda part: part.id not in weaker))

    def still_open(self) -> frozenset[str]:
        """Return the listed rows without a verdict. Row 0 counts as open while one of its test changes is open."""
        state = self._screen.review_state
        if state is None:
            return frozenset()
        if self.of is None:
            return frozenset(row.id for row in state.open_rows)
        return frozenset(row.id for row in self.rows() if state.review.verdict(row) in (None, Verdict.LATER))

    def nothing_open(self) -> str:
        if self.of is not None:
            return f"every {self._word()} has a verdict: press Esc to return to the fixes"
        return "every fix has a verdict: press A to apply the plan"

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
        return f"[TEST/DOC] {count}{', combined' if self._word() == 'hunk' else ''}"

    def _word(self) -> str:
        state = self._screen.review_state
        parts = state.review.parts if state is not None else None
        is_row_0 = state is not None and self.of is state.review.branch.tests
        return "test change" if is_row_0 and parts is not None and not parts.are_hunks else "hunk"

    def is_at_row_0(self) -> bool:
        state, row = self._screen.review_state, self._screen.current_fix
        return state is not None and row is not None and row is state.review.branch.tests

    def enter(self) -> None:
        """List the test changes of row 0 in place of the fixes."""
        state, row = self._screen.reviewed_fix()
        self._screen.start(partial(self._enter, state, row), "parts")

    def why_no_hunks(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        if self.of is not None:
            is_part = self.of is state.review.branch.tests
            return "a test change is kept or left out as a whole" if is_part else "press Esc to return to the fixes"
        is_out = fix in state.review.left_out and fix not in state.review.taken
        return "not in the plan: press s to swap it in, then choose hunks" if is_out else ""

    def enter_hunks(self) -> None:
        """List the hunks of the fix under the cursor in place of the fixes. For row 0, list its test changes."""
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
            self._screen.show_message(f"cannot split #{fix.rank} into hunks: {error}", "error")
            return False
        return True

    async def load(self, state: ReviewState) -> bool:
        """Split row 0 into test changes. Return whether that was possible."""
        if state.review.branch.tests is None:
            return False
        try:
            await asyncio.to_thread(state.review.load_parts)
        except SwarmError as error:
            self._screen.show_message(f"cannot split row 0: {error}", "error")
            return False
        return True

    def leave(self) -> bool:
        """List the fixes again, with the cursor on the row that was open. Return False if they are listed already."""
        row, self.of = self.of, None
        if row is None:
            return False
        self._show_rows()
        self._screen.show_fix(row)
        return True


def _why_not_split(pieces: Sequence[Fix]) -> str:
    if not pieces:
        return "this fix has no changes, so it has no hunks"
    return f"this fix has one hunk, {pieces[0].title}: press y or n"
