"""How the hook finds results of calls in Claude's log, which may contain any line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.agents.hook import CallsInLog

CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "curl x"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
REQUEST = {"tool_name": "Bash", "tool_input": {"command": "curl x"}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["tool_use", "tool_result", "t1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "id", "name", "input", "tool_use_id", "content"]), inner, max_size=4)
    ),
    max_leaves=8,
)


def line_of(content: Any) -> bytes:
    return json.dumps({"message": {"content": content}, "note": "tool_"}).encode() + b"\n"


def test_call_result_is_found_in_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    calls = CallsInLog(REQUEST | {"transcript_path": str(log)})
    assert not calls.have_results()
    log.write_bytes(line_of([CALL]) + line_of([RESULT])[:-20])
    assert not calls.have_results()
    log.write_bytes(line_of([CALL]) + line_of([RESULT]))
    assert calls.have_results()


def test_subagent_call_is_found_in_its_log(tmp_path: Path) -> None:
    own = tmp_path / "log" / "subagents" / "agent-7.jsonl"
    own.parent.mkdir(parents=True)
    own.write_bytes(line_of([CALL, RESULT]))
    (tmp_path / "log.jsonl").write_bytes(b"")
    request = REQUEST | {"transcript_path": str(tmp_path / "log.jsonl")}
    assert not CallsInLog(request).have_results()
    assert CallsInLog(request | {"agent_id": "7"}).have_results()


@given(st.lists(JSON, max_size=4), st.binary(max_size=20))
def test_any_log_line_is_survived(tmp_path_factory: Any, contents: list[Any], torn: bytes) -> None:
    log = tmp_path_factory.mktemp("log") / "log.jsonl"
    lines = [b"[" * 100_000 + b'"tool_"\n', torn + b'"tool_\n', *map(line_of, contents), line_of([CALL, RESULT])]
    log.write_bytes(b"".join(lines))
    assert CallsInLog(REQUEST | {"transcript_path": str(log)}).have_results() in (True, False)
