"""What is seen of an agent becomes its state: confirmed, in order, and never guessed."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from swarm_tui.agents.contract import ARCHIVE_PATH, TRIES_PATH
from swarm_tui.agents.judging import AgentEnd
from swarm_tui.agents.types import agent_type_of
from swarm_tui.agents.types.claude.observer import EVENTS, SESSION, ClaudeObserver
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, AgentState
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.work_events import AgentOutput, TryFinished, TryStarted
from swarm_tui.model.results import State
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.money.events import UsageReported
from swarm_tui.sweep.agent_files import LINE_LIMIT, FileTail
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.watch import (
    DIALOG_LINES,
    LAST_WORDS_LIMIT,
    UNSEEN_LIMIT,
    AgentFollower,
    KeptTranscript,
    find_dialog,
    read_new_events,
)

SPEC = SweepSpec(sweep="1", repository="/r", base="a", created_at=1.0, mngr=MngrSettings(path="mngr"))


@pytest.fixture
def watch(tmp_path: Path) -> AgentFollower:
    (tmp_path / "state").mkdir()
    return AgentFollower(TestJob("t", SPEC), address(tmp_path), started=0.0, timeout=100.0, wait_timeout=50.0)


def address(root: Path) -> AgentAddress:
    return AgentAddress("agent", "agent-1", "mngr-agent", str(root / "state"), str(root / "work"))


def local_hosts(root: Path) -> Hosts:
    return Hosts([LocalHost(MngrSettings(path="mngr", host_dir=str(root)))])


def sights(watch: AgentFollower, *seen: AgentState | None, start: float = 0.0) -> list[State | AgentEnd | None]:
    """Show these to the watch, a second apart; return the new state or the end after each."""
    given: list[State | AgentEnd | None] = []
    for second, state in enumerate(seen):
        event, end = watch.observe(state, start + second, start + second)
        given.append(end or (event.state if event else None))
    return given


def test_waiting_is_believed_when_it_is_seen_twice(watch: AgentFollower) -> None:
    assert sights(watch, "RUNNING", "WAITING", "RUNNING", "WAITING", "WAITING", "WAITING", "RUNNING") == [
        None,
        None,
        None,
        None,
        State.WAITING,
        None,
        State.RUNNING,
    ]


def test_an_agent_that_is_starting_does_not_wait_yet(watch: AgentFollower) -> None:
    assert sights(watch, "WAITING", "WAITING", "WAITING") == [None, None, None]
    assert sights(watch, "WAITING", start=watch.task.kind.ready_within) == [State.WAITING]


@pytest.mark.parametrize(
    ("seen", "end"), [("DONE", AgentEnd.CRASH), ("STOPPED", AgentEnd.CLOSED), (None, AgentEnd.GONE)]
)
def test_an_end_is_believed_when_it_is_seen_twice(watch: AgentFollower, seen: AgentState | None, end: AgentEnd) -> None:
    assert sights(watch, seen, "RUNNING", seen, seen) == [None, None, None, end]


def test_another_program_in_the_pane_is_no_end(watch: AgentFollower) -> None:
    assert sights(watch, "REPLACED", "REPLACED", "REPLACED") == [None, None, None]


def test_time_that_an_agent_waits_is_not_its_own(watch: AgentFollower) -> None:
    sights(watch, "RUNNING", "WAITING", "WAITING")
    assert watch.overdue_end(51.0) is None
    assert watch.overdue_end(52.0) is AgentEnd.NO_ANSWER
    sights(watch, "RUNNING", start=42.0)
    assert watch.overdue_end(139.0) is None
    assert watch.overdue_end(140.0) is AgentEnd.TIMEOUT


def test_a_dialog_is_the_first_line_at_the_end_of_a_screen_that_only_a_dialog_shows() -> None:
    signs = [r"Do you want", r"^Yes$"]
    assert find_dialog("$ ls\n  Do you want it?  \n  Yes\n\n", signs) == "Do you want it?"
    assert find_dialog("Yes, I do\n", signs) == ""
    assert find_dialog("Do you want " + "x" * 300, signs) == plain("Do you want " + "x" * 300, 200)
    assert find_dialog("Do you want it?\n" + "work\n" * DIALOG_LINES, signs) == ""


def test_a_dialog_below_a_line_is_told_from_there_on() -> None:
    screen = f"""
        $ claude
        {"─" * 40}
          Allow external CLAUDE.md file imports?

          External imports:
            /home/ann/rates.md
        ❯ No, disable external imports
          Yes, allow external imports

          Enter to confirm · Esc to cancel
        """
    told = "Allow external CLAUDE.md file imports? · External imports: · /home/ann/rates.md · ❯ No, disable"
    assert find_dialog(screen, agent_type_of("claude").dialog_signs).startswith(told)


def test_a_pull_waits_for_the_last_words_of_an_agent_whose_end_is_not_seen(watch: AgentFollower) -> None:
    assert not watch.is_ready_to_pull(1.0, 1.0)
    watch.handed_in_at = 5.0
    assert not watch.is_ready_to_pull(5.0, 5.0)
    assert not watch.is_ready_to_pull(5.0 + UNSEEN_LIMIT - 0.1, 5.0)
    assert watch.is_ready_to_pull(5.0 + UNSEEN_LIMIT, 5.0)


def test_pull_waits_while_a_subagent_asks(tmp_path: Path) -> None:
    claude = TestJob("t", dataclasses.replace(SPEC, agent_type="claude"))
    watch = AgentFollower(claude, address(tmp_path), started=0.0, timeout=100.0, wait_timeout=50.0)
    watch.handed_in_at = 5.0
    assert isinstance(watch.observer, ClaudeObserver)
    asked = {"event": "asked", "id": "1", "kind": "PermissionRequest", "tool": "Bash", "input": {"command": "curl x"}}
    watch.observer.set_contents(SESSION.name, {"sessions/7.json": b'{"pid": 7, "status": "idle"}'})
    watch.observer.add_lines(EVENTS.name, [json.dumps(asked | {"agent_id": "a1"}).encode()])
    assert not watch.is_ready_to_pull(6.0, 6.0)
    assert watch.is_mid_turn(6.0)
    assert watch.is_ready_to_pull(5.0 + LAST_WORDS_LIMIT, 5.0 + LAST_WORDS_LIMIT)
    watch.observer.add_lines(EVENTS.name, [b'{"event": "closed", "id": "1", "why": "answered"}'])
    watch.observer.observe(7.0)
    assert watch.is_ready_to_pull(17.0, 17.0)
    assert not watch.is_mid_turn(17.0)


async def test_tries_words_and_archive_are_read_from_files(watch: AgentFollower, tmp_path: Path) -> None:
    hosts, state = local_hosts(tmp_path), tmp_path / "state"
    assert await read_new_events(hosts, [watch], 0.0) == []
    tries = state / TRIES_PATH
    tries.parent.mkdir(parents=True)
    tries.write_text(json.dumps({"kind": "start", "run": "1"}) + "\n" + '{"kind": "fin')
    transcript = state / "events/offline/common_transcript/events.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps({"source": "agent", "message": "Hello"}) + "\n")
    assert await read_new_events(hosts, [watch], 1.0) == [
        TryStarted(test="t", number=1),
        AgentOutput(test="t", line="Hello"),
    ]
    with tries.open("a") as file:
        file.write('ish", "run": "1", "passed": true}\n{"kind": "finish", "run": "1", "passed": true}\n')
    events = await read_new_events(hosts, [watch], 2.5)
    assert [type(event) for event in events] == [TryFinished]
    assert not watch.has_archive
    (state / ARCHIVE_PATH).write_bytes(b"")
    await read_new_events(hosts, [watch], 3.0)
    assert watch.has_archive


async def test_a_transcript_is_kept_with_the_words_of_subagents_between_the_agents(
    watch: AgentFollower, tmp_path: Path
) -> None:
    kept = tmp_path / "kept" / "transcript.jsonl"
    watch.kept_transcript = KeptTranscript(kept)
    own = tmp_path / "state/plugin/claude/anthropic/projects/-copy/session.jsonl"
    below = own.with_suffix("") / "subagents/agent-7.jsonl"
    below.parent.mkdir(parents=True)
    for second, (path, line) in enumerate([(own, "1"), (below, "2"), (own, "3"), (below, "4")]):
        with path.open("a") as file:
            file.write(line + "\n")
        await read_new_events(local_hosts(tmp_path), [watch], 10.0 * second)
    assert kept.read_text().split() == ["1", "2", "3", "4"]


def unobserved_watch(root: Path) -> AgentFollower:
    """Return the watch of an agent that has no files of its own that show what it does."""
    spec = dataclasses.replace(SPEC, agent_type="offline")
    return AgentFollower(TestJob("t", spec), address(root), started=0.0, timeout=100.0, wait_timeout=50.0)


async def test_files_are_looked_for_until_all_are_found(watch: AgentFollower, tmp_path: Path) -> None:
    unobserved = unobserved_watch(tmp_path)
    assert unobserved.is_searched(10.0)
    assert not unobserved.is_searched(10.0)
    say(tmp_path, "Hello")
    await read_new_events(local_hosts(tmp_path), [watch, unobserved], 100.0)
    assert not unobserved.is_searched(200.0)
    assert watch.is_searched(200.0)


def test_the_screen_is_needed_where_an_agents_files_tell_nothing(watch: AgentFollower, tmp_path: Path) -> None:
    ready = watch.task.kind.ready_within
    assert ready > 0
    assert [watch.needs_screen(now, now) for now in (0.0, ready - 0.1, ready)] == [False, False, True]
    assert not unobserved_watch(tmp_path).needs_screen(1000.0, 1000.0)


async def test_another_question_of_one_who_waits_begins_no_other_wait(watch: AgentFollower, tmp_path: Path) -> None:
    hosts, start = local_hosts(tmp_path), watch.task.kind.ready_within
    for second, words in enumerate(("Which?", "Which?", "Which of the two?")):
        say(tmp_path, words)
        await read_new_events(hosts, [watch], start + second)
        event, _ = watch.observe("WAITING", start + second, start + second)
    assert event is not None
    assert (event.state, event.question, watch.questions) == (State.WAITING, "Which of the two?", 1)
    assert watch.waiting_since is not None
    assert watch.overdue_end(watch.waiting_since + 50.0) is AgentEnd.NO_ANSWER


async def test_what_an_agent_asks_is_known_from_its_transcript_where_our_hook_is_not(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    foreign = AgentFollower(TestJob("t", SPEC), address(tmp_path), 0.0, 100.0, 50.0, is_foreign=True)
    home, hosts = tmp_path / "state" / "plugin" / "claude" / "anthropic", local_hosts(tmp_path)
    for folder in ("sessions", "projects/shop"):
        (home / folder).mkdir(parents=True)
    (tmp_path / "state" / "claude_main_pid").write_text("7")

    async def question_of(now: float, block: Mapping[str, object], **session: str) -> str | None:
        (home / "sessions" / "7.json").write_text(json.dumps(session))
        with (home / "projects" / "shop" / "s.jsonl").open("a") as file:
            file.write(json.dumps({"type": "assistant", "message": {"content": [block]}}) + "\n")
        await read_new_events(hosts, [foreign], now)
        seen = [event for at in (now, now + 2) if (event := foreign.observe("RUNNING", at, at)[0]) is not None]
        return seen[-1].question if seen else None

    ask = {"type": "tool_use", "id": "1", "name": "AskUserQuestion", "input": {"questions": [{"question": "Red?"}]}}
    asked = await question_of(100.0, ask, status="waiting", waitingFor="input needed")
    assert asked == "a question is open in its terminal: Red?"
    assert await question_of(110.0, {"type": "text", "text": "I work."}, status="busy") == ""
    answered = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1"}]}}
    with (home / "projects" / "shop" / "s.jsonl").open("a") as file:
        file.write(json.dumps(answered) + "\n")
    assert await question_of(120.0, {"type": "text", "text": "Shall I go on?"}, status="idle") == "Shall I go on?"


def say(root: Path, words: str) -> None:
    path = root / "state/events/offline/common_transcript/events.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"source": "agent", "message": words}) + "\n")


async def test_the_log_of_mngrs_converter_is_not_taken_for_the_transcript(watch: AgentFollower, tmp_path: Path) -> None:
    hosts = local_hosts(tmp_path)
    for emitter, words in (("logs", "Converted 2 events"), ("offline", "Hello")):
        path = tmp_path / "state" / "events" / emitter / "common_transcript" / "events.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"source": "agent", "message": words}) + "\n")
    events = [event for now in (0.0, 1.0) for event in await read_new_events(hosts, [watch], now)]
    assert events == [AgentOutput(test="t", line="Hello")]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
async def test_what_only_has_the_name_of_a_file_is_none(
    watch: AgentFollower, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    hosts = local_hosts(tmp_path)
    for name in (ARCHIVE_PATH, TRIES_PATH, "events/offline/common_transcript/events.jsonl"):
        path = tmp_path / "state" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
    assert await read_new_events(hosts, [watch], 2.0) == []
    assert not watch.has_archive


async def lines_of(root: Path, tail: FileTail) -> list[bytes]:
    return tail.read_lines((await local_hosts(root).read_files([tail.request]))[0])


async def test_a_line_without_an_end_does_not_stop_the_reading(tmp_path: Path) -> None:
    tail = FileTail(AgentFile(address(tmp_path), "log", "work"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "log").write_bytes(b"x" * (LINE_LIMIT + 5) + b"\nwhole\n")
    lines = [line for _ in range(4) for line in await lines_of(tmp_path, tail)]
    assert lines == [b"whole"]


async def test_a_file_that_begins_anew_is_read_anew(tmp_path: Path) -> None:
    tail = FileTail(AgentFile(address(tmp_path), "log"))
    log = tmp_path / "state" / "log"
    log.parent.mkdir()
    log.write_bytes(b"first\nsecond\n")
    assert await lines_of(tmp_path, tail) == [b"first", b"second"]
    log.write_bytes(b"")
    assert await lines_of(tmp_path, tail) == []
    log.write_bytes(b"first of the new lines\n")
    assert await lines_of(tmp_path, tail) == [b"first of the new lines"]
    log.write_bytes(b"new\n")
    assert await lines_of(tmp_path, tail) == [b"new"]


def test_own_sum_that_tokens_cannot_cost_is_ignored(tmp_path: Path) -> None:
    claude = AgentFollower(
        TestJob("t", dataclasses.replace(SPEC, agent_type="claude")), address(tmp_path), 0.0, 1.0, 1.0
    )
    assert claude.observer is not None
    for cost, events in (("0.25", 1), ("99999999.99", 0)):
        claude.observer.add_lines("debug", [b"[engine] turn 1 end (x, cost=$%s)" % cost.encode()])
        spent = [event for event in claude.held_back_events() if isinstance(event, UsageReported) and event.dollars]
        assert len(spent) == events, cost
