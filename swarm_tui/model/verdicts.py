"""What people decide about fixes: the lines of verdicts.jsonl, and how they fold into one verdict for each fix."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict


class Verdict(StrEnum):
    """What a person says of a fix. CLEAR takes back what was said; a fix without a verdict, or later, is open."""

    KEEP = "keep"
    REVERT = "revert"
    LATER = "later"
    CLEAR = "clear"


class VerdictLine(BaseModel):
    """One line of verdicts.jsonl: who gave which verdict to which fix, and when."""

    model_config = ConfigDict(frozen=True, extra="allow")

    at: float
    by: str = ""
    commit: str
    content: str = ""
    """What the commit does, wherever it stands: a fix that was integrated anew keeps its verdict by this."""
    verdict: Verdict
    step: Literal["give", "undo", "redo"] = "give"
    """An undo or redo is a line too, with the verdict that it brings back."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Change:
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
    """Give the verdict of each commit that has one: the last line that names it, or that names a commit which is
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


def step_back(lines: Sequence[VerdictLine], by: str, inherited: int = 0) -> Change | None:
    """Give the change that this person's undo takes back: never one that somebody else has since decided anew.

    The first `inherited` lines come from earlier reviews: they tell what stood there before, and are never undone.
    """
    done, _ = _steps(lines, by, inherited)
    return _newest_own(done, lines, by)


def step_forward(lines: Sequence[VerdictLine], by: str, inherited: int = 0) -> Change | None:
    """Give the change that this person's redo makes again, or None when nothing was undone since their last verdict."""
    _, undone = _steps(lines, by, inherited)
    return _newest_own(undone, lines, by)


def _fix_of(line: VerdictLine | Change) -> str:
    return line.content or line.commit


def _steps(lines: Sequence[VerdictLine], by: str, inherited: int) -> tuple[list[Change], list[Change]]:
    """Give what this person has done, and what they have undone and may redo; the newest last."""
    current: dict[str, Verdict] = {}
    done: list[Change] = []
    undone: list[Change] = []
    for place, line in enumerate(lines):
        before = current.get(_fix_of(line), Verdict.CLEAR)
        current[_fix_of(line)] = line.verdict
        if line.by != by or place < inherited:
            continue
        match line.step:
            case "give":
                done.append(Change(line.commit, line.content, before, line.verdict, line.why))
                undone.clear()
            case "undo":
                _move_newest(_fix_of(line), done, undone)
            case "redo":
                _move_newest(_fix_of(line), undone, done)
    return done, undone


def _move_newest(fix: str, source: list[Change], target: list[Change]) -> None:
    for place in range(len(source) - 1, -1, -1):
        if _fix_of(source[place]) == fix:
            target.append(source.pop(place))
            return


def _newest_own(changes: Sequence[Change], lines: Sequence[VerdictLine], by: str) -> Change | None:
    last_word = {_fix_of(line): line.by for line in lines}
    return next((change for change in reversed(changes) if last_word.get(_fix_of(change)) == by), None)
