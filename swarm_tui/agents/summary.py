"""Last line, question, cost, repeated calls of a transcript."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from swarm_tui.model.text import parse_object, plain
from swarm_tui.money.events import MOST_DOLLARS, MOST_TOKENS, ModelTokens, summed

CALLS_KEPT: Final = 500
_LENGTH: Final = 80
_SUBJECT_KEYS: Final = ("command", "file_path", "path", "pattern", "url", "query")
# Claude Code describes its commands, each time in other words.
_IGNORED_KEYS: Final = frozenset({"description"})


class CallRepeats:
    """Counts the calls of one agent. A call that is new resets the count, because the agent makes progress."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._since_new: Counter[bytes] = Counter()
        self.call = ""
        """The most frequent call since the last new one."""
        self.times = 0

    def add(self, tool: object, arguments: object) -> None:
        """Count a call of a tool with this input."""
        relevant = (
            {key: value for key, value in arguments.items() if key not in _IGNORED_KEYS}
            if isinstance(arguments, dict)
            else arguments
        )
        text = json.dumps([str(tool), relevant], sort_keys=True, default=str)
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
            self.call = _shown(tool, arguments)


def _shown(tool: object, arguments: object) -> str:
    subject: Any = (
        next((arguments[key] for key in _SUBJECT_KEYS if arguments.get(key)), "") if isinstance(arguments, dict) else ""
    )
    return plain(f"{tool} {subject}", _LENGTH).strip()


# The parts of a message follow each other closely, even if a subagent's messages come in between.
_MESSAGES_KEPT: Final = 64
# An agent can write any number of names into its log.
_MODELS_KEPT: Final = 8
OTHER_MODELS: Final = "other models"


class ModelUsage:
    """The tokens of one agent by model. A later record of a message replaces the earlier one."""

    def __init__(self) -> None:
        self.models: tuple[ModelTokens, ...] = ()
        self._counted: OrderedDict[str, ModelTokens] = OrderedDict()
        self._of_model: dict[str, ModelTokens] = {}

    def set(self, message: str, used: ModelTokens) -> None:
        """Set the tokens of a message. Ignore impossible numbers, because the agent can write its log."""
        if not 0 < sum(used[1:]) <= MOST_TOKENS:
            return
        if used.model not in self._of_model and len(self._of_model) >= _MODELS_KEPT:
            used = used._replace(model=OTHER_MODELS)
        before = self._counted.pop(message, None)
        changes = (used,) if before is None else (used, before.negative)
        for change in changes:
            total = self._of_model.get(change.model, ModelTokens(change.model))
            self._of_model[change.model] = next(iter(summed((total, change))), ModelTokens(change.model))
        self._counted[message] = used
        if len(self._counted) > _MESSAGES_KEPT:
            self._counted.popitem(last=False)
        self.models = tuple(self._of_model.values())


def billed_tokens(models: Iterable[ModelTokens]) -> int:
    """Return the tokens without cache reads, because they were counted when they were written."""
    return sum(each.input + each.output + each.cache_written for each in models)


_LINE_LIMIT = 300


class TranscriptSummary:
    """Reads the records of mngr's common transcript incrementally."""

    def __init__(self) -> None:
        self.last_line = ""
        self.dollars: float | None = None
        self.tokens: int | None = None
        self.models: tuple[ModelTokens, ...] = ()
        """Tokens by model, if the transcript has them."""
        self.repeats = CallRepeats()
        self.limited_until: float | None = None
        """When the rate limit of the agent's last request ends, if the server reported it."""

    @property
    def asked(self) -> str:
        """The question of a call that is not answered yet."""
        return ""

    @property
    def question(self) -> str:
        """The question that the agent asks if it is waiting now: its open question, or else its last line."""
        return self.asked or self.last_line

    def read(self, lines: Iterable[bytes]) -> None:
        """Read more lines of the transcript; ignore lines that are not records."""
        for line in lines:
            self._read_record(parse_object(line))

    def _read_record(self, record: dict[str, Any]) -> None:
        if record.get("source") != "agent":
            return
        message, calls = record.get("message"), record.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self.repeats.add(call.get("function_name"), call.get("arguments"))
        if isinstance(message, str) and message.strip():
            # A question is usually at the end of a message.
            self.last_line = last_line_of(message)
        elif isinstance(calls, list):
            names = [call.get("function_name") for call in calls if isinstance(call, dict)]
            self.last_line = plain("uses " + ", ".join(str(name) for name in names[:3]), _LINE_LIMIT)
        metrics = record.get("metrics")
        if isinstance(metrics, dict):
            dollars = number_of(metrics.get("cost_usd"))
            used = [number_of(metrics.get(key)) for key in ("prompt_tokens", "completion_tokens")]
            if dollars is not None and dollars <= MOST_DOLLARS:
                self.dollars = (self.dollars or 0.0) + dollars
            count = int(sum(count or 0 for count in used))
            if any(count is not None for count in used) and count <= MOST_TOKENS:
                self.tokens = (self.tokens or 0) + count


def last_line_of(message: str) -> str:
    return plain(message.strip().split("\n")[-1][-4 * _LINE_LIMIT :], _LINE_LIMIT)


def number_of(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e12 else None
