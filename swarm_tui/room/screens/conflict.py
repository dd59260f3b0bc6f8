"""What can be done when a revert conflicts with a fix that stays: revert that too, keep both, or resolve it by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from swarm_tui.adapters.foreground import editor_command
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.fixes import Fix
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.merge_state import MergeState
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.screens.external_view import leave_for
from swarm_tui.triage.resolve import ConflictCopy, discard, open_conflict, take_result

if TYPE_CHECKING:
    from swarm_tui.room.screens.fixes import FixesScreen


def offer_resolutions(screen: FixesScreen, merge: MergeState, fix: Fix) -> None:
    """Let the person pick one of the ways out of a conflict."""
    conflict = merge.conflict_of(fix)
    if conflict is None:
        return
    needed = merge.review.reverts_needed_too(merge.with_it_reverted(fix))
    names = ", ".join(f"#{other.rank}" for other in needed or ())
    why_not = "" if needed else "no set of reverts is known that builds"
    files = ", ".join(plain(path, 60) for path in conflict.paths[:3])
    entries = [
        Choosable("too", f"revert {names or 'the others'} too", "then nothing stands in the way", "r", "", why_not),
        Choosable("keep", f"keep #{fix.rank} as well", "the plan leaves both as they are", "k"),
        Choosable("edit", "resolve it in the editor", f"{files}, in a scratch copy", "e"),
        Choosable("tool", "resolve it with git mergetool", "in a scratch copy", "m"),
    ]

    def picked(values: tuple[str, ...] | None) -> None:
        match values:
            case ("too",):
                for other in (fix, *(needed or ())):
                    merge.review.give(other, Verdict.REVERT)
                screen.verdicts_changed()
            case ("keep",):
                merge.review.give(fix, Verdict.KEEP)
                screen.verdicts_changed()
            case ("edit",):
                _resolve(screen, merge, fix, lambda copy: (*editor_command(), *(f"./{path}" for path in copy.paths)))
            case ("tool",):
                _resolve(screen, merge, fix, lambda copy: ("git", "mergetool", "--no-prompt"))
            case _:
                screen.say("nothing was decided")

    screen.app.push_screen(PickScreen(f"Reverting #{fix.rank} conflicts", entries), picked)


def _resolve(
    screen: FixesScreen, merge: MergeState, fix: Fix, command: Callable[[ConflictCopy], tuple[str, ...]]
) -> None:
    async def work() -> None:
        reverted = merge.with_it_reverted(fix)
        try:
            copy = await asyncio.to_thread(open_conflict, merge.review, fix.id, reverted)
        except SwarmError as error:
            screen.say(str(error), "error")
            return

        def edit() -> None:
            trouble = leave_for(screen, command(copy), copy.folder)
            if trouble:
                discard(copy)
                screen.say(f"{trouble}: nothing was taken", "error")
                return
            _ask_to_take(screen, merge, fix, copy, edit)

        edit()

    screen.run_worker(work(), group="fixes: resolve", exclusive=True, exit_on_error=False)


def _ask_to_take(
    screen: FixesScreen, merge: MergeState, fix: Fix, copy: ConflictCopy, edit_again: Callable[[], None]
) -> None:
    def give_up() -> None:
        discard(copy)
        screen.say("nothing was taken; the plan is as it was")

    def answered(is_yes: bool | None) -> None:
        if not is_yes:
            give_up()
            return
        try:
            take_result(merge.review, copy)
        except UsageError as error:
            question = ConfirmScreen(f"{error.message}. Go on with it?", copy.paths)
            screen.app.push_screen(question, lambda is_yes: edit_again() if is_yes else give_up())
            return
        except SwarmError as error:
            discard(copy)
            screen.say(str(error), "error")
            return
        merge.review.give(fix, Verdict.REVERT, "its conflict was resolved by hand")
        merge.forget_effects()
        screen.verdicts_changed()

    screen.app.push_screen(ConfirmScreen(f"Take this as the revert of #{fix.rank}?", copy.paths), answered)
