"""Finding an agent's transcript, or what replaces it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from swarm_tui.journal import record as model
from swarm_tui.journal.work_events import Try
from swarm_tui.transcripts.entries import Role, parse_record
from swarm_tui.transcripts.locate import (
    TranscriptSources,
    choose_transcript,
    find_transcript,
    subagent_logs,
    substitute_transcript,
)


def write(path: Path, at: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}\n")
    os.utime(path, (at, at))
    return path


def test_growing_transcript_precedes_pulled_one(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "agents"
    assert find_transcript(str(state), folder) is None
    pulled = write(folder / "transcript.jsonl")
    assert find_transcript(str(state), folder) == pulled
    assert find_transcript("", folder) == pulled
    native = write(state / "logs" / "claude_transcript" / "events.jsonl")
    assert find_transcript(str(state), folder) == native
    common = write(state / "events" / "claude" / "common_transcript" / "events.jsonl", 1)
    assert find_transcript(str(state), folder) == common


CLAUDE, OFFLINE = (f"events/{emitter}/common_transcript/events.jsonl" for emitter in ("claude", "offline"))
LOG = "events/logs/common_transcript/events.jsonl"


@pytest.mark.parametrize(
    ("existing", "emitters", "chosen"),
    [
        ((LOG, CLAUDE), (), CLAUDE),
        ((LOG,), (), None),
        ((CLAUDE, OFFLINE), ("offline",), OFFLINE),
        ((OFFLINE, CLAUDE), ("codex", "claude"), CLAUDE),
        ((OFFLINE, CLAUDE), (), CLAUDE),
        ((LOG, "logs/claude_transcript/events.jsonl"), (), "logs/claude_transcript/events.jsonl"),
        (("logs/claude_transcript/events.jsonl", OFFLINE), ("claude",), OFFLINE),
        (("events/common_transcript/events.jsonl", LOG), (), "events/common_transcript/events.jsonl"),
        (("events/claude/usage/events.jsonl", "logs/x/events.jsonl", "events.jsonl", ""), ("claude",), None),
    ],
)
def test_one_of_all_files_is_the_transcript(existing: tuple[str, ...], emitters: Sequence[str], chosen: str) -> None:
    assert choose_transcript(existing, TranscriptSources(tuple(emitters))) == chosen
    assert choose_transcript(existing[::-1], TranscriptSources(tuple(emitters))) == chosen


OWN = "plugin/claude/anthropic/projects/-copy/12345678-1234-1234-1234-123456789012.jsonl"
OTHER = "plugin/claude/anthropic/projects/-copy/00000000-0000-0000-0000-000000000000.jsonl"
SUBAGENT = OWN.removesuffix(".jsonl") + "/subagents/agent-7.jsonl"
SOURCES = TranscriptSources(
    ("claude",),
    ("plugin/claude/anthropic/projects/*/*.jsonl", "plugin/claude/anthropic/projects/*/*/subagents/*.jsonl"),
)


def test_session_log_precedes_mngr_transcript() -> None:
    agent = "agent-12345678123412341234123456789012"
    assert choose_transcript((CLAUDE, OTHER, OWN, SUBAGENT), SOURCES, agent) == OWN
    assert choose_transcript((CLAUDE, OTHER, SUBAGENT), SOURCES, agent) == OTHER
    assert choose_transcript((CLAUDE, SUBAGENT), SOURCES, agent) == CLAUDE


def test_subagent_logs_belong_to_same_session() -> None:
    strange = OTHER.removesuffix(".jsonl") + "/subagents/agent-8.jsonl"
    assert subagent_logs((OWN, OTHER, strange, SUBAGENT), SOURCES, OWN) == [SUBAGENT]
    assert subagent_logs((CLAUDE,), SOURCES, CLAUDE) == []


def test_engine_transcript_is_used_with_subagents(tmp_path: Path) -> None:
    state, folder, agent = tmp_path / "state", tmp_path / "agents", "agent-12345678123412341234123456789012"
    kept, own = write(folder / "transcript.jsonl"), write(state / OWN)
    assert find_transcript(str(state), folder, SOURCES, agent) == own
    write(state / SUBAGENT)
    assert find_transcript(str(state), folder, SOURCES, agent) == kept
    kept.unlink()
    assert find_transcript(str(state), folder, SOURCES, agent) == own


def test_links_and_relative_folders_are_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret")
    link = tmp_path / "state" / "events" / "x" / "common_transcript" / "events.jsonl"
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    assert find_transcript(str(tmp_path / "state"), None) is None
    assert find_transcript("state", None) is None


def test_tries_and_screen_replace_missing_transcript() -> None:
    tries = (Try(1, False, 1.5, 100.0, "E   KeyError: 'x'"), Try(2, True, 0.5, 110.0), Try(3, None, 0.0, 120.0))
    record = model.TestRecord("a.py::t", launched_at=90.0, tries=tries, question="Which?")
    content = substitute_transcript(record, "\x1b[31m$ pytest\x1b[0m\nits screen\n")
    entries = [entry for line in content.splitlines() for entry in parse_record(line)]
    assert [entry.role for entry in entries[1:]] == [
        Role.SYSTEM,
        Role.CALL,
        Role.RESULT,
        Role.CALL,
        Role.RESULT,
        Role.CALL,
        Role.AGENT,
        Role.TEXT,
        Role.TEXT,
    ]
    assert [entry.is_error for entry in entries if entry.role is Role.RESULT] == [True, False]
    assert [entry.text for entry in entries[-2:]] == ["$ pytest", "its screen"]
