"""Verdicts, their fold and their files."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.journal.append import append_line
from swarm_tui.journal.follow import LineFollower
from swarm_tui.journal.user_files import state_folder
from swarm_tui.model.text import parse_object, plain

PART_PREFIX: Final = "part-"
"""The prefix of ids of test changes."""


class Verdict(StrEnum):
    """A decision about a fix. CLEAR removes the verdict. A fix without a verdict, or with LATER, is open.

    PARTLY is derived: it means that some hunks of the fix are kept and the others reverted.
    """

    KEEP = "keep"
    REVERT = "revert"
    LATER = "later"
    CLEAR = "clear"
    PARTLY = "partly"


class VerdictLine(BaseModel):
    """One line of verdicts.jsonl: a verdict on a fix, with its time and user."""

    model_config = ConfigDict(frozen=True, extra="allow")

    at: float = Field(ge=0, lt=1e11, allow_inf_nan=False)
    """In seconds since 1970, bounded so that it can be shown as a date."""
    by: str = ""
    commit: str
    content: str = ""
    """A hash of the change. After a new integration, the verdict applies to the commit with the same hash."""
    verdict: Verdict
    step: Literal["give", "undo", "redo"] = "give"
    """An undo or redo is a separate line with the verdict that it restores."""
    why: str = ""
    action: str = ""
    """An id of the action that is the same in all its lines, which are undone together; "" for a single line."""


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """One verdict, and the verdict that it replaced."""

    commit: str
    content: str
    before: Verdict
    after: Verdict
    why: str = ""
    action: str = ""


def parse_verdict(line: bytes) -> VerdictLine:
    """Return the verdict in a line. Raise ValueError if the line is invalid."""
    parsed = VerdictLine.model_validate_json(line)
    if parsed.verdict is Verdict.PARTLY:
        raise ValueError("`partly` follows from verdicts on hunks and cannot be given")
    return parsed


def verdict_of_hunks(verdicts: Collection[Verdict | None]) -> Verdict | None:
    """Return the verdict on a fix that follows from the verdicts on its hunks; None while a hunk is open."""
    if len(set(verdicts)) == 1:
        return next(iter(verdicts))
    return Verdict.PARTLY if set(verdicts) == {Verdict.KEEP, Verdict.REVERT} else None


def verdict_counts(verdicts: Mapping[str, str], fixes: Iterable[str]) -> tuple[int, int, int, int]:
    """Return how many of the fixes are kept, partly kept, reverted and open."""
    found = [verdicts.get(fix) for fix in fixes]
    kept, partly, reverted = (found.count(word) for word in ("keep", "partly", "revert"))
    return kept, partly, reverted, len(found) - kept - partly - reverted


def closing_line(verdicts: Mapping[str, str], fixes: Collection[str]) -> str:
    """Return the line for scripts that is printed at the end of a review."""
    kept, partly, reverted, still_open = verdict_counts(verdicts, fixes)
    in_part = f", {partly} partly" if partly else ""
    return f"reviewed {kept + partly + reverted} of {len(fixes)}, {reverted} reverted{in_part}, {still_open} open"


class VerdictFold:
    """The current verdict on each fix, test change and hunk, computed from verdict lines in order.

    A verdict on a fix overrides earlier verdicts on its hunks until it is undone. `fix_of` maps hunks to their fixes.
    """

    def __init__(self, fix_of: Mapping[str, str]) -> None:
        self._fix_of = fix_of
        self._last: dict[str, tuple[int, VerdictLine]] = {}
        self._on_whole: dict[str, list[int]] = {}
        self._place = 0

    def add(self, commit: str, line: VerdictLine) -> None:
        """Add the next verdict line, which is about this commit, test change or hunk."""
        self._place += 1
        self._last[commit] = (self._place, line)
        whole = self._on_whole.setdefault(commit, [])
        if line.step != "undo":
            whole.append(self._place if line.verdict is not Verdict.LATER else 0)
        elif whole:
            whole.pop()

    def line_of(self, commit: str) -> VerdictLine | None:
        """Return the current verdict line, or None."""
        place, line = self._last.get(commit, (0, None))
        is_overruled = place < max(self._on_whole.get(self._fix_of.get(commit, ""), ()), default=0)
        return None if line is None or is_overruled or line.verdict is Verdict.CLEAR else line

    def lines(self) -> dict[str, VerdictLine]:
        """Return all current verdict lines."""
        return {commit: line for commit in self._last if (line := self.line_of(commit)) is not None}


def fold_verdicts(
    lines: Sequence[VerdictLine],
    commits: Collection[str],
    contents: Mapping[str, str],
    fix_of: Mapping[str, str] | None = None,
) -> VerdictFold:
    """Return the fold of lines about these commits; `fix_of` maps hunks to their fixes.

    A line about another commit applies to the commits with the same content. `contents` maps commits to content hashes.
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
    return fold


class History:
    """The verdicts of one user on the fixes of a branch, for undo and redo.

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
        """Return the changes that undo reverts, last first, without verdicts that other users replaced."""
        return self._last_action(self._done)

    def step_forward(self) -> list[VerdictChange]:
        """Return the changes that redo repeats; empty if nothing was undone since the last verdict."""
        return self._last_action(self._undone)

    def _fix_of(self, line: VerdictLine) -> str | None:
        """Return the commit that a line applies to, or None if it is not on this branch."""
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


VERDICTS_FILE: Final = "verdicts.jsonl"
RESOLUTIONS_FILE: Final = "resolutions.jsonl"
APPLIED_FILE: Final = "applied.jsonl"
OBJECTS_FOLDER: Final = "objects"


@dataclass(frozen=True, slots=True)
class ReviewFolder:
    """The paths of one review."""

    verdicts: Path
    root: Path
    """All other files: resolutions, their objects, test results."""
    inherited: tuple[Path, ...] = ()
    """Verdicts on earlier tips of the same base, which are still valid for unchanged fixes."""

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders of resolutions and applied plans: those of earlier tips first, the current one last."""
        return (*(path.parent for path in self.inherited), self.root)

    @property
    def objects(self) -> Path:
        return self.root / OBJECTS_FOLDER

    @property
    def results(self) -> Path:
        """The folder of cached test results, which the integrator also writes to."""
        return self.root / "tests"


