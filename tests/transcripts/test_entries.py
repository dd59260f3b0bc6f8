"""Records of all formats become entries, including invalid and hostile records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.formatting import file_size
from swarm_tui.transcripts.entries import (
    Role,
    looks_like_error,
    may_hold_error,
    may_hold_role,
    parse_record,
    parse_time,
)
from tests.transcripts.records import call, line, result, step

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_agent_step_becomes_thoughts_message_and_calls() -> None:
    raw = step(
        "I will run it.",
        reasoning_content="hmm",
        tool_calls=[{"tool_call_id": "t1", "function_name": "Bash", "arguments": {"command": "pytest -q", "n": 3}}],
    )
    thinks, says, calls = parse_record(raw)
    assert (thinks.role, thinks.text) == (Role.THINKING, "hmm")
    assert (says.role, says.text, says.at) == (Role.AGENT, "I will run it.", 1794982182.0)
    assert (calls.role, calls.tool, calls.text, calls.call) == (Role.CALL, "Bash", 'pytest -q  {"n": 3}', "t1")


def test_user_system_and_header_records() -> None:
    assert parse_record(step("Run it", "user"))[0].role is Role.USER
    assert parse_record(step("compacted", "system"))[0].role is Role.SYSTEM
    header = parse_record(line({"type": "header", "schema_version": "ATIF-v1.7"}))
    assert header[0].text == "transcript begins (ATIF-v1.7)"


def test_result_with_error_flag_is_an_error() -> None:
    assert parse_record(result("fine", is_error=True))[0].is_error
    assert not parse_record(result("E   AssertionError: FAILED", is_error=False))[0].is_error
    for is_error in (True, False):
        block = {"type": "tool_result", "tool_use_id": "1", "content": "FAILED", "is_error": is_error}
        assert parse_record(line({"type": "user", "message": {"content": [block]}}))[0].is_error is is_error


def test_result_without_flag_is_an_error_by_text() -> None:
    assert parse_record(result("E   AssertionError: assert 1 == 2"))[0].is_error
    assert parse_record(result("E   AssertionError: assert 1 == 2", tool_name="Bash"))[0].is_error
    assert not parse_record(result("1 passed in 0.01s"))[0].is_error


def test_session_log_of_agent_is_read() -> None:
    content = [
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}},
    ]
    words, made = parse_record(line({"type": "assistant", "message": {"content": content}}))
    assert (words.text, made.tool, made.text) == ("hi", "Bash", "ls")
    blocks = [
        {"type": "tool_result", "content": "Error: x", "is_error": True},
        {"type": "tool_result", "content": "a test named FAILED"},
    ]
    failed, unmarked = parse_record(line({"type": "user", "message": {"content": blocks}}))
    assert (failed.role, failed.is_error) == (Role.RESULT, True)
    assert (unmarked.role, unmarked.is_error) == (Role.RESULT, False)


def test_plain_text_keeps_text_and_time() -> None:
    entry = parse_record(b"2026-11-18T06:09:42.500Z ERROR agent-007 lost its host")[0]
    assert (entry.role, entry.text, entry.at, entry.is_error) == (
        Role.TEXT,
        "ERROR agent-007 lost its host",
        1794982182.5,
        True,
    )


@pytest.mark.parametrize("raw", [b"", b"{", b'{"type": "step"', b"[1]", b'"x"', b"\xff\xfe\x00", b"{}", b"null", b"{]"])
def test_other_lines_are_shown_unchanged(raw: bytes) -> None:
    assert len(parse_record(raw)) == 1


def test_invalid_record_is_marked_and_shown() -> None:
    entry = parse_record(b'{"type": "step", "message": "half')[0]
    assert (entry.note, entry.text) == ("a broken record", '{"type": "step", "message": "half')


def test_escape_sequences_and_markup_become_plain_text() -> None:
    entry = parse_record(step("\x1b]52;c;aGk=\x07[red]look[/red]\x1b[2J\u202e"))[0]
    assert "\x1b" not in entry.text
    assert "[red]look[/red]" in entry.text
    assert "\u202e" not in entry.text
    assert parse_record(call("ls", name="Ba\x1b[31msh"))[0].tool == "Bash"


def test_huge_record_keeps_its_role() -> None:
    raw = result("line\n" * 4_000_000)
    entry = parse_record(raw[:65536], len(raw))[0]
    assert entry.role is Role.RESULT
    assert entry.text.startswith("line\nline\n")
    assert len(entry.text) < 65536
    assert entry.note == f"only the beginning of a record of {file_size(len(raw))}"


@given(json_values)
def test_any_json_becomes_harmless_text(value: Any) -> None:
    for entry in parse_record(json.dumps({"type": "step", "message": value, "tool_calls": value, "x": value}).encode()):
        assert all(c == "\n" or ord(c) >= 32 for c in entry.text + entry.tool)


@pytest.mark.parametrize("digits", [30, 400, 5_000])
def test_infinite_time_is_ignored(digits: int) -> None:
    (entry,) = parse_record(b'{"type":"step","source":"user","message":"x","timestamp":' + b"9" * digits + b"}")
    assert entry.at is None


def test_deeply_nested_json_is_shown() -> None:
    for depth in range(800, 1_000):
        given = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
        raw = b'{"type":"step","source":"agent","tool_calls":[{"name":"x","arguments":' + given + b"}]}"
        assert "[[" in parse_record(raw)[0].text


@given(st.binary(max_size=300))
def test_any_bytes_are_accepted(raw: bytes) -> None:
    assert parse_record(raw)
    assert parse_record(raw, len(raw) + 1)


json_words = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)


@given(json_words, json_words, st.booleans(), st.data())
def test_truncated_record_shows_available_text(words: str, query: str, is_ascii: bool, data: st.DataObject) -> None:
    made = {"tool_call_id": "t", "function_name": "Bash", "arguments": {"command": query}}
    record = {"type": "step", "source": "agent", "message": words, "tool_calls": [made]}
    raw = json.dumps(record, ensure_ascii=is_ascii).encode()
    entries = parse_record(raw[: data.draw(st.integers(raw.index(b"message"), len(raw) - 1))], len(raw))
    assert {entry.note for entry in entries} == {f"only the beginning of a record of {file_size(len(raw))}"}
    texts = {entry.role: "" if entry.text == "(empty)" else entry.text for entry in entries}
    assert texts.keys() <= {Role.AGENT, Role.CALL}
    assert words.startswith(texts.get(Role.AGENT, ""))
    assert query.startswith(texts.get(Role.CALL, ""))


@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (b'"hal', "hal"),
        (b'"half\\', "half"),
        (b'"half\\u00e', "half"),
        ('"half é'.encode()[:-1], "half "),
        (b'"half \xff way', "half  way"),
        (b'["a", {"text": "b', "a\nb"),
        (b"", "(empty)"),
    ],
)
def test_record_cut_within_text_shows_it(cut: bytes, words: str) -> None:
    raw = b'{"type": "step", "source": "agent", "message": ' + cut
    assert parse_record(raw, len(raw) + 9)[0].text == words


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):",
        "E   assert 1 == 2",
        "1 failed, 3 passed",
        "KeyError: 'x'",
        "fatal: not a git",
    ],
)
def test_error_texts_are_recognized(text: str) -> None:
    assert looks_like_error(f"before\n{text}\nafter")
    assert may_hold_error(result(text))


@pytest.mark.parametrize("text", ["0 failed, 3 passed", "no errors", "errors.py", "raise_error()", "Everything fine"])
def test_texts_about_errors_are_not_errors(text: str) -> None:
    assert not looks_like_error(text)


@given(
    st.sampled_from([step("x"), step("x", "user"), call("ls"), result("Error: x"), step("x", reasoning_content="y")])
)
def test_quick_role_check_misses_no_role(raw: bytes) -> None:
    for entry in parse_record(raw):
        assert may_hold_role(raw, frozenset({entry.role}))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2026-11-18T06:09:42Z", 1794982182.0),
        ("2026-11-18T06:09:42.123456789Z", 1794982182.123456),
        (1794982182, 1794982182.0),
        (1794982182000, 1794982182.0),
        ("yesterday", None),
        (True, None),
        (-5, None),
        (None, None),
        ("x" * 100, None),
    ],
)
def test_times(value: Any, seconds: float | None) -> None:
    assert parse_time(value) == seconds
