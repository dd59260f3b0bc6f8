"""Makes a plan so: asks how, shows what will be made, and makes it when the answer is yes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from swarm_tui.errors import SwarmError
from swarm_tui.model.formatting import counted
from swarm_tui.room.merge_state import MergeState
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.triage.apply import Proposal, apply_proposal, checkout_words, propose, reviewed_branch

if TYPE_CHECKING:
    from swarm_tui.room.screens.fixes import FixesScreen


def offer_apply(screen: FixesScreen, merge: MergeState) -> None:
    """Let the person pick how the plan is made so."""
    number = len(merge.review.reverted)
    entries = [
        Choosable(
            "revert", "revert commits on top", f"{counted(number, 'commit')}, saying which fix, why and by whom", "r"
        ),
        Choosable("drop", "a clean branch without them", "its history never had them", "d"),
    ]

    def picked(values: tuple[str, ...] | None) -> None:
        if values:
            _run(screen, _confirm(screen, merge, is_drop=values == ("drop",)))

    screen.app.push_screen(PickScreen(f"Apply: {number} reverted", entries), picked)


def _run(screen: FixesScreen, work: Coroutine[Any, Any, None]) -> None:
    screen.run_worker(work, group="fixes: apply", exclusive=True, exit_on_error=False)


async def _confirm(screen: FixesScreen, merge: MergeState, *, is_drop: bool) -> None:
    branch = reviewed_branch(merge.review, merge.sweep)
    try:
        proposal = await asyncio.to_thread(propose, merge.review, branch, is_drop=is_drop)
    except SwarmError as error:
        screen.say(str(error), "error")
        return

    def answered(is_yes: bool | None) -> None:
        if is_yes:
            _run(screen, _apply(screen, merge, proposal))
        else:
            screen.say("nothing was made")

    screen.app.push_screen(
        ConfirmScreen(f"Make {branch}? Your checkout is not touched.", _details(merge, proposal)), answered
    )


def _details(merge: MergeState, proposal: Proposal) -> list[str]:
    still_open = len(merge.review.open_fixes)
    details = []
    if still_open:
        details.append(f"{counted(still_open, 'fix', 'fixes')} still open: what is open stays")
    if proposal.replaces:
        details.append(f"it replaces what an earlier apply made ({proposal.replaces[:9]})")
    details.append(f"as {proposal.author.name} <{proposal.author.email}>" + (", signed" if proposal.is_signed else ""))
    return details + [f"+ {subject}" for subject in proposal.subjects]


async def _apply(screen: FixesScreen, merge: MergeState, proposal: Proposal) -> None:
    try:
        applied = await asyncio.to_thread(apply_proposal, merge.review, proposal, sweep=merge.sweep)
        words = await asyncio.to_thread(checkout_words, merge.review.repository, applied)
    except SwarmError as error:
        screen.say(str(error), "error")
        return
    screen.store.note("info", f"applied on {applied.branch}: {merge.review.closing_line()}")
    screen.plan_applied(applied.branch)
    screen.say(f"{applied.branch} is made. To get it: {words}", "good")
