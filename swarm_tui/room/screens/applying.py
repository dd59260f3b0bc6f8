"""Applies a plan: asks how, shows which commits will be made, and makes them when the answer is yes."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.model.formatting import counted
from swarm_tui.model.progress import Progress, seconds_left
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.screens.plan_panel import PlanPanel
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.triage.apply import Proposal, apply_proposal, checkout_hint, propose, reviewed_branch

SHOWN_EVERY: Final = 0.1


class PlanApplication:
    """The way from a plan to a branch."""

    def __init__(self, screen: FixesServices, plan: PlanPanel) -> None:
        self._screen = screen
        self._plan = plan

    def why_not(self) -> str:
        state = self._screen.review_state
        if state is None:
            return self._screen.why_no_fix()
        return (
            "" if state.review.reverted else f"nothing is reverted: {state.review.tip_name} is the result as it stands"
        )

    def offer(self) -> None:
        state = self._screen.review_state
        assert state is not None, "not possible without a review"
        out = len(state.review.reverted & {part.id for part in state.review.known_parts})
        taken, in_part = len(state.review.taken), len(state.fixes_reverted_in_part)
        reverted = sum(fix.id in state.review.reverted for fix in state.fixes)
        number = reverted + in_part
        parts = f", {in_part} in part" if in_part else ""
        parts += f" and {counted(out, 'part')} left out" if out else ""
        parts += f", {taken} taken in" if taken else ""
        detail = f"{counted(number + bool(out), 'commit')}, saying which, why and by whom"
        entries = [
            Choosable("revert", "revert commits on top", detail, "r"),
            Choosable("drop", "a clean branch without them", "its history never had them", "d"),
        ]

        def confirm(values: tuple[str, ...] | None) -> None:
            if values:
                self._screen.start(partial(self._confirm, state, is_drop=values == ("drop",)), "apply")

        self._screen.room.push_screen(PickScreen(f"Apply: {reverted} reverted{parts}", entries), confirm)

    async def _confirm(self, state: ReviewState, *, is_drop: bool) -> None:
        branch = reviewed_branch(state.review, state.sweep)
        try:
            proposal = await asyncio.to_thread(propose, state.review, branch, is_drop=is_drop)
        except SwarmError as error:
            self._screen.show_message(str(error), "error")
            return

        def apply(is_yes: bool | None) -> None:
            if is_yes:
                self._screen.start(partial(self._apply, state, proposal), "apply")
            else:
                self._screen.show_message("nothing was made")

        question = f"Make {branch}? Your checkout is not touched."
        self._screen.room.push_screen(ConfirmScreen(question, _details(state, proposal)), apply)

    async def _apply(self, state: ReviewState, proposal: Proposal) -> None:
        began, total, made = time.monotonic(), len(proposal.subjects), 0

        def tell(number: int) -> None:
            nonlocal made
            made = number

        try:
            work = asyncio.ensure_future(
                asyncio.to_thread(apply_proposal, state.review, proposal, sweep=state.sweep, tell=tell)
            )
            while not (await asyncio.wait({work}, timeout=SHOWN_EVERY))[0]:
                left = seconds_left(made, total, time.monotonic() - began)
                state.applying = Progress("applying", made, total, "commits", left)
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
        self._screen.show_message(f"{applied.branch} is made. To get it: {words}", "good")


def _details(state: ReviewState, proposal: Proposal) -> list[str]:
    still_open = len(state.review.open_fixes)
    details = state.doubts_of_plan()
    if still_open:
        details.append(f"{counted(still_open, 'fix', 'fixes')} still open: what is open stays")
    if proposal.replaces:
        details.append(f"it replaces what an earlier apply made ({proposal.replaces[:9]})")
    details.append(f"as {proposal.author.name} <{proposal.author.email}>" + (", signed" if proposal.is_signed else ""))
    return details + [f"+ {subject}" for subject in proposal.subjects]
