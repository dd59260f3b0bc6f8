"""Conflicts and swapping in a left-out fix."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from swarm_tui.adapters.processes.foreground import editor_command
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Conflict, Fix
from swarm_tui.review.conflicts import (
    ConflictCopy,
    ManualResolution,
    Resolutions,
    apply_resolution,
    discard,
    find_resolutions,
    manual_resolution,
    open_conflict,
)
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.actions import Action, FixesServices
from swarm_tui.room.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.external import run_in_terminal
from swarm_tui.room.fixes.session import ReviewState

Command = Callable[[ConflictCopy], tuple[str, ...]]
"""Returns the arguments of a program that resolves a conflict in its scratch copy."""


def _sets_to_revert(found: Resolutions) -> list[Choosable]:
    """Return an entry for each smallest set of other fixes to revert so that the conflict disappears."""
    if not found.sets:
        why_not = "a commit that is not a fix conflicts" if found.is_exact else "none found within the time limit"
        return [Choosable("0", "revert others too", "", "r", "", why_not)]
    entries = []
    for number, fixes in enumerate(found.sets):
        names = ", ".join(f"#{fix.rank}" for fix in fixes)
        titles = plain(" · ".join(fix.title for fix in fixes), 60)
        about = titles if found.is_exact else f"{titles} (a smaller set may exist)"
        entries.append(Choosable(str(number), f"revert {names} too", about, "r" if number == 0 else str(number + 1)))
    return entries


def hand_words(work: Sequence[ManualResolution]) -> str:
    """Return the size of a manual resolution: `cli.py: 2 places, 9 lines`."""
    parts = []
    for each in work[:3]:
        places = f"{counted(each.places, 'place')}, {counted(each.lines, 'line')}" if each.places else "the whole file"
        parts.append(f"{plain(each.path, 60)}: {places}")
    return "; ".join(parts) + (f" and {len(work) - 3} more files" if len(work) > 3 else "")


class ConflictResolution:
    """Ways to resolve the conflict of one fix."""

    def __init__(self, screen: FixesServices) -> None:
        self._screen = screen

    def why_not(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        if fix in state.review.left_out:
            return "this fix is not on the branch: press s to swap it in"
        return "" if state.conflict_of(fix) is not None else "reverting this fix does not conflict"

    def offer(self) -> None:
        state, fix = self._screen.reviewed_fix()
        if state.conflict_of(fix) is not None:
            self._screen.show_message(f"searching for conflicts of {state.number(fix.id)} …")
            self._screen.start(partial(self._look_for_ways, state, fix), "resolve a conflict")

    async def _look_for_ways(self, state: ReviewState, fix: Fix) -> None:
        reverted = state.with_it_reverted(fix)
        found = await asyncio.to_thread(find_resolutions, state.review, reverted)
        work = await asyncio.to_thread(manual_resolution, state.review, fix.hunk_of or fix.id, reverted)
        conflict = state.conflict_of(fix)
        if self._screen.current_fix is fix and conflict is not None and reverted == state.with_it_reverted(fix):
            self._screen.show_message("")
            self._ask(state, fix, conflict, found, work)

    def _ask(
        self, state: ReviewState, fix: Fix, conflict: Conflict, found: Resolutions, work: Sequence[ManualResolution]
    ) -> None:
        by_hand = hand_words(work) or ", ".join(plain(path, 60) for path in conflict.paths[:3])
        entries = [
            *_sets_to_revert(found),
            Choosable("keep", f"keep {state.number(fix.id)} as well", "the plan keeps all of them unchanged", "k"),
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
            self._screen.show_message(f"{problem}: the plan has not changed", "error")
            return

        def apply_edit(is_yes: bool | None) -> None:
            if not is_yes:
                self._discard(copy)
                return
            try:
                apply_resolution(state.review, copy)
            except UsageError as error:
                again = ConfirmScreen(f"{error.message}. Continue with it?", copy.paths)
                self._screen.room.push_screen(
                    again, lambda is_yes: self._edit(state, fix, command, copy) if is_yes else self._discard(copy)
                )
                return
            except SwarmError as error:
                discard(copy)
                self._screen.show_message(str(error), "error")
                return
            state.review.set_verdict(fix, Verdict.REVERT, "conflict resolved by hand")
            state.forget_effects()
            self._screen.show_verdicts()

        question = ConfirmScreen(f"Use this as the revert of #{fix.rank}?", copy.paths)
        self._screen.room.push_screen(question, apply_edit)

    def _discard(self, copy: ConflictCopy) -> None:
        discard(copy)
        self._screen.show_message("the plan has not changed")


class Swapping:
    """The action that includes a left-out fix in the plan."""

    def __init__(self, screen: FixesServices) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("fixes.swap", ("s",), "", "Swap a left-out fix in for the fixes it conflicts with, or out again",
                   self.swap, self.why_not),
        )  # fmt: skip

    def why_not(self) -> str:
        state, fix = self._screen.review_state, self._screen.current_fix
        if state is None or fix is None:
            return self._screen.why_no_fix()
        return "" if fix in state.review.left_out else "already on the branch: only rows marked `out` can be swapped in"

    def swap(self) -> None:
        state, fix = self._screen.reviewed_fix()
        if fix in state.review.taken:
            state.review.set_verdict(fix, Verdict.CLEAR)
            self._screen.show_message(f"#{fix.rank} is out again; verdicts on the fixes it replaced do not change")
            self._screen.show_verdicts()
            return
        self._screen.show_message(f"searching for conflicts of #{fix.rank} …")
        self._screen.start(partial(self._look, state, fix), "swap")

    async def _look(self, state: ReviewState, fix: Fix) -> None:
        reverted = state.with_it_reverted(fix)
        found = await asyncio.to_thread(find_resolutions, state.review, reverted)
        if self._screen.current_fix is not fix or reverted != state.with_it_reverted(fix):
            return
        if not found.sets:
            self._screen.show_message(
                f"cannot swap in #{fix.rank}: it conflicts with a commit that is not a fix", "error"
            )
        elif len(found.sets) == 1:
            self._take(state, fix, found.sets[0])
        else:
            self._ask(state, fix, found)

    def _ask(self, state: ReviewState, fix: Fix, found: Resolutions) -> None:
        entries = [
            Choosable(str(number), f"instead of {_names(fixes)}", plain(" · ".join(one.title for one in fixes), 50))
            for number, fixes in enumerate(found.sets)
        ]

        def take(values: tuple[str, ...] | None) -> None:
            if values:
                self._take(state, fix, found.sets[int(values[0])])

        self._screen.room.push_screen(PickScreen(f"Swap #{fix.rank} in", entries), take)

    def _take(self, state: ReviewState, fix: Fix, others: tuple[Fix, ...]) -> None:
        instead = f" for {_names(others)}" if others else ""
        why = f"#{fix.rank} of {', '.join(fix.agents) or 'another agent'} is kept{instead}" if others else ""
        verdicts = [*((other, Verdict.REVERT) for other in others), (fix, Verdict.KEEP)]
        state.review.set_verdicts(verdicts, why)
        self._screen.show_verdicts()
        self._screen.show_message(f"#{fix.rank} is in the plan{instead}: press V to test it, z to undo", "good")


def _names(fixes: tuple[Fix, ...]) -> str:
    return ", ".join(f"#{fix.rank}" for fix in fixes)
