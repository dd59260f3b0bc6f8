"""The files of a review: verdicts, resolutions of conflicts, and the results of tests."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.journal.append import append_line
from swarm_tui.journal.follow import LineFollower
from swarm_tui.model.verdicts import Verdict, VerdictLine, parse_verdict

VERDICTS_FILE: Final = "verdicts.jsonl"
RESOLUTIONS_FILE: Final = "resolutions.jsonl"
APPLIED_FILE: Final = "applied.jsonl"
OBJECTS_FOLDER: Final = "objects"


@dataclass(frozen=True, slots=True)
class ReviewFolder:
    """The paths of one review."""

    verdicts: Path
    root: Path
    """Everything else: resolutions, their objects, test results."""
    inherited: tuple[Path, ...] = ()
    """Verdicts on earlier tips of the same base: they still hold for fixes that have not changed."""

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders in which resolutions lie and what was applied: those of earlier tips first, ours last."""
        return (*(path.parent for path in self.inherited), self.root)

    @property
    def objects(self) -> Path:
        return self.root / OBJECTS_FOLDER

    @property
    def results(self) -> Path:
        """The folder of cached test outcomes, which the integrator writes to as well."""
        return self.root / "tests"


def review_of_sweep(folder: Path) -> ReviewFolder:
    return ReviewFolder(folder / VERDICTS_FILE, folder / "review")


def review_without_sweep(base: str, tip: str, state_home: Path | None = None) -> ReviewFolder:
    """Return the folder, in the user's state folder, of a review of a branch that no sweep made."""
    reviews = (state_home or _state_home()) / "swarm-tui" / "reviews"
    root = reviews / f"{base}-{tip}"
    earlier = [path for path in reviews.glob(f"{base}-*/{VERDICTS_FILE}") if path.parent != root]
    return ReviewFolder(root / VERDICTS_FILE, root, tuple(sorted(earlier, key=_age)))


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _state_home() -> Path:
    named = os.environ.get("XDG_STATE_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".local/state"


class VerdictStore:
    """The verdicts of one review, which several rooms may append to at the same time."""

    def __init__(self, folder: ReviewFolder, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.damaged = 0
        """Lines that are no verdict; they are passed over and left where they are."""
        self._clock = clock
        self._follower = LineFollower(folder.verdicts)
        self._inherited = [line for path in folder.inherited for line in self._parse(LineFollower(path).read()[0])]
        self._lines: list[VerdictLine] = []
        self.refresh()

    @property
    def lines(self) -> list[VerdictLine]:
        """All verdicts in the order in which they were given, those on earlier tips first."""
        return [*self._inherited, *self._lines]

    @property
    def inherited(self) -> int:
        return len(self._inherited)

    def refresh(self) -> bool:
        """Read the lines that were appended since the last call, by any process; return whether there were some."""
        lines, is_restarted = self._follower.read()
        if is_restarted:
            self._lines = []
        self._lines += self._parse(lines)
        return is_restarted or bool(lines)

    def append(self, lines: Sequence[VerdictLine]) -> None:
        """Write verdicts, all of them or none; when this returns, they survive our death."""
        update = {"at": self._clock()}
        append_line(self.folder.verdicts, "\n".join(line.model_copy(update=update).model_dump_json() for line in lines))
        self.refresh()

    def _parse(self, lines: list[tuple[int, bytes]]) -> list[VerdictLine]:
        found = []
        for _, line in lines:
            try:
                found.append(parse_verdict(line))
            except ValueError:
                self.damaged += bool(line.strip())
        return found


def count_kept(folder: ReviewFolder) -> int:
    """Return how many fixes are kept by their last verdicts; one that was integrated again counts once."""
    return sum(verdict is Verdict.KEEP for verdict in _last_verdicts(folder))


def count_decided(folder: ReviewFolder) -> int:
    """Return how many fixes are kept or reverted by their last verdicts."""
    return sum(verdict in (Verdict.KEEP, Verdict.REVERT) for verdict in _last_verdicts(folder))


def _last_verdicts(folder: ReviewFolder) -> list[Verdict]:
    return list({line.content or line.commit: line.verdict for line in VerdictStore(folder).lines}.values())


def read_resolutions(folder: ReviewFolder) -> dict[str, dict[str, TreeEntry | None]]:
    """Return the resolutions of conflicts by the conflict's key; torn or broken lines are skipped."""
    found: dict[str, dict[str, TreeEntry | None]] = {}
    for _, line in (line for root in folder.roots for line in LineFollower(root / RESOLUTIONS_FILE).read()[0]):
        try:
            entry = json.loads(line)
            found[str(entry["conflict"])] = {
                str(path): TreeEntry(str(held[0]), str(held[1])) if held else None
                for path, held in entry["paths"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            continue
    return found


def append_resolution(
    folder: ReviewFolder, conflict: str, commit: str, resolution: Mapping[str, TreeEntry | None], by: str
) -> None:
    entry = {"at": time.time(), "by": by, "commit": commit, "conflict": conflict, "paths": dict(resolution)}
    append_line(folder.root / RESOLUTIONS_FILE, json.dumps(entry))
