"""What can be done when a revert conflicts with a fix that stays: revert that too, keep both, or resolve it by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from swarm_tui.adapters.foreground import editor_command
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.fixes import Conflict, Fix
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.screens.external_view import run_in_terminal
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.triage.resolve import ConflictCopy, apply_resolution, discard, open_conflict
from swarm_tui.triage.ways_out import HandWork, WaysOut, hand_work, ways_out

Command = Callable[[ConflictCopy], tuple[str, ...]]
"""Returns the words of the program that resolves a conflict in its scratch copy."""


def _sets_to_revert(found: WaysOut) -> list[Choosable]:
    """Return an entry for each smallest set of fixes that makes way when it is reverted too."""
    if not found.sets:
        why_not = "a commit that is no fix stands in the way" if found.is_exact else "none was found in the time"
        return [Choosable("0", "revert others too", "", "r", "", why_not)]
    entries = []
    for number, fixes in enumerate(found.sets):
        names = ", ".join(f"#{fix.rank}" for fix in fixes)
        titles = plain(" · ".join(fix.title for fix in fixes), 60)
        about = titles if found.is_exact else f"{titles}; there may be fewer"
        entries.append(Choosable(str(number), f"revert {names} too", about, "r" if number == 0 else str(number + 1)))
    return entries


def hand_words(work: Sequence[HandWork]) -> str:
    """Return what doing it by hand would touch: `cli.py: 2 places, 9 lines`."""
    parts = []
    for each in work[:3]:
        places = f"{counted(each.places, 'place')}, {counted(each.lines, 'line')}" if each.places else "the whole file"
        parts.append(f"{plain(each.path, 60)}: {places}")
    return "; ".join(parts) + (f" and {len(work) - 3} more files" if len(work) > 3 else "")


class ConflictResolution:
    """The ways out of the conflict of one fix."""

    def __init__(self, screen: FixesServices) -> None:
        self._screen = screen

    def why_not(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        if fix in state.review.left_out:
            return "it is not on the branch: s swaps it in"
        return "" if state.conflict_of(fix) is not None else "nothing stands in the way of reverting this fix"

    def offer(self) -> None:
        state, fix = self._screen.reviewed_fix()
        if state.conflict_of(fix) is not None:
            self._screen.show_message(f"looks what stands in the way of reverting {state.number(fix.id)} …")
            self._screen.start(partial(self._look_for_ways, state, fix), "ways out")

    async def _look_for_ways(self, state: ReviewState, fix: Fix) -> None:
        reverted = state.with_it_reverted(fix)
        found = await asyncio.to_thread(ways_out, state.review, reverted)
        work = await asyncio.to_thread(hand_work, state.review, fix.hunk_of or fix.id, reverted)
        conflict = state.conflict_of(fix)
        if self._screen.current_fix is fix and conflict is not None and reverted == state.with_it_reverted(fix):
            self._screen.show_message("")
            self._ask(state, fix, conflict, found, work)

    def _ask(self, state: ReviewState, fix: Fix, conflict: Conflict, found: WaysOut, work: Sequence[HandWork]) -> None:
        by_hand = hand_words(work) or ", ".join(plain(path, 60) for path in conflict.paths[:3])
        entries = [
            *_sets_to_revert(found),
            Choosable("keep", f"keep {state.number(fix.id)} as well", "the plan leaves all of them as they are", "k"),
            Choosable("edit", "resolve it in the editor", f"{by_hand}, in a scratch copy", "e"),
            Choosable("tool", "resolve it with git mergetool", "in a scratch copy", "m"),
        ]

        def resolve(values: tuple[str, ...] | None) -> None:
            match values:
                case (value,) if value.isdigit():
                    others = (fix, *found.sets[int(value)])
                    state.review.set_verdicts([(other, Verdict.REVERT) for other in others])
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

        against = ", ".join(state.number(other) for other in conflict.opponents)
        title = f"Reverting {state.number(fix.id)} conflicts" + (f" with {against}" if against else "")
        self._screen.room.push_screen(PickScreen(title, entries), resolve)

    def _start(self, state: ReviewState, fix: Fix, command: Command) -> None:
        self._screen.start(partial(self._resolve_by_hand, state, fix, command), "resolve")

    async def _resolve_by_hand(self, state: ReviewState, fix: Fix, command: Command) -> None:
        try:
            commit = fix.hunk_of or fix.id
            copy = await asyncio.to_thread(open_conflict, state.review, commit, state.with_it_reverted(fix))
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
