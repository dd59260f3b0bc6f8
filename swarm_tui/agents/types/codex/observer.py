"""What Codex is doing and asking: its rollouts, which are its session logs, and the events of our hook."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swarm_tui.agents.hook import EVENTS_PATH
from swarm_tui.agents.hook_questions import AsksByHook, text_of
from swarm_tui.agents.observer import TURN_OVER, Observation, ObservedFile
from swarm_tui.agents.summary import ModelUsage, number_of
from swarm_tui.limits.events import ApiError, ApiErrorKind
from swarm_tui.model.text import parse_object, plain
from swarm_tui.money.events import ModelTokens

EVENTS: Final = ObservedFile("events", EVENTS_PATH)
ROLLOUT: Final = ObservedFile("rollout", "plugin/codex/home/sessions/*/*/*/rollout-*.jsonl")

_NEEDED: Final = (b'"event_msg"', b'"turn_context"', b'"token_usage_record"')
_ERRORS: Final = (
    ("usage_limit", ApiErrorKind.LIMITED),
    ("rate_limit", ApiErrorKind.LIMITED),
    ("429", ApiErrorKind.LIMITED),
    ("401", ApiErrorKind.LOGIN_LOST),
    ("403", ApiErrorKind.LOGIN_LOST),
    ("unauthorized", ApiErrorKind.LOGIN_LOST),
    ("internal_server_error", ApiErrorKind.OVERLOADED),
    ("server_overloaded", ApiErrorKind.OVERLOADED),
    ("connection", ApiErrorKind.UNREACHABLE),
    ("stream", ApiErrorKind.UNREACHABLE),
    ("response_too_many_failed_attempts", ApiErrorKind.OVERLOADED),
)
"""Parts of `codex_error_info`, the most specific first."""
# An agent can write any number of turns into its rollouts.
_TURNS_KEPT: Final = 64


@dataclass(slots=True)
class CodexObserver(AsksByHook):
    """Observer of one Codex agent. A subagent's turns count for the usage, and not for the state."""

    files: Sequence[ObservedFile] = (EVENTS, ROLLOUT)
    dollars: float | None = None
    _usage: ModelUsage = field(default_factory=ModelUsage)
    _model_of_turn: dict[str, str] = field(default_factory=dict)
    _is_busy: bool | None = None
    """Whether a turn is running; None before the first one."""
    _is_compacting: bool = False
    _last_words: str = ""
    """The last message of the last turn."""
    _failure: str = ""
    """Why the last turn failed."""
    _failed_for: ApiErrorKind | None = None
    """The API error of the last turn; None if the request itself was wrong."""
    _limit_ends: float | None = None
    """When the used up limits of a subscription end."""

    @property
    def typing_problem(self) -> str:
        return ""

    @property
    def models(self) -> tuple[ModelTokens, ...]:
        return self._usage.models

    def set_contents(self, name: str, contents: Mapping[str, bytes]) -> None:
        """Do nothing, because all files of this observer are appended."""

    def add_lines(self, name: str, lines: Sequence[bytes]) -> None:
        for line in lines:
            if name == EVENTS.name:
                self._add_event(parse_object(line))
            elif any(word in line for word in _NEEDED):
                record = parse_object(line)
                payload = record.get("payload")
                if isinstance(payload, dict):
                    self._add_record(record.get("type"), payload)

    def observe(self, now: float) -> Observation | None:
        if self._questions.open:
            return self._questions.observation
        if self._is_busy is None:
            return None
        if self._is_busy:
            detail = "compacting its conversation" if self._is_compacting else ""
            return Observation(False, "rollout", status_detail=detail)
        if self._failed_for is not None:
            until = self._limit_ends if self._failed_for is ApiErrorKind.LIMITED else None
            api_error = ApiError(kind=self._failed_for, until=until, has_given_up=True)
            return Observation(False, "rollout", status_detail=self._failure, api_error=api_error)
        words = self._failure or self._last_words or TURN_OVER
        return Observation(True, "rollout", words)

    def _add_event(self, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "asked":
                self._questions.add(event)
            case "closed":
                self._questions.close(str(event.get("id")), text_of(event.get("why")))
            case "Interrupt":
                # Codex has killed the hook, which reported nothing.
                self._questions.close_all("interrupted")
        self._is_compacting = event.get("event") == "PreCompact"

    def _add_record(self, kind: object, payload: dict[str, Any]) -> None:
        turn = str(payload.get("turn_id"))
        if kind == "turn_context":
            while len(self._model_of_turn) >= _TURNS_KEPT:
                del self._model_of_turn[next(iter(self._model_of_turn))]
            self._model_of_turn[turn] = plain(str(payload.get("model")), 60)
        elif kind == "token_usage_record":
            self._usage.set(str(payload.get("response_id")), self._used(turn, payload.get("usage")))
        elif payload.get("type") == "token_count":
            self._limit_ends = _end_of_limits(payload.get("rate_limits"))
        elif payload.get("root_turn_id", turn) == turn:
            self._add_turn(payload)

    def _add_turn(self, payload: dict[str, Any]) -> None:
        match payload.get("type"):
            case "task_started":
                self._is_busy, self._last_words, self._failure, self._failed_for = True, "", "", None
            case "task_complete":
                error = payload.get("error")
                error = error if isinstance(error, dict) else {}
                self._is_busy, self._last_words = False, text_of(payload.get("last_agent_message"))
                self._failure = text_of(error.get("message"))
                self._failed_for = _kind_of(error.get("codex_error_info"))
                self._questions.close_all("its turn is over")
            case "turn_aborted":
                self._is_busy, self._last_words = False, "its turn was interrupted in its terminal"
                self._questions.close_all("interrupted")

    def _used(self, turn: str, usage: object) -> ModelTokens:
        counts = usage if isinstance(usage, dict) else {}
        whole, cached, written, output = (int(number_of(counts.get(key)) or 0) for key in _COUNTS)
        model = self._model_of_turn.get(turn, "unknown")
        return ModelTokens(model, max(0, whole - cached - written), output, cached, written)


_COUNTS: Final = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")


def _kind_of(info: object) -> ApiErrorKind | None:
    """Return the API error in `codex_error_info`; None if the request itself was wrong."""
    text = json.dumps(info) if info else ""
    return next((kind for part, kind in _ERRORS if part in text), None)


def _end_of_limits(limits: object) -> float | None:
    """Return when the last used up limit ends; None if there is none."""
    windows = [limits.get(name) for name in ("primary", "secondary")] if isinstance(limits, dict) else []
    used_up = [each for each in windows if isinstance(each, dict) and (number_of(each.get("used_percent")) or 0) >= 100]
    ends = [end for each in used_up if (end := number_of(each.get("resets_at"))) is not None]
    return max(ends, default=None)
