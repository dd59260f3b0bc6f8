"""Counts how often an agent makes the same call while it does nothing new."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, OrderedDict
from typing import Any, Final

from swarm_tui.model.text import plain

CALLS_KEPT: Final = 500
_SHOWN: Final = 80
_TELLING: Final = ("command", "file_path", "path", "pattern", "url", "query")
# Claude Code describes its commands, each time in other words.
_NOT_COUNTED: Final = frozenset({"description"})


class CallRepeats:
    """The calls of one agent. A call that was not made before begins the count anew: the agent gets on."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._since_new: Counter[bytes] = Counter()
        self.call = ""
        """The call that was made most often since the last new one."""
        self.times = 0

    def add(self, tool: object, given: object) -> None:
        """Count a call by its tool and what it was given."""
        counted = (
            {key: value for key, value in given.items() if key not in _NOT_COUNTED}
            if isinstance(given, dict)
            else given
        )
        text = json.dumps([str(tool), counted], sort_keys=True, default=str)
        identity = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        if identity not in self._known:
            self._since_new.clear()
            self.times = 0
        self._known[identity] = None
        self._known.move_to_end(identity)
        if len(self._known) > CALLS_KEPT:
            self._known.popitem(last=False)
        self._since_new[identity] += 1
        if self._since_new[identity] >= self.times:
            self.times = self._since_new[identity]
            self.call = _shown(tool, given)


def _shown(tool: object, given: object) -> str:
    telling: Any = next((given[key] for key in _TELLING if given.get(key)), "") if isinstance(given, dict) else ""
    return plain(f"{tool} {telling}", _SHOWN).strip()
