"""What people decide about fixes: the lines of verdicts.jsonl, and how they fold into one verdict for each fix."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Verdict(StrEnum):
    """What a person says of a fix. CLEAR takes back what was said; a fix without a verdict, or later, is open."""

    KEEP = "keep"
    REVERT = "revert"
    LATER = "later"
    CLEAR = "clear"


class VerdictLine(BaseModel):
    """One line of verdicts.jsonl: who gave which verdict to which fix, and when."""

    model_config = ConfigDict(frozen=True, extra="allow")

    at: float = Field(ge=0, lt=1e11, allow_inf_nan=False)
    """In seconds since 1970; a time that no calendar knows is no verdict of ours."""
    by: str = ""
    commit: str
    content: str = ""
    """What the commit does, wherever it stands: a fix that was integrated anew keeps its verdict by this."""
    verdict: Verdict
    step: Literal["give", "undo", "redo"] = "give"
    """An undo or redo is a line too, with the verdict that it brings back."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """One verdict that was given, and what stood there before."""

    commit: str
    content: str
    before: Verdict
    after: Verdict
    why: str = ""


def parse_verdict(line: bytes) -> VerdictLine:
    """Read one line; anything wrong with it is a ValueError."""
    return VerdictLine.model_validate_json(line)


def fold_verdicts(
    lines: Sequence[VerdictLine], commits: Collection[str], contents: Mapping[str, str]
) -> dict[str, VerdictLine]:
    """Return the verdict of each commit that has one: the last line that names it, or that names a commit which is
    not among these but did the same (`contents` tells what each of these does)."""
    of_content: dict[str, list[str]] = {}
    for commit in commits:
        if commit in contents:
            of_content.setdefault(contents[commit], []).append(commit)
    verdicts: dict[str, VerdictLine] = {}
    for line in lines:
        meant = [line.commit] if line.commit in commits else of_content.get(line.content, []) if line.content else []
        for commit in meant:
            if line.verdict is Verdict.CLEAR:
                verdicts.pop(commit, None)
            else:
                verdicts[commit] = line
    return verdicts


def names_other_commits(lines: Sequence[VerdictLine], commits: Collection[str]) -> bool:
    """Whether some line can only be understood by what its commit does."""
    return any(line.commit not in commits for line in lines)


class History:
    """The verdicts on the fixes of one branch in the order in which they were given, as one person walks them back.

    The first `inherited` lines come from earlier reviews: they tell what stood there before, and are never undone.
    """

    def __init__(
        self,
        lines: Sequence[VerdictLine],
        commits: Sequence[str],
        contents: Mapping[str, str],
        *,
        by: str,
        inherited: int = 0,
    ) -> None:
        self._by_content = {contents[commit]: commit for commit in reversed(commits) if commit in contents}
        self._commits = frozenset(commits)
        self._done: list[VerdictChange] = []
        self._undone: list[VerdictChange] = []
        self._last_author: dict[str, str] = {}
        self._by = by
        current: dict[str, Verdict] = {}
        for place, line in enumerate(lines):
            fix = self._fix_of(line)
            if fix is None:
                continue
            before = current.get(fix, Verdict.CLEAR)
            current[fix] = line.verdict
            self._last_author[fix] = line.by
            if line.by == by and place >= inherited:
                self._apply_step(line, VerdictChange(fix, line.content, before, line.verdict, line.why))

    def step_back(self) -> VerdictChange | None:
        """Return the change that undo takes back: never one that somebody else has since decided anew."""
        return self._newest_own(self._done)

    def step_forward(self) -> VerdictChange | None:
        """Return the change that redo makes again, or None when nothing was undone since the last verdict."""
        return self._newest_own(self._undone)

    def _fix_of(self, line: VerdictLine) -> str | None:
        """Return the commit that a line means; None when it is about a fix that is not on this branch."""
        return line.commit if line.commit in self._commits else self._by_content.get(line.content)

    def _apply_step(self, line: VerdictLine, change: VerdictChange) -> None:
        match line.step:
            case "give":
                self._done.append(change)
                self._undone.clear()
            case "undo":
                _move_newest(change.commit, self._done, self._undone)
            case "redo":
                _move_newest(change.commit, self._undone, self._done)

    def _newest_own(self, changes: Sequence[VerdictChange]) -> VerdictChange | None:
        return next((change for change in reversed(changes) if self._last_author.get(change.commit) == self._by), None)


def _move_newest(commit: str, source: list[VerdictChange], target: list[VerdictChange]) -> None:
    for place in range(len(source) - 1, -1, -1):
        if source[place].commit == commit:
            target.append(source.pop(place))
            return
