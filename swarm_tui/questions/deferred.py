"""Inbox items that the user deferred. Like verdicts, they work without an engine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Final

from swarm_tui.journal.append import append_line
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LineFollower
from swarm_tui.journal.requests import user_name
from swarm_tui.model.text import parse_json

PUT_OFF_FILE: Final = "later.jsonl"


class DeferredItems:
    """The deferred items of one sweep. Several rooms may change them at the same time."""

    def __init__(self, folder: SweepFolder) -> None:
        self._path = folder.root / PUT_OFF_FILE
        self._lines = LineFollower(self._path)
        self._items: set[str] = set()

    def items(self) -> frozenset[str]:
        """Return the ids of the deferred items."""
        lines, is_restarted = self._lines.read()
        if is_restarted:
            self._items.clear()
        for _, line in lines:
            try:
                change = parse_json(line)
                named = {item for item in change["items"] if isinstance(item, str)}
                is_deferred = change["is_deferred"] is True
            except (ValueError, KeyError, TypeError):
                continue
            self._items = self._items | named if is_deferred else self._items - named
        return frozenset(self._items)

    def change(self, items: Iterable[str], *, is_deferred: bool) -> None:
        """Defer items, or undo that."""
        line = {"at": time.time(), "by": user_name(), "items": list(items), "is_deferred": is_deferred}
        append_line(self._path, json.dumps(line))
