"""Summaries of Claude Code's session log: last line, question, tokens, and exact cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.agents.types import agent_type_of
from swarm_tui.agents.types.claude.session_log import ClaudeSummary, dollars_of, tokens_of
from swarm_tui.money.events import ModelTokens
from swarm_tui.transcripts.entries import Role, parse_record
from tests.claude.scripted_model import Call, Request, ScriptedModel, Turn, bash
from tests.claude.test_scripted_model import ask_claude

# Lines of Claude Code 2.1.293, without unused keys.
USER = (
    b'{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"say hello"},'
    b'"timestamp":"2026-11-18T20:10:49.353Z","sessionId":"3b3934db"}'
)
ANSWER = (
    b'{"isSidechain":false,"message":{"id":"msg_000001","type":"message","role":"assistant","model":"claude-opus-5-5",'
    b'"content":[{"type":"text","text":"There is nothing to do."}],"stop_reason":"end_turn",'
    b'"usage":{"input_tokens":16003,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5,'
    b'"cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0}}},"type":"assistant",'
    b'"timestamp":"2026-11-18T20:10:49.500Z","sessionId":"3b3934db"}'
)
COST_STATE = b'{"type":"cost-state","sessionId":"3b3934db","totalCostUSD":0.064112,"hasUnknownModelCost":false}'
ATTACHMENT = b'{"attachment":{"type":"environment","snapshot":{}},"type":"attachment","sessionId":"3b3934db"}'
RETRY = (
    b'{"type":"system","subtype":"api_error","level":"error","error":{"message":"529 {}","status":529,'
    b'"formatted":"529 Overloaded"},"retryInMs":510,"retryAttempt":1,"maxRetries":10,'
    b'"timestamp":"2026-11-18T20:32:19.442Z","sessionId":"5f5af7e6"}'
)
REFUSED = (
    b'{"type":"assistant","isApiErrorMessage":true,"error":"rate_limit","apiErrorStatus":429,"message":{"id":"e1",'
    b'"model":"<synthetic>","content":[{"type":"text","text":"API Error: Request rejected (429)"}],'
    b'"usage":{"input_tokens":0,"output_tokens":0}},"sessionId":"5f5af7e6"}'
)


def message(
    content: list[dict[str, Any]], message_id: str = "m1", model: str = "claude-opus-5-5", **more: Any
) -> bytes:
    usage = {"input_tokens": 1_000_000, "output_tokens": 0}
    record = {"id": message_id, "model": model, "content": content, "usage": usage}
    return json.dumps({"type": "assistant", "message": record, "sessionId": "s"} | more).encode()


def result_of(call: str) -> bytes:
    content = [{"type": "tool_result", "tool_use_id": call, "content": "done"}]
    return json.dumps({"type": "user", "message": {"content": content}, "sessionId": "s"}).encode()


def summary(*lines: bytes) -> ClaudeSummary:
    made = ClaudeSummary()
    made.read(lines)
    return made


def test_cost_of_session_equals_claude_total() -> None:
    read = summary(USER, ATTACHMENT, ANSWER, COST_STATE)
    assert read.last_line == "There is nothing to do."
    assert read.tokens == 16_008
    assert read.dollars == pytest.approx(json.loads(COST_STATE)["totalCostUSD"])


def test_cache_writes_are_priced_by_lifetime() -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "cache_read_input_tokens": 250_000,
        "cache_creation_input_tokens": 30_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 10_000, "ephemeral_1h_input_tokens": 20_000},
    }
    assert dollars_of("claude-opus-5-5", usage) == pytest.approx(0.0004 + 0.0002 + 0.05 + 0.05 + 0.16)
    assert tokens_of(usage) == 30_110
    del usage["cache_creation"]
    assert dollars_of("claude-sonnet-4-5-20250929", usage) == pytest.approx(0.0003 + 0.00015 + 0.075 + 0.1125)
    assert dollars_of("claude-next", usage) is None


def test_message_with_several_blocks_is_counted_once() -> None:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": "I look."}, {"type": "tool_use", "name": "Bash"}]
    read = summary(*(message([block]) for block in blocks))
    assert (read.last_line, read.tokens) == ("uses Bash", 1_000_000)
    assert read.dollars == pytest.approx(4.0)
    read.read([message([], "m2"), message([], "m1")])
    assert read.tokens == 2_000_000
    assert read.dollars == pytest.approx(8.0)


def test_tokens_and_cost_are_counted_by_model() -> None:
    usage = {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7}
    small = {"id": "h1", "model": "claude-haiku-4-5", "content": [], "usage": usage}
    lines = [json.dumps({"type": "assistant", "isSidechain": True, "message": small}).encode()] * 2
    read = summary(message([]), *lines, message([]))
    assert read.models == (
        ModelTokens("claude-opus-5-5", 1_000_000),
        ModelTokens("claude-haiku-4-5", 5, 1, 90, 7),
    )
    assert read.tokens == 1_000_013
    read.read(message([], f"x{number}", model=f"invented-{number}") for number in range(50))
    assert len(read.models) == 9
    assert read.tokens == 51_000_013


def test_subagent_adds_cost_but_no_last_line() -> None:
    text = [{"type": "text", "text": "I am below."}]
    read = summary(ANSWER, message(text, "m9", isSidechain=True))
    assert read.last_line == "There is nothing to do."
    assert read.tokens == 1_016_008


def test_unknown_price_gives_tokens_without_cost() -> None:
    read = summary(ANSWER, message([], "m2", model="claude-next"), message([], "m3"))
    assert (read.tokens, read.dollars) == (2_016_008, None)


def test_refused_request_is_shown_without_cost() -> None:
    read = summary(RETRY, REFUSED)
    assert (read.last_line, read.tokens, read.dollars) == ("API Error: Request rejected (429)", None, None)


def test_question_is_open_until_answered() -> None:
    asked = {"questions": [{"question": "Which of them?"}, {"question": "And when?"}]}
    read = summary(ANSWER, message([{"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": asked}]))
    read.read([message([{"type": "tool_use", "id": "t2", "name": "Read", "input": {}}]), result_of("t2"), ATTACHMENT])
    assert read.question == "Which of them?\nAnd when?"
    read.read([result_of("t1")])
    assert read.question == read.last_line == "uses Read"
    read.read([message([{"type": "tool_use", "name": "ExitPlanMode", "input": {"plan": "1. Wait."}}])])
    assert read.question == "1. Wait."


def test_late_logged_prompt_is_not_an_answer() -> None:
    asked = {"questions": [{"question": "Which colour?"}]}
    call = message(
        [{"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": asked}], timestamp="2026-11-19T08:57:20Z"
    )
    prompts = [
        json.dumps({"type": "user", "message": {"role": "user", "content": "go on"}, "timestamp": at}).encode()
        for at in ("2026-11-19T08:57:18Z", "2026-11-19T08:57:40Z")
    ]
    assert summary(call, prompts[0]).asked == "Which colour?"
    assert summary(call, *prompts).asked == ""


def test_mngr_transcript_is_read() -> None:
    asked = {"function_name": "AskUserQuestion", "arguments": {"questions": [{"question": "Which?"}]}}
    step = {"type": "step", "source": "agent", "message": "", "tool_calls": [asked], "metrics": {"prompt_tokens": 7}}
    read = summary(json.dumps(step).encode())
    assert (read.question, read.last_line, read.tokens, read.dollars) == ("Which?", "uses AskUserQuestion", 7, None)
    assert isinstance(agent_type_of("claude").new_summary(), ClaudeSummary)


def test_log_is_shown_as_messages() -> None:
    lines = (USER, ATTACHMENT, ANSWER, RETRY, REFUSED, COST_STATE)
    entries = [entry for line in lines for entry in parse_record(line)]
    assert [(entry.role, entry.text, entry.is_error) for entry in entries] == [
        (Role.USER, "say hello", False),
        (Role.AGENT, "There is nothing to do.", False),
        (Role.SYSTEM, "529 Overloaded", True),
        (Role.AGENT, "API Error: Request rejected (429)", True),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON, JSON)
def test_any_message_is_read_or_ignored(content: Any, usage: Any, arguments: Any) -> None:
    blocks = [{"type": "tool_use", "name": "AskUserQuestion", "input": {"questions": [arguments]}}, {"text": usage}]
    for value in (content, blocks):
        record = {"type": "assistant", "message": {"id": usage, "content": value, "usage": {"output_tokens": usage}}}
        assert "\n" not in summary(json.dumps(record).encode()).last_line


@pytest.mark.slow
def test_real_session_cost_equals_claude_total(claude: Path, tmp_path: Path) -> None:
    usage = {"input_tokens": 1_200, "cache_creation_input_tokens": 30_000, "cache_read_input_tokens": 250_000}
    asked = {"description": "count", "prompt": "count the lines", "subagent_type": "general-purpose"}

    def play(request: Request) -> list[Turn]:
        if request.user_texts[0] == asked["prompt"]:
            return [Turn("Three.", usage=usage)]
        helped = Turn("A subagent counts.", [Call("Agent", asked)], usage=usage)
        # The question appears again if the subagent finishes after the agent's last message.
        told = [Turn("There are three.", usage=usage)] * 2
        return [helped, Turn("Then I look.", [bash("echo three")], usage=usage), *told]

    with ScriptedModel(play) as model:
        ask_claude(claude, model, tmp_path)
    logs = [path.read_bytes().splitlines() for path in sorted((tmp_path / ".claude" / "projects").rglob("*.jsonl"))]
    assert len(logs) == 2
    read = summary(*(line for log in logs for line in log))
    (paid,) = (record["totalCostUSD"] for log in logs for record in map(json.loads, log) if "totalCostUSD" in record)
    assert read.last_line == "There are three."
    assert read.dollars == pytest.approx(paid)
