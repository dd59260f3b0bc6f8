"""Histories whose preview once differed from `git revert`; `python -m tests.review.search` adds to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

from tests.review.histories import Edit

FOUND: Final = Path(__file__).parent / "found_histories.json"


class FoundHistory(NamedTuple):
    """A history, its reverted commits, and git's setting merge.directoryRenames."""

    history: list[list[Edit]]
    reverted: list[int]
    directory_renames: str

    @property
    def name(self) -> str:
        changes = "+".join(change[0].replace(" ", "_") for commit in self.history for change in commit)
        return f"{changes}-{self.directory_renames}"


def read_found_histories(path: Path = FOUND) -> list[FoundHistory]:
    """Return all histories that were found so far."""
    return [
        FoundHistory(
            [[(kind, which, place, how) for kind, which, place, how in commit] for commit in entry["history"]],
            entry["reverted"],
            entry["directory_renames"],
        )
        for entry in json.loads(path.read_text())
    ]


def add_found_history(found: FoundHistory, path: Path = FOUND) -> bool:
    """Add a history to the examples of later runs; return whether it is new."""
    known = read_found_histories(path)
    if found in known:
        return False
    lines = ",\n".join(json.dumps(entry._asdict()) for entry in [*known, found])
    path.write_text(f"[\n{lines}\n]\n")
    return True
