"""What an agent's transcript comes to: its last line, its question, and what it has cost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from swarm_tui.agents.call_repeats import CallRepeats
from swarm_tui.model.spending import ModelTokens
from swarm_tui.model.text import plain

_LINE_LIMIT = 300


class TranscriptSummary:
    """Reads the records of mngr's common transcript as they come."""

    def __init__(self) -> None:
        self.last_line = ""
        self.dollars: float | None = None
        self.tokens: int | None = None
        self.models: tuple[ModelTokens, ...] = ()
        """The tokens by model, where the transcript says them."""
        self.repeats = CallRepeats()
        self.limited_until: float | None = None
        """When the limit that the agent's last request met is over, if its server has said it."""

    @property
    def asked(self) -> str:
        """What the agent asks by a call that has no answer yet."""
        return ""

    @property
    def question(self) -> str:
        """What the agent asks, if it waits now."""
        return self.asked or self.last_line

    def read(self, lines: Iterable[bytes]) -> None:
        """Read further lines of the transcript; what is no record is passed over."""
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                self._read_record(record)

    def _read_record(self, record: dict[str, Any]) -> None:
        if record.get("source") != "agent":
            return
        message, calls = record.get("message"), record.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self.repeats.add(call.get("function_name"), call.get("arguments"))
        if isinstance(message, str) and message.strip():
            # A question usually is at the end of a message.
            self.last_line = last_line_of(message)
        elif isinstance(calls, list):
            names = [call.get("function_name") for call in calls if isinstance(call, dict)]
            self.last_line = plain("uses " + ", ".join(str(name) for name in names[:3]), _LINE_LIMIT)
        metrics = record.get("metrics")
        if isinstance(metrics, dict):
            dollars = number_of(metrics.get("cost_usd"))
            used = [number_of(metrics.get(key)) for key in ("prompt_tokens", "completion_tokens")]
            if dollars is not None:
                self.dollars = (self.dollars or 0.0) + dollars
            if any(count is not None for count in used):
                self.tokens = (self.tokens or 0) + int(sum(count or 0 for count in used))


def last_line_of(message: str) -> str:
    return plain(message.strip().split("\n")[-1][-4 * _LINE_LIMIT :], _LINE_LIMIT)


def number_of(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e12 else None
