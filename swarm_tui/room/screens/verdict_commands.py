"""Verdicts on fixes, one key each, with undo."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from swarm_tui.model.fixes import Fix
from swarm_tui.model.verdicts import Verdict
from swarm_tui.room.actions import Action
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.parts_walk import PartsWalk
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.room.widgets.fix_lines import FixLines
from swarm_tui.triage.review import Review

_WORDS: Final[dict[Verdict | None, str]] = {
    Verdict.KEEP: "kept",
    Verdict.REVERT: "reverted",
    Verdict.LATER: "for later",
    Verdict.PARTLY: "kept in part",
}


class VerdictCommands:
    """The actions that change the plan."""

    def __init__(self, screen: FixesServices, lines: FixLines, walk: PartsWalk) -> None:
        self._screen = screen
        self._lines = lines
        self._walk = walk

    def actions(self) -> tuple[Action, ...]:
        return (
            self._verdict_action(
                Verdict.KEEP, "y", "keep", "Keep this fix, part or hunk, or all of row 0, and go to the next open one"
            ),
            self._verdict_action(
                Verdict.REVERT,
                "n",
                "revert",
                "Revert this fix or hunk, or leave this part out, and go to the next open one",
            ),
            self._verdict_action(Verdict.LATER, "l", "later", "Decide later, and go to the next open one"),
            self._verdict_action(Verdict.CLEAR, "u", "", "Take back the verdict on this fix"),
            Action("fixes.undo", ("z",), "undo", "Undo what you decided last, all verdicts of it", self.undo,
                   self.why_not_undo, rank=6),
            Action("fixes.redo", ("Z",), "", "Decide it again", self.redo, self.why_not_undo),
        )  # fmt: skip

    def _verdict_action(self, verdict: Verdict, key: str, label: str, description: str) -> Action:
        handler = partial(self.decide, verdict)
        return Action(f"fixes.{verdict.value}", (key,), label, description, handler, self._screen.why_no_fix)

    def decide(self, verdict: Verdict) -> None:
        """Record a verdict on the fix under the cursor and go to the next open one."""
        state, fix = self._screen.reviewed_fix()
        state.review.set_verdict(fix, verdict)
        if verdict is not Verdict.CLEAR:
            self._go_to_next_open(fix)
        self._screen.show_verdicts()

    def _go_to_next_open(self, fix: Fix) -> None:
        still_open = self._walk.still_open()
        shown = self._lines.shown
        place = shown.index(fix)
        following = (*range(place + 1, len(shown)), *range(place))
        target = next((index for index in following if shown[index].id in still_open), None)
        if target is not None:
            self._lines.move_to(target)
        elif not still_open:
            self._screen.show_message(self._walk.nothing_open(), "good")

    def why_not_undo(self) -> str:
        return "" if self._screen.review_state is not None else "there is nothing to undo"

    def undo(self) -> None:
        self._step(lambda review: review.undo(), "undone", "you have given no verdict to undo")

    def redo(self) -> None:
        self._step(lambda review: review.redo(), "again", "nothing was undone")

    def _step(self, step: Callable[[Review], tuple[Fix, ...]], word: str, nothing: str) -> None:
        state = self._screen.review_state
        fixes = step(state.review) if state is not None else ()
        if state is None or not fixes:
            self._screen.show_message(nothing)
            return
        if self._screen.current_fix not in fixes:
            self._screen.show_fix(fixes[0])
        self._screen.show_verdicts()
        self._screen.show_message(f"{word}: {_words_for_verdicts(state, fixes)}")


def _words_for_verdicts(state: ReviewState, fixes: Iterable[Fix]) -> str:
    """Return the verdicts that fixes have now: `#2+#6 are open, #9 is out`."""
    by_word: dict[str, list[str]] = {}
    for fix in sorted(fixes, key=lambda fix: fix.rank):
        by_word.setdefault(_word_for_verdict(state, fix), []).append(fix.id)
    return ", ".join(
        f"{state.named(fixes)} {'is' if len(fixes) == 1 else 'are'} {word}" for word, fixes in by_word.items()
    )


def _word_for_verdict(state: ReviewState, fix: Fix) -> str:
    verdict = state.review.verdict(fix)
    if fix in state.review.left_out:
        return "taken in" if fix in state.review.taken else "out"
    if fix in state.review.known_parts and verdict is Verdict.REVERT:
        return "left out"
    return _WORDS.get(verdict, "open")
