"""Sends a fix back to the agent that made it, with a comment, and shows what has changed when it is back."""

from __future__ import annotations

import asyncio
from functools import partial

from swarm_tui.errors import SwarmError
from swarm_tui.model.fixes import Fix
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.actions import Action
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.fix_details import FixDetails
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.room.store import EngineState
from swarm_tui.triage.revisions import difference_of, hunk_text


class SendingBack:
    """The way of a fix to its author, and back."""

    def __init__(self, screen: FixesServices, details: FixDetails) -> None:
        self._screen = screen
        self._details = details

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("fixes.send_back", ("r",), "send back", "Send this fix or hunk back to its agent, with a comment",
                   self.write_comment, self.why_not_send),
            Action("fixes.versions", ("v",), "", "What its author has changed since it was sent back, until you move",
                   self.show_difference, self.why_no_difference),
        )  # fmt: skip

    def why_not_send(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        if fix.rank == 0:
            return "a part of the tests is left out or kept; m writes to its agent"
        if state.fix_of(fix) in state.review.left_out:
            return "it is not on the branch, where what comes of it would have its place"
        if not state.records_of(fix):
            return "no agent of this sweep is known to have made it"
        if state.sent_back(state.fix_of(fix)) is not None and not state.records_of(fix)[0].is_finished:
            return "it is with its author already"
        reason = self._screen.store.why_no_requests()
        return reason if self._screen.store.engine is EngineState.ELSEWHERE else ""

    def write_comment(self) -> None:
        """Let the person say what is to be done differently."""
        from swarm_tui.room.screens.message import MessageScreen

        state, fix = self._screen.reviewed_fix()
        record = state.records_of(fix)[0]

        def send(comment: str | None) -> None:
            if comment and comment.strip():
                self._send(state, fix, record, comment.strip())
            else:
                self._screen.show_message("nothing was sent back")

        self._screen.room.push_screen(MessageScreen([record], self._screen.room.drafts), send)

    def _send(self, state: ReviewState, fix: Fix, record: TestRecord, comment: str) -> None:
        store = self._screen.store
        try:
            hunk = hunk_text(state.review, fix) or None
            whole = state.fix_of(fix)
            store.send_request(RequestKind.REVISE, tests=[record.test], text=comment, fix=whole.id, hunk=hunk)
            state.review.set_verdict(fix, Verdict.LATER, comment)
            # An engine that has ended begins again for it.
            started = "" if store.engine is EngineState.RUNNING else f": {self._screen.room.resume_sweep()}"
        except SwarmError as error:
            self._screen.show_message(str(error), "error")
            return
        self._screen.show_verdicts()
        self._screen.show_message(f"{state.number(fix.id)} is asked to be sent back to {record.agent}{started}")

    def why_no_difference(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        return "" if state.returned(fix) is not None else "it was not sent back"

    def show_difference(self) -> None:
        """Show what is other than before in the place of the diff, until the cursor moves on."""
        state, fix = self._screen.reviewed_fix()
        self._screen.start(partial(self._show_difference, state, fix), "net")

    async def _show_difference(self, state: ReviewState, fix: Fix) -> None:
        returned = state.returned(fix)
        diff = await asyncio.to_thread(difference_of, state.review, fix, returned) if returned is not None else None
        if diff is None or not diff.files:
            gone = "the commit of before is gone" if diff is None else "it is as it was before"
            self._screen.show_message(gone, "warning")
            return
        self._details.show_diff(diff, f"#{fix.rank} since it was sent back")
