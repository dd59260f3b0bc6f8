"""Summary of Claude Code's session log, which has the usage of each request, or of mngr's transcript of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from swarm_tui.agents.prices import current_prices
from swarm_tui.agents.summary import TranscriptSummary, last_line_of, number_of
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.money.events import MOST_TOKENS, ModelTokens
from swarm_tui.money.prices import find_price

QUESTION_LIMIT: Final = 2_000
# The blocks of a message follow each other closely, even if a subagent's messages come in between.
_MESSAGES_KEPT: Final = 64
# An agent can write any number of names into its log.
_MODELS_KEPT: Final = 8
_OTHER_MODELS: Final = "other models"
_CACHE_KEYS: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")


def dollars_of(model: str, usage: Mapping[str, Any]) -> float | None:
    """Return the cost of a request; None if the price of the model is unknown."""
    price = find_price(current_prices(), model)
    if price is None:
        return None
    written, written_1h = _count(usage, "cache_creation_input_tokens"), _written_for_an_hour(usage)
    return (
        _count(usage, "input_tokens") * price.input
        + _count(usage, "output_tokens") * price.output
        + _count(usage, "cache_read_input_tokens") * price.cache_read
        + max(0, written - written_1h) * price.cache_write
        + written_1h * price.cache_write_1h
    ) / 1e6


def tokens_of(usage: Mapping[str, Any]) -> int:
    """Return the tokens of a request without cache reads, because they were counted when they were written."""
    return sum(_count(usage, key) for key in ("input_tokens", "output_tokens", "cache_creation_input_tokens"))


class ClaudeSummary(TranscriptSummary):
    """Reads session logs, including those of subagents, and mngr's common transcript."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = ""
        self._asked_in = ""
        """The id of the call that asks."""
        self._asked_at = ""
        """The time of that call, as written in the log."""
        self._has_unknown_price = False
        self._counted: OrderedDict[str, tuple[ModelTokens, float]] = OrderedDict()
        """Tokens and dollars of the latest messages, by id."""
        self._of_model: dict[str, ModelTokens] = {}

    @property
    def asked(self) -> str:
        return self._asked

    def _read_record(self, record: dict[str, Any]) -> None:
        message = record.get("message")
        if record.get("type") == "assistant" and isinstance(message, dict):
            blocks = [block for block in _list(message.get("content")) if isinstance(block, dict)]
            if record.get("isSidechain") is not True:
                self._read_blocks(blocks, str(record.get("timestamp") or ""))
                self.limited_until = _reset_of(record.get("apiErrorParams"))
            self._count_usage(message)
        elif record.get("type") == "user" and isinstance(message, dict):
            self._read_answers(message.get("content"), str(record.get("timestamp") or ""))
        elif record.get("source") == "agent":
            super()._read_record(record)
            calls = [call for call in _list(record.get("tool_calls")) if isinstance(call, dict)]
            self._asked = next(filter(None, (_question_in(call, "function_name", "arguments") for call in calls)), "")

    def _read_blocks(self, blocks: list[dict[str, Any]], at: str) -> None:
        for block in blocks:
            text = block.get("text")
            if block.get("type") == "text" and isinstance(text, str) and text.strip():
                self.last_line = last_line_of(text)
            elif block.get("type") == "tool_use":
                self.last_line = f"uses {plain(str(block.get('name')), 60)}"
                self.repeats.add(block.get("name"), block.get("input"))
                question = _question_in(block, "name", "input")
                if question:
                    # Another call of the same message may be answered first.
                    self._asked, self._asked_in, self._asked_at = question, str(block.get("id")), at

    def _read_answers(self, content: object, at: str) -> None:
        results = [block.get("tool_use_id") for block in _list(content) if isinstance(block, dict)]
        # A prompt may be logged after its effects.
        is_later_prompt = not isinstance(content, list) and (not at or at >= self._asked_at)
        if is_later_prompt or self._asked_in in results:
            self._asked = ""

    def _count_usage(self, message: Mapping[str, Any]) -> None:
        """Count a message's usage once: each of its blocks is a separate line with the usage so far."""
        usage, message_id = message.get("usage"), str(message.get("id"))
        if not isinstance(usage, dict):
            return
        if not 0 < tokens_of(usage) + _count(usage, "cache_read_input_tokens") <= MOST_TOKENS:
            return
        dollars = dollars_of(str(message.get("model")), usage)
        self._has_unknown_price |= dollars is None
        used = self._used(plain(str(message.get("model")), 60), usage)
        before, dollars_before = self._counted.get(message_id, (ModelTokens(used.model), 0.0))
        self._add_to_model(before, -1)
        self._add_to_model(used, 1)
        self._counted[message_id] = used, dollars or 0.0
        self._counted.move_to_end(message_id)
        if len(self._counted) > _MESSAGES_KEPT:
            self._counted.popitem(last=False)
        self.tokens = sum(each.input + each.output + each.cache_written for each in self.models)
        total = (self.dollars or 0.0) + (dollars or 0.0) - dollars_before
        # A total without the most expensive model would be misleading.
        self.dollars = None if self._has_unknown_price else total

    def _used(self, model: str, usage: Mapping[str, Any]) -> ModelTokens:
        is_one_more = model not in self._of_model and len(self._of_model) >= _MODELS_KEPT
        counts = [_count(usage, key) for key in ("input_tokens", "output_tokens", *_CACHE_KEYS)]
        return ModelTokens(_OTHER_MODELS if is_one_more else model, *counts)

    def _add_to_model(self, used: ModelTokens, sign: int) -> None:
        total = self._of_model.get(used.model, ModelTokens(used.model))
        counts = (count + sign * more for count, more in zip(total[1:], used[1:], strict=True))
        self._of_model[used.model] = ModelTokens(used.model, *counts)
        self.models = tuple(self._of_model.values())


def _reset_of(parameters: object) -> float | None:
    """Return when the subscription limit of an API error ends."""
    limit = parameters.get("rate_limit_info") if isinstance(parameters, dict) else None
    return number_of(limit.get("resetsAt")) if isinstance(limit, dict) else None


def _question_in(call: Mapping[str, Any], name_key: str, arguments_key: str) -> str:
    """Return the question that a call asks the user; "" for other calls."""
    arguments = call.get(arguments_key)
    if not isinstance(arguments, dict):
        return ""
    match call.get(name_key):
        case "AskUserQuestion":
            questions = [item.get("question") for item in _list(arguments.get("questions")) if isinstance(item, dict)]
            text = "\n".join(question for question in questions if isinstance(question, str))
        case "ExitPlanMode":
            text = plan if isinstance(plan := arguments.get("plan"), str) else ""
        case _:
            return ""
    return plain_lines(text[:QUESTION_LIMIT]).strip()


def _written_for_an_hour(usage: Mapping[str, Any]) -> int:
    split = usage.get("cache_creation")
    found = _count(split, "ephemeral_1h_input_tokens") if isinstance(split, dict) else 0
    return min(found, _count(usage, "cache_creation_input_tokens"))


def _count(usage: Mapping[str, Any], key: str) -> int:
    return int(number_of(usage.get(key)) or 0)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
