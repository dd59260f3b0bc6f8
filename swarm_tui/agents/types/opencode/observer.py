"""What opencode is doing and asking, from the lines of our plugin."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swarm_tui.agents.hook import EVENTS_PATH
from swarm_tui.agents.hook_questions import AsksByHook, text_of
from swarm_tui.agents.observer import TURN_OVER, Observation, ObservedFile
from swarm_tui.agents.summary import ModelUsage, number_of
from swarm_tui.limits.events import ApiError, ApiErrorKind
from swarm_tui.model.text import parse_object, plain
from swarm_tui.money.events import MOST_DOLLARS, ModelTokens

EVENTS: Final = ObservedFile("events", EVENTS_PATH)
LONG_PAUSE: Final = 60.0
"""A retry that waits longer than this many seconds is a limit with an end."""

_KIND_OF_STATUS: Final = {
    401: ApiErrorKind.LOGIN_LOST,
    402: ApiErrorKind.UNPAID,
    403: ApiErrorKind.LOGIN_LOST,
    408: ApiErrorKind.OVERLOADED,
    429: ApiErrorKind.LIMITED,
}
_LIMIT_WORDS: Final = ("rate limit", "too many requests", "429", "usage limit", "quota")
_MESSAGES_KEPT: Final = 64


@dataclass(slots=True)
class OpenCodeObserver(AsksByHook):
    """Observer of one opencode agent. Subagents count for the usage, and not for the state."""

    files: Sequence[ObservedFile] = (EVENTS,)
    typing_problem: str = ""
    dollars: float | None = None
    _usage: ModelUsage = field(default_factory=ModelUsage)
    _costs: OrderedDict[str, float] = field(default_factory=OrderedDict)
    """The cost of the latest messages, by id."""
    _has_unknown_price: bool = False
    _status: dict[str, Any] = field(default_factory=dict)
    _failure: dict[str, Any] | None = None
    """The error of the last message."""

    @property
    def models(self) -> tuple[ModelTokens, ...]:
        return self._usage.models

    def set_contents(self, name: str, contents: Mapping[str, bytes]) -> None:
        """Do nothing, because the file of this observer is appended."""

    def add_lines(self, name: str, lines: Sequence[bytes]) -> None:
        for line in lines:
            self._add_event(parse_object(line))

    def observe(self, now: float) -> Observation | None:
        if self._questions.open:
            return self._questions.observation
        match self._status.get("type"):
            case "busy":
                return Observation(False, "plugin")
            case "retry":
                return self._retry(now)
            case "idle" if self._failure is not None:
                return self._failed(self._failure)
            case "idle":
                return Observation(True, "plugin", text_of(self._status.get("words")) or TURN_OVER)
        return None

    def _retry(self, now: float) -> Observation:
        message = text_of(self._status.get("message"))
        is_limit = any(word in message.lower() for word in _LIMIT_WORDS)
        next_at = (number_of(self._status.get("next")) or 0.0) / 1000
        until = next_at if next_at > now + LONG_PAUSE else None
        api_error = ApiError(kind=ApiErrorKind.LIMITED if is_limit else ApiErrorKind.OVERLOADED, until=until)
        attempt = int(number_of(self._status.get("attempt")) or 1)
        return Observation(False, "plugin", status_detail=f"{message}, retrying ({attempt})", api_error=api_error)

    def _failed(self, failure: dict[str, Any]) -> Observation:
        message, status = text_of(failure.get("message")), number_of(failure.get("status"))
        if failure.get("name") == "MessageAbortedError":
            return Observation(True, "plugin", "its turn was interrupted in its terminal")
        kind = _KIND_OF_STATUS.get(int(status)) if status is not None else ApiErrorKind.UNREACHABLE
        if kind is None and status is not None and status >= 500:
            kind = ApiErrorKind.OVERLOADED
        if kind is None:
            return Observation(True, "plugin", message or TURN_OVER)
        return Observation(False, "plugin", status_detail=message, api_error=ApiError(kind=kind, has_given_up=True))

    def _add_event(self, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "asked":
                self._questions.add(event)
            case "closed":
                self._questions.close(str(event.get("id")), text_of(event.get("why")))
            case "status":
                self._status = event
                if event.get("type") == "idle":
                    self._questions.close_all("interrupted")
            case "message":
                self._add_message(event)

    def _add_message(self, event: dict[str, Any]) -> None:
        identity, tokens = str(event.get("id")), event.get("tokens")
        counts = tokens if isinstance(tokens, dict) else {}
        cached = counts.get("cache")
        cache = cached if isinstance(cached, dict) else {}
        values = (
            counts.get("input"),
            counts.get("output"),
            counts.get("reasoning"),
            cache.get("read"),
            cache.get("write"),
        )
        whole, output, reasoning, read, written = (int(number_of(value) or 0) for value in values)
        used = ModelTokens(plain(str(event.get("model")), 60), whole, output + reasoning, read, written)
        self._usage.set(identity, used)
        cost = number_of(event.get("cost")) or 0.0
        # opencode reports 0 for models whose price it does not have.
        self._has_unknown_price |= cost == 0.0 and any(used[1:])
        if cost <= MOST_DOLLARS:
            before = self._costs.pop(identity, 0.0)
            self._costs[identity] = cost
            if len(self._costs) > _MESSAGES_KEPT:
                self._costs.popitem(last=False)
            total = (self.dollars or 0.0) + cost - before
            self.dollars = None if self._has_unknown_price else total
        if event.get("is_root") is True:
            failure = event.get("failure")
            self._failure = failure if isinstance(failure, dict) else None
