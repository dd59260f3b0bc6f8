"""Verdicts on fixes: the lines of verdicts.jsonl, and the fold of these lines into one verdict for each fix."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Verdict(StrEnum):
    """A decision about a fix. CLEAR removes the verdict. A fix without a verdict, or with LATER, is open.

    PARTLY is given by nobody: it stands for a fix of which some hunks are kept and the others are reverted.
    """

    KEEP = "keep"
    REVERT = "revert"
    LATER = "later"
    CLEAR = "clear"
    PARTLY = "partly"


class VerdictLine(BaseModel):
    """One line of verdicts.jsonl: the verdict of a person on a fix, and its time."""

    model_config = ConfigDict(frozen=True, extra="allow")

    at: float = Field(ge=0, lt=1e11, allow_inf_nan=False)
    """In seconds since 1970; bounded, so that it can be shown as a date."""
    by: str = ""
    commit: str
    content: str = ""
    """A digest of the change. By it a verdict applies to the same fix in another commit, after a new integration."""
    verdict: Verdict
    step: Literal["give", "undo", "redo"] = "give"
    """An undo or redo is a line of its own, with the verdict that it restores."""
    why: str = ""
    action: str = ""
    """The same in all lines of one action, which are undone together; "" where the line is all of it."""


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """One verdict of a person, and the verdict that it replaced."""

    commit: str
    content: str
    before: Verdict
    after: Verdict
    why: str = ""
    action: str = ""


def parse_verdict(line: bytes) -> VerdictLine:
    """Return the verdict in a line; raise ValueError for any other line."""
    found = VerdictLine.model_validate_json(line)
    if found.verdict is Verdict.PARTLY:
        raise ValueError("only verdicts on its hunks make a fix partly kept")
    return found


def verdict_of_hunks(verdicts: Collection[Verdict | None]) -> Verdict | None:
    """Return the verdict on a fix that follows from those on all of its hunks; it is open while one of them is."""
    if len(set(verdicts)) == 1:
        return next(iter(verdicts))
    return Verdict.PARTLY if set(verdicts) == {Verdict.KEEP, Verdict.REVERT} else None


class VerdictFold:
    """Takes verdicts one after the other, and has the last one on each fix, part and hunk.

    A verdict on a whole fix overrules all that were given on its hunks before, until it is undone. `fix_of` maps hunks
    to their fixes.
    """

    def __init__(self, fix_of: Mapping[str, str]) -> None:
        self._fix_of = fix_of
        self._last: dict[str, tuple[int, VerdictLine]] = {}
        self._on_whole: dict[str, list[int]] = {}
        self._place = 0

    def add(self, commit: str, line: VerdictLine) -> None:
        """Take the next verdict, which is on this commit, part or hunk."""
        self._place += 1
        self._last[commit] = (self._place, line)
        whole = self._on_whole.setdefault(commit, [])
        if line.step != "undo":
            whole.append(self._place if line.verdict is not Verdict.LATER else 0)
        elif whole:
            whole.pop()

    def line_of(self, commit: str) -> VerdictLine | None:
        """Return the verdict that holds, or None where there is none of its own."""
        place, line = self._last.get(commit, (0, None))
        is_overruled = place < max(self._on_whole.get(self._fix_of.get(commit, ""), ()), default=0)
        return None if line is None or is_overruled or line.verdict is Verdict.CLEAR else line

    def lines(self) -> dict[str, VerdictLine]:
        """Return all verdicts that hold."""
        return {commit: line for commit in self._last if (line := self.line_of(commit)) is not None}


def fold_verdicts(
    lines: Sequence[VerdictLine],
    commits: Collection[str],
    contents: Mapping[str, str],
    fix_of: Mapping[str, str] | None = None,
) -> dict[str, VerdictLine]:
    """Return the verdict that holds on each of the commits that has one; `fix_of` maps hunks to their fixes.

    A line that names none of the commits applies to those with the same content. `contents` maps commits to contents.
    """
    commits_of_content: dict[str, list[str]] = {}
    for commit in commits:
        if commit in contents:
            commits_of_content.setdefault(contents[commit], []).append(commit)
    fold = VerdictFold(fix_of or {})
    for line in lines:
        if line.commit in commits:
            named = [line.commit]
        else:
            named = commits_of_content.get(line.content, []) if line.content else []
        for commit in named:
            fold.add(commit, line)
    return fold.lines()


def names_other_commits(lines: Sequence[VerdictLine], commits: Collection[str]) -> bool:
    """Return whether a line names a commit that is not among these."""
    return any(line.commit not in commits for line in lines)


class History:
    """The verdicts of one person on the fixes of a branch, in order, for undo and redo.

    The first `inherited` lines come from earlier reviews and are never undone.
    """

    def __init__(
        self,
        lines: Sequence[VerdictLine],
        commits: Sequence[str],
        contents: Mapping[str, str],
        *,
        by: str,
        inherited: int = 0,
        fix_of: Mapping[str, str] | None = None,
    ) -> None:
        self._by_content = {contents[commit]: commit for commit in reversed(commits) if commit in contents}
        self._commits = frozenset(commits)
        self._done: list[VerdictChange] = []
        self._undone: list[VerdictChange] = []
        self._last_author: dict[str, str] = {}
        self._by = by
        fold = VerdictFold(fix_of or {})
        for place, line in enumerate(lines):
            fix = self._fix_of(line)
            if fix is None:
                continue
            held = fold.line_of(fix)
            before = held.verdict if held is not None else Verdict.CLEAR
            fold.add(fix, line)
            self._last_author[fix] = line.by
            if line.by == by and place >= inherited:
                change = VerdictChange(fix, line.content, before, line.verdict, line.why, line.action)
                self._apply_step(line.step, change)

    def step_back(self) -> list[VerdictChange]:
        """Return the changes of the action that undo reverts, the last first; those replaced by others are left out."""
        return self._last_action(self._done)

    def step_forward(self) -> list[VerdictChange]:
        """Return the changes of the action that redo repeats; none when nothing was undone since the last verdict."""
        return self._last_action(self._undone)

    def _fix_of(self, line: VerdictLine) -> str | None:
        """Return the commit that a line applies to; None when its fix is not on this branch."""
        return line.commit if line.commit in self._commits else self._by_content.get(line.content)

    def _apply_step(self, step: str, change: VerdictChange) -> None:
        match step:
            case "give":
                self._done.append(change)
                self._undone.clear()
            case "undo":
                _move_newest(change.commit, self._done, self._undone)
            case "redo":
                _move_newest(change.commit, self._undone, self._done)

    def _last_action(self, changes: Sequence[VerdictChange]) -> list[VerdictChange]:
        ours = [change for change in reversed(changes) if self._last_author.get(change.commit) == self._by]
        if not ours or not ours[0].action:
            return ours[:1]
        return [change for change in ours if change.action == ours[0].action]


def _move_newest(commit: str, source: list[VerdictChange], target: list[VerdictChange]) -> None:
    for place in range(len(source) - 1, -1, -1):
        if source[place].commit == commit:
            target.append(source.pop(place))
            return
