"""Transcript summaries: the last line, the question, cost and tokens, even of hostile transcripts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.agents.summary import TranscriptSummary
from swarm_tui.agents.types.claude.session_log import ClaudeSummary
from swarm_tui.money.events import ModelTokens, most_dollars


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@given(st.lists(st.binary(max_size=50)))
def test_any_line_is_read_or_ignored(lines: list[bytes]) -> None:
    summary = TranscriptSummary()
    summary.read(lines)
    assert (summary.last_line, summary.dollars, summary.tokens) == ("", None, None)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


@given(message=JSON, calls=JSON, metrics=JSON)
def test_any_step_is_read_or_ignored(message: Any, calls: Any, metrics: Any) -> None:
    summary = TranscriptSummary()
    summary.read([line(type="step", source="agent", message=message, tool_calls=calls, metrics=metrics)])
    assert "\n" not in summary.last_line


def test_summary_has_last_line_and_cost() -> None:
    summary = TranscriptSummary()
    metrics = {"cost_usd": 0.5, "prompt_tokens": 10, "completion_tokens": 2}
    summary.read(
        [
            line(type="step", source="agent", message="First.\nThen what?", metrics=metrics),
            line(type="step", source="user", message="not the agent"),
            line(type="step", source="agent", message="", metrics=metrics),
        ]
    )
    assert (summary.last_line, summary.dollars, summary.tokens) == ("Then what?", 1.0, 24)
    summary.read([line(type="step", source="agent", message="", tool_calls=[{"function_name": "Bash"}])])
    assert summary.last_line == "uses Bash"


@pytest.mark.parametrize("summary", [TranscriptSummary(), ClaudeSummary()])
def test_impossible_costs_and_tokens_are_ignored(summary: TranscriptSummary) -> None:
    used = {"prompt_tokens": 900, "completion_tokens": 100, "cost_usd": 0.5}
    for metrics in (used, {"cost_usd": 99_999_999.99}, {"prompt_tokens": 10**11}):
        summary.read([json.dumps({"source": "agent", "message": "I am done.", "metrics": metrics}).encode()])
    assert (summary.dollars, summary.tokens) == (0.5, 1_000)


def test_impossible_usage_of_claude_is_ignored() -> None:
    summary = ClaudeSummary()
    hour = {"cache_creation": {"ephemeral_1h_input_tokens": 10**11}}
    for number, usage in enumerate(({"input_tokens": 10**6}, {"output_tokens": 10**11}, {"input_tokens": 1, **hour})):
        message = {"id": str(number), "model": "claude-haiku-4-5", "usage": usage}
        summary.read([json.dumps({"type": "assistant", "message": message}).encode()])
    assert summary.dollars == pytest.approx(1.0, abs=0.01)


def test_own_sum_beyond_its_tokens_is_recognised() -> None:
    used = ModelTokens("claude-opus-5-5", input=50_000, output=20_000, cache_read=2_000_000, cache_written=200_000)
    assert 2.0 < most_dollars([used]) < 100.0
    assert most_dollars([]) == 1.0
