"""Caches test results: one file for each tree, shared by all processes that run tests of a sweep."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from swarm_tui.errors import JournalError
from swarm_tui.journal.append import append_line
from swarm_tui.journal.follow import LineFollower

MAX_CACHE_BYTES: Final = 64_000_000


class ResultCache:
    """Test results by tree. The next lookup finds results that another process appended."""

    def __init__(self, folder: Path | None, settings_key: str, max_bytes: int = MAX_CACHE_BYTES) -> None:
        """Without a folder, results are kept in memory only. Results with another `settings_key` are ignored."""
        self._folder = folder
        self._settings_key = settings_key
        self._max_bytes = max_bytes
        self._outcomes: dict[str, dict[str, str]] = {}
        self._followers: dict[str, LineFollower] = {}

    def outcomes(self, tree: str) -> Mapping[str, str]:
        """Return the cached results on a tree by test; incomplete or invalid lines are ignored."""
        outcomes = self._outcomes.setdefault(tree, {})
        if self._folder is not None:
            follower = self._followers.setdefault(tree, LineFollower(self._path(tree)))
            with contextlib.suppress(JournalError):
                for _, line in follower.read()[0]:
                    with contextlib.suppress(ValueError, KeyError, TypeError):
                        entry = json.loads(line)
                        if entry["how"] == self._settings_key:
                            outcomes[str(entry["test"])] = str(entry["outcome"])
        return outcomes

    def add(self, tree: str, outcomes: Mapping[str, str]) -> None:
        """Cache the results of tests on a tree. If writing fails, they are kept in memory."""
        self._outcomes.setdefault(tree, {}).update(outcomes)
        if self._folder is None or not outcomes:
            return
        lines = [
            json.dumps({"at": time.time(), "how": self._settings_key, "test": test, "outcome": outcome})
            for test, outcome in outcomes.items()
        ]
        if not self._path(tree).exists():
            # Another process may remove the same files.
            with contextlib.suppress(OSError):
                self._remove_oldest()
        # A full disk only slows down later runs.
        with contextlib.suppress(JournalError):
            append_line(self._path(tree), "\n".join(lines))

    def _path(self, tree: str) -> Path:
        assert self._folder is not None, "only called with a folder"
        return self._folder / f"{tree}.jsonl"

    def _remove_oldest(self) -> None:
        """Remove the least recently written files until half of the allowed size is left."""
        assert self._folder is not None, "only called with a folder"
        files = [(path.stat(), path) for path in self._folder.glob("*.jsonl")]
        size = sum(status.st_size for status, _ in files)
        if size <= self._max_bytes:
            return
        for status, path in sorted(files, key=lambda item: item[0].st_mtime):
            if size > self._max_bytes // 2:
                path.unlink(missing_ok=True)
                size -= status.st_size