def review_of_sweep(folder: Path) -> ReviewFolder:
    return ReviewFolder(folder / VERDICTS_FILE, folder / "review")


def review_without_sweep(base: str, tip: str, state: Path | None = None) -> ReviewFolder:
    """Return the folder for the review of a branch without a sweep, inside the user's state folder."""
    reviews = (state or state_folder()) / "reviews"
    root = reviews / f"{base}-{tip}"
    earlier = [path for path in reviews.glob(f"{base}-*/{VERDICTS_FILE}") if path.parent != root]
    return ReviewFolder(root / VERDICTS_FILE, root, tuple(sorted(earlier, key=_age)))


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


class VerdictStore:
    """The verdicts of one review. Several rooms may append to it at the same time."""

    def __init__(self, folder: ReviewFolder) -> None:
        self.folder = folder
        self.damaged = 0
        """Invalid lines, which are ignored and left unchanged."""
        self._follower = LineFollower(folder.verdicts)
        self._inherited = [line for path in folder.inherited for line in self._parse(LineFollower(path).read()[0])]
        self._lines: list[VerdictLine] = []
        self._unread: dict[bytes, VerdictLine] = {}
        """Lines that this process wrote and `refresh` has not read yet."""
        self.refresh()

    @property
    def lines(self) -> list[VerdictLine]:
        """All verdicts in chronological order, those on earlier tips first."""
        return [*self._inherited, *self._lines, *self._unread.values()]

    @property
    def inherited(self) -> int:
        return len(self._inherited)

    def refresh(self) -> bool:
        """Read the lines that other processes appended since the last call; return whether there were any."""
        lines, is_restarted = self._follower.read()
        if is_restarted:
            self._lines, self._unread = [], {}
        own = [line in self._unread for _, line in lines]
        # In the order of the file: another process may have written before this one.
        for line, is_own in zip(lines, own, strict=True):
            self._lines += [self._unread.pop(line[1])] if is_own else self._parse([line])
        return is_restarted or not all(own)

    def append(self, lines: Sequence[VerdictLine]) -> list[VerdictLine]:
        """Write verdicts, all of them or none, and return them with their time. On return they are safely on disk."""
        at = time.time()
        written = {(stamped := line.model_copy(update={"at": at})).model_dump_json(): stamped for line in lines}
        append_line(self.folder.verdicts, "\n".join(written))
        self._unread |= {text.encode(): line for text, line in written.items()}
        return list(written.values())

    def _parse(self, lines: list[tuple[int, bytes]]) -> list[VerdictLine]:
        found = []
        for _, line in lines:
            try:
                found.append(parse_verdict(line))
            except ValueError:
                self.damaged += bool(line.strip())
        return found


def count_kept(folder: ReviewFolder) -> int:
    """Return the number of fixes whose last verdict is keep. A fix that was integrated again counts once."""
    return sum(verdict is Verdict.KEEP for verdict in _last_verdicts(folder))


def count_decided(folder: ReviewFolder) -> int:
    """Return the number of fixes whose last verdict is keep or revert."""
    return sum(verdict in (Verdict.KEEP, Verdict.REVERT) for verdict in _last_verdicts(folder))


def _last_verdicts(folder: ReviewFolder) -> list[Verdict]:
    """Return the last verdict on each fix, without verdicts on test changes."""
    lines = (line for line in VerdictStore(folder).lines if not line.commit.startswith(PART_PREFIX))
    return list({line.content or line.commit: line.verdict for line in lines}.values())


def applied_plans(folder: ReviewFolder) -> Iterator[dict[str, Any]]:
    """Yield the entries of the plans that were applied, those of earlier tips first."""
    return _entries(folder, APPLIED_FILE)


def _entries(folder: ReviewFolder, name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in the lines of a file; other lines are ignored."""
    lines = (line for root in folder.roots for _, line in LineFollower(root / name).read()[0])
    return filter(None, map(parse_object, lines))


def applied_branch_of(folder: ReviewFolder) -> str:
    """Return the branch that the plan was last applied to; "" if it was not, or if a verdict was added since."""
    branch, applied_at = "", 0.0
    for entry in applied_plans(folder):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            branch, applied_at = plain(str(entry["branch"]), 200), float(entry["at"])
    return branch if all(line.at <= applied_at for line in VerdictStore(folder).lines) else ""


def read_resolutions(folder: ReviewFolder) -> dict[str, dict[str, TreeEntry | None]]:
    """Return the resolutions of conflicts by key; incomplete or invalid lines are ignored."""
    found: dict[str, dict[str, TreeEntry | None]] = {}
    for entry in _entries(folder, RESOLUTIONS_FILE):
        try:
            found[str(entry["conflict"])] = {
                str(path): TreeEntry(str(entry_fields[0]), str(entry_fields[1])) if entry_fields else None
                for path, entry_fields in entry["paths"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            continue
    return found


def append_resolution(
    folder: ReviewFolder, conflict: str, commit: str, resolution: Mapping[str, TreeEntry | None], by: str
) -> None:
    entry = {"at": time.time(), "by": by, "commit": commit, "conflict": conflict, "paths": dict(resolution)}
    append_line(folder.root / RESOLUTIONS_FILE, json.dumps(entry))
