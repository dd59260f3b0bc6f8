"""What a transcript comes to: the last line, the question, dollars and tokens; of hostile ones too."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.agents.transcript_summary import TranscriptSummary


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@given(st.lists(st.binary(max_size=50)))
def test_any_line_is_read_or_passed_over(lines: list[bytes]) -> None:
    summary = TranscriptSummary()
    summary.read(lines)
    assert (summary.last_line, summary.dollars, summary.tokens) == ("", None, None)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


@given(message=JSON, calls=JSON, metrics=JSON)
def test_any_step_is_read_or_passed_over(message: Any, calls: Any, metrics: Any) -> None:
    summary = TranscriptSummary()
    summary.read([line(type="step", source="agent", message=message, tool_calls=calls, metrics=metrics)])
    assert "\n" not in summary.last_line


def test_the_last_line_and_what_was_spent() -> None:
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
