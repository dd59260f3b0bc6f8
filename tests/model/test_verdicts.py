"""Undo and redo of actions with one or several verdicts."""

from __future__ import annotations

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.review.verdicts import History, Verdict, VerdictChange, VerdictLine, fold_verdicts

FIXES = ("a", "b", "c", "d")
GIVEN = (Verdict.KEEP, Verdict.REVERT, Verdict.LATER)
Action = dict[str, Verdict]


class Verdicts:
    """A file of verdicts on four fixes, with the actions of a user."""

    def __init__(self) -> None:
        self.lines: list[VerdictLine] = []

    def act(self, action: Action, name: str) -> None:
        shared = name if len(action) > 1 else ""
        self.lines += [
            VerdictLine(at=0, by="ada", commit=commit, verdict=verdict, action=shared)
            for commit, verdict in action.items()
        ]

    def undo(self) -> list[str]:
        return self._step(self._history().step_back(), "undo")

    def redo(self) -> list[str]:
        return self._step(self._history().step_forward(), "redo")

    def _history(self) -> History:
        return History(self.lines, FIXES, {}, by="ada")

    def _step(self, changes: list[VerdictChange], step: Literal["undo", "redo"]) -> list[str]:
        for change in changes:
            verdict = change.before if step == "undo" else change.after
            self.lines.append(VerdictLine(at=0, by="ada", commit=change.commit, verdict=verdict, step=step))
        return [change.commit for change in changes]

    @property
    def held(self) -> dict[str, Verdict]:
        return {commit: line.verdict for commit, line in fold_verdicts(self.lines, FIXES, {}).lines().items()}


@given(st.lists(st.dictionaries(st.sampled_from(FIXES), st.sampled_from(GIVEN), min_size=1), max_size=6))
def test_undo_and_redo_apply_to_whole_actions(actions: list[Action]) -> None:
    verdicts = Verdicts()
    moments = [verdicts.held]
    for number, action in enumerate(actions):
        verdicts.act(action, f"action {number}")
        moments.append(verdicts.held)
    for action, moment in zip(reversed(actions), reversed(moments[:-1]), strict=True):
        assert sorted(verdicts.undo()) == sorted(action)
        assert verdicts.held == moment
    assert verdicts.undo() == []
    for action, moment in zip(actions, moments[1:], strict=True):
        assert sorted(verdicts.redo()) == sorted(action)
        assert verdicts.held == moment
    assert verdicts.redo() == []


def test_lines_without_action_are_undone_separately() -> None:
    verdicts = Verdicts()
    verdicts.lines = [VerdictLine(at=0, by="ada", commit=commit, verdict=Verdict.KEEP) for commit in FIXES[:2]]
    assert [verdicts.undo(), verdicts.undo(), verdicts.undo()] == [["b"], ["a"], []]
