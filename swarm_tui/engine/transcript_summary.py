"""Takes from an agent's transcript what the sweep shows at once: its last words, and what it has cost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from swarm_tui.model.text import plain

_LINE_LIMIT = 300


@dataclass(slots=True)
class Words:
    """What an agent's transcript came to so far."""

    last_line: str = ""
    dollars: float | None = None
    tokens: int | None = None

    def take(self, lines: Iterable[bytes]) -> None:
        """Take further lines of the transcript; what is no record of it is passed over."""
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and record.get("source") == "agent":
                self._take_step(record)

    def _take_step(self, record: dict[str, Any]) -> None:
        said = record.get("message")
        if isinstance(said, str) and said.strip():
            # Of a long message the end tells most: a question stands there.
            self.last_line = plain(said.strip().split("\n")[-1][-4 * _LINE_LIMIT :], _LINE_LIMIT)
        elif isinstance(record.get("tool_calls"), list):
            names = [call.get("function_name") for call in record["tool_calls"] if isinstance(call, dict)]
            self.last_line = plain("uses " + ", ".join(str(name) for name in names[:3]), _LINE_LIMIT)
        metrics = record.get("metrics")
        if isinstance(metrics, dict):
            dollars = _number(metrics.get("cost_usd"))
            used = [_number(metrics.get(key)) for key in ("prompt_tokens", "completion_tokens")]
            if dollars is not None:
                self.dollars = (self.dollars or 0.0) + dollars
            if any(count is not None for count in used):
                self.tokens = (self.tokens or 0) + int(sum(count or 0 for count in used))


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e12 else None
