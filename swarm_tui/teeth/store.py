"""The file in which the measured teeth of a review's tests are kept."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from swarm_tui.journal.append import append_line
from swarm_tui.journal.follow import LineFollower
from swarm_tui.model.teeth import TestTeeth

TEETH_FILE: Final = "teeth.jsonl"


class TeethStore:
    """What was measured, by test; only what was measured on the same trees and in the same way counts."""

    def __init__(self, folder: Path, key: str) -> None:
        self._path = folder / TEETH_FILE
        self._key = key

    def read(self) -> dict[str, TestTeeth]:
        """Return the last measurement of each test; broken lines are passed over."""
        found: dict[str, TestTeeth] = {}
        for _, line in LineFollower(self._path).read()[0]:
            try:
                entry = json.loads(line)
                if entry["key"] == self._key:
                    teeth = TestTeeth.model_validate(entry["teeth"])
                    found[teeth.test] = teeth
            except (ValueError, KeyError, TypeError, ValidationError):
                continue
        return found

    def add(self, measured: Iterable[TestTeeth]) -> None:
        lines = [
            json.dumps({"at": time.time(), "key": self._key, "teeth": teeth.model_dump(mode="json")})
            for teeth in measured
        ]
        if lines:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            append_line(self._path, "\n".join(lines))
