"""What can be done when a revert conflicts with a fix that stays: revert that too, keep both, or resolve it by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from swarm_tui.adapters.foreground import editor_command
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.fixes import Fix
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.screens.external_view import run_in_terminal
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.triage.resolve import ConflictCopy, apply_resolution, discard, open_conflict

Command = Callable[[ConflictCopy], tuple[str, ...]]
"""Returns the words of the program that resolves a conflict in its scratch copy."""


class ConflictResolution:
    """The ways out of the conflict of one fix."""

    def __init__(self, screen: FixesServices) -> None:
        self._screen = screen

    def why_not(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        return "" if state.conflict_of(fix) is not None else "nothing stands in the way of reverting this fix"

    def offer(self) -> None:
        state, fix = self._screen.reviewed_fix()
        conflict = state.conflict_of(fix)
        if conflict is None:
            return
        needed = state.review.reverts_needed_too(state.with_it_reverted(fix)) or ()
        names = ", ".join(f"#{other.rank}" for other in needed)
        why_not = "" if needed else "no set of reverts is known that builds"
        files = ", ".join(plain(path, 60) for path in conflict.paths[:3])
        entries = [
            Choosable("too", f"revert {names or 'the others'} too", "then nothing stands in the way", "r", "", why_not),
            Choosable("keep", f"keep #{fix.rank} as well", "the plan leaves both as they are", "k"),
            Choosable("edit", "resolve it in the editor", f"{files}, in a scratch copy", "e"),
            Choosable("tool", "resolve it with git mergetool", "in a scratch copy", "m"),
        ]

        def resolve(values: tuple[str, ...] | None) -> None:
            match values:
                case ("too",):
                    for other in (fix, *needed):
                        state.review.set_verdict(other, Verdict.REVERT)
                    self._screen.show_verdicts()
                case ("keep",):
                    state.review.set_verdict(fix, Verdict.KEEP)
                    self._screen.show_verdicts()
                case ("edit",):
                    self._start(state, fix, lambda copy: (*editor_command(), *(f"./{path}" for path in copy.paths)))
                case ("tool",):
                    self._start(state, fix, lambda copy: ("git", "mergetool", "--no-prompt"))
                case _:
                    self._screen.show_message("nothing was decided")

        self._screen.room.push_screen(PickScreen(f"Reverting #{fix.rank} conflicts", entries), resolve)

    def _start(self, state: ReviewState, fix: Fix, command: Command) -> None:
        self._screen.start(partial(self._resolve_by_hand, state, fix, command), "resolve")

    async def _resolve_by_hand(self, state: ReviewState, fix: Fix, command: Command) -> None:
        try:
            copy = await asyncio.to_thread(open_conflict, state.review, fix.id, state.with_it_reverted(fix))
        except SwarmError as error:
            self._screen.show_message(str(error), "error")
            return
        self._edit(state, fix, command, copy)

    def _edit(self, state: ReviewState, fix: Fix, command: Command, copy: ConflictCopy) -> None:
        problem = run_in_terminal(self._screen.room, command(copy), copy.folder)
        if problem:
            discard(copy)
            self._screen.show_message(f"{problem}: nothing was taken", "error")
            return

        def apply_edit(is_yes: bool | None) -> None:
            if not is_yes:
                self._discard(copy)
                return
            try:
                apply_resolution(state.review, copy)
            except UsageError as error:
                again = ConfirmScreen(f"{error.message}. Go on with it?", copy.paths)
                self._screen.room.push_screen(
                    again, lambda is_yes: self._edit(state, fix, command, copy) if is_yes else self._discard(copy)
                )
                return
            except SwarmError as error:
                discard(copy)
                self._screen.show_message(str(error), "error")
                return
            state.review.set_verdict(fix, Verdict.REVERT, "its conflict was resolved by hand")
            state.forget_effects()
            self._screen.show_verdicts()

        question = ConfirmScreen(f"Take this as the revert of #{fix.rank}?", copy.paths)
        self._screen.room.push_screen(question, apply_edit)

    def _discard(self, copy: ConflictCopy) -> None:
        discard(copy)
        self._screen.show_message("nothing was taken; the plan is as it was")
