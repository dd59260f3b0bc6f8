"""Plan line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.formatting import Progress, counted, seconds_left
from swarm_tui.review.apply import ApplyPlan, applied_branch, apply_plan, checkout_hint, plan_apply, reviewed_branch
from swarm_tui.review.changes import Fix
from swarm_tui.review.open import difference_of, hunk_text
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.actions import Action, FixesServices
from swarm_tui.room.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.fixes.detail import FixDetails
from swarm_tui.room.fixes.draw import draw_plan
from swarm_tui.room.fixes.session import ReviewState
from swarm_tui.room.store import EngineState
from swarm_tui.room.widgets.lines import Band


class PlanPanel:
    """Shows the plan and computes its preview."""

    def __init__(self, screen: FixesServices, details: FixDetails, redraw_fixes: Callable[[], None]) -> None:
        self._screen = screen
        self._details = details
        self._redraw_fixes = redraw_fixes
        self.band = Band(id="plan")
        self.closing_line = ""
        """Result of the review for scripts. It is still available after the screen is closed."""

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
        """Show the plan as one diff against the base, until the cursor moves."""
        state = self._screen.review_state
        if state is not None:
            self._screen.start(partial(self._show_net_diff, state), "net")

    async def _show_net_diff(self, state: ReviewState) -> None:
        diff = await asyncio.to_thread(state.review.net_diff)
        if diff.files:
            self._details.show_diff(diff, "The plan against the base")
            return
        is_conflicting = state.preview is not None and not state.preview.is_clean
        self._screen.show_message("the plan does not build yet" if is_conflicting else "no difference")


SHOWN_EVERY: Final = 0.1


class PlanApplication:
    """Dialogs and steps for applying a plan to a branch."""

    def __init__(self, screen: FixesServices, plan: PlanPanel) -> None:
        self._screen = screen
        self._plan = plan

    def why_not(self) -> str:
        state = self._screen.review_state
        if state is None:
            return self._screen.why_no_fix()
        return "" if state.review.reverted else f"nothing is reverted: {state.review.tip_name} already is the result"

    def offer(self) -> None:
        state = self._screen.review_state
        assert state is not None, "not available without a review"
        out = len(state.review.reverted & {part.id for part in state.review.known_parts})
        taken, in_part = len(state.review.taken), len(state.fixes_reverted_in_part)
        reverted = sum(fix.id in state.review.reverted for fix in state.fixes)
        number = reverted + in_part
        parts = f", {in_part} in part" if in_part else ""
        parts += f" and {counted(out, 'test change')} left out" if out else ""
        parts += f", {taken} swapped in" if taken else ""
        detail = f"{counted(number + bool(out), 'commit')}, each with the reason and your name"
        entries = [
            Choosable("revert", "revert commits on top", detail, "r"),
            Choosable("drop", "a new branch without them", "a history without these commits", "d"),
        ]

        def confirm(values: tuple[str, ...] | None) -> None:
            if values:
                self._screen.start(partial(self._confirm, state, is_drop=values == ("drop",)), "apply")

        self._screen.room.push_screen(PickScreen(f"Apply: {reverted} reverted{parts}", entries), confirm)

    async def _confirm(self, state: ReviewState, *, is_drop: bool) -> None:
        branch = reviewed_branch(state.review, state.sweep)
        try:
            proposal = await asyncio.to_thread(plan_apply, state.review, branch, is_drop=is_drop)
        except SwarmError as error:
            self._screen.show_message(str(error), "error")
            return

        def apply(is_yes: bool | None) -> None:
            if is_yes:
                self._screen.start(partial(self._apply, state, proposal), "apply")
            else:
                self._screen.show_message("nothing was created")

        question = f"Create {branch}? Your checkout is unchanged."
        self._screen.room.push_screen(ConfirmScreen(question, _details(state, proposal)), apply)

    async def _apply(self, state: ReviewState, proposal: ApplyPlan) -> None:
        began, total, count = time.monotonic(), len(proposal.subjects), 0

        def tell(number: int) -> None:
            nonlocal count
            count = number

        try:
            work = asyncio.ensure_future(
                asyncio.to_thread(apply_plan, state.review, proposal, sweep=state.sweep, on_commit=tell)
            )
            while not (await asyncio.wait({work}, timeout=SHOWN_EVERY))[0]:
                left = seconds_left(count, total, time.monotonic() - began)
                state.applying = Progress("applying", count, total, "commits", left)
                self._plan.show()
            applied = work.result()
            words = await asyncio.to_thread(checkout_hint, state.review.repository, applied)
        except SwarmError as error:
            self._screen.show_message(str(error), "error")
            return
        finally:
            state.applying = None
            self._plan.show()
        self._screen.store.note("info", f"applied on {applied.branch}: {state.review.closing_line()}")
        self._plan.show_applied(applied.branch)
        self._screen.show_message(f"{applied.branch} is created. To get it: {words}", "good")


def _details(state: ReviewState, proposal: ApplyPlan) -> list[str]:
    still_open = len(state.review.open_fixes)
    details = state.doubts_of_plan()
    if still_open:
        details.append(f"{counted(still_open, 'fix', 'fixes')} still open, will be kept")
    if proposal.replaces:
        details.append(f"replaces the branch of an earlier apply ({proposal.replaces[:9]})")
    details.append(f"as {proposal.author.name} <{proposal.author.email}>" + (", signed" if proposal.is_signed else ""))
    return details + [f"+ {subject}" for subject in proposal.subjects]


class SendingBack:
    """Actions that send a fix back and show its revision."""

    def __init__(self, screen: FixesServices, details: FixDetails) -> None:
        self._screen = screen
        self._details = details

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("fixes.send_back", ("r",), "send back", "Send this fix or hunk back to its agent, with a comment",
                   self.write_comment, self.why_not_send, opens_box=True),
            Action("fixes.versions", ("v",), "", "Show what the agent has changed since then, until you move",
                   self.show_difference, self.why_no_difference),
        )  # fmt: skip

    def why_not_send(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        if fix.rank == 0:
            return "test changes are kept or left out; press m to write to the agent"
        if state.fix_of(fix) in state.review.left_out:
            return "not on the branch, so a revision of it would have no place"
        if not state.records_of(fix):
            return "the agent of this fix is unknown"
        if state.sent_back(state.fix_of(fix)) is not None and not state.records_of(fix)[0].is_finished:
            return "already sent back to its agent"
        reason = self._screen.store.why_no_requests()
        return reason if self._screen.store.engine is EngineState.ELSEWHERE else ""

    def write_comment(self) -> None:
        """Open a text box for the comment."""
        from swarm_tui.room.message import MessageScreen

        state, fix = self._screen.reviewed_fix()
        record = state.records_of(fix)[0]

        async def deliver(comment: str) -> str:
            return self._send(state, fix, record, comment.strip())

        def tell(is_accepted: bool | None) -> None:
            if not is_accepted:
                self._screen.show_message("nothing was sent back")

        self._screen.room.push_screen(MessageScreen([record], self._screen.room.drafts, deliver), tell)

    def _send(self, state: ReviewState, fix: Fix, record: TestRecord, comment: str) -> str:
        """Request that the engine sends a fix back. Return why the request failed, or ""."""
        store = self._screen.store
        try:
            hunk = hunk_text(state.review, fix) or None
            whole = state.fix_of(fix)
            store.send_request(RequestKind.REVISE, tests=[record.test], text=comment, fix=whole.id, hunk=hunk)
            state.review.set_verdict(fix, Verdict.LATER, comment)
            # Resume an engine that has exited.
            started = "" if store.engine is EngineState.RUNNING else f": {self._screen.room.resume_sweep()}"
        except SwarmError as error:
            return str(error)
        self._screen.show_verdicts()
        self._screen.show_message(f"{state.number(fix.id)}: requested to send it back to {record.agent}{started}")
        return ""

    def why_no_difference(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        return "" if state.returned(fix) is not None else "it was not sent back"

    def show_difference(self) -> None:
        """Show the difference to the previous version in place of the diff, until the cursor moves."""
        state, fix = self._screen.reviewed_fix()
        self._screen.start(partial(self._show_difference, state, fix), "net")

    async def _show_difference(self, state: ReviewState, fix: Fix) -> None:
        returned = state.returned(fix)
        diff = await asyncio.to_thread(difference_of, state.review, fix, returned) if returned is not None else None
        if diff is None or not diff.files:
            gone = "the previous commit is missing" if diff is None else "no difference to the previous version"
            self._screen.show_message(gone, "warning")
            return
        self._details.show_diff(diff, f"#{fix.rank} since it was sent back")
