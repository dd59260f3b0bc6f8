"""Scripts wait for something in a sweep, and read what happens in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.events import AgentStateChanged, EngineEnded, EngineStarted, Launched, LogMessage, Pulled
from swarm_tui.model.results import Result, State
from swarm_tui.sweep.context import SweepContext
from tests.cli.command_line import run_swarm_tui
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep
from tests.waiting import PATIENCE, until


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SweepContext]:
    """Return a sweep of two tests on which an engine works."""
    context = scripted_sweep(tmp_path, 2, QuickMngr(tmp_path / "mngr"))
    lock = EngineLock(context.folder.lock)
    lock.acquire()
    yield context
    lock.release()


@contextmanager
def started(context: SweepContext, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "swarm_tui", *words],
        cwd=context.spec.repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def swarm_tui(context: SweepContext, *words: str) -> subprocess.CompletedProcess[str]:
    return run_swarm_tui(*words, folder=Path(context.spec.repository))


def test_it_waits_until_it_is_so(context: SweepContext) -> None:
    test = next(context.state.tests()).test
    with started(context, "wait", "--until", "done or question and not error", "--timeout", "10m") as waiting:
        context.record(Launched(test=test))
        context.record(AgentStateChanged(test=test, state=State.WAITING))
        assert waiting.communicate(timeout=PATIENCE) == ("question\n", "")
        assert waiting.returncode == 0


def test_it_says_why_it_waits_no_longer(context: SweepContext) -> None:
    late = swarm_tui(context, "wait", "--until", "question", "--timeout", "0.1s")
    assert (late.returncode, late.stdout, late.stderr) == (124, "", "the condition is false after 0.1 s\n")
    assert swarm_tui(context, "wait", "--until", "not question").stdout == "not question\n"
    wrong = swarm_tui(context, "wait", "--until", "done or dusted")
    assert (wrong.returncode, "'dusted'\nhint: use one of done, ended, question" in wrong.stderr) == (2, True)
    for words in (["wait"], ["wait", "--until", "done", "--timeout", "soon"]):
        assert swarm_tui(context, *words).returncode == 2


def test_it_does_not_wait_for_an_engine_that_has_ended(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"))
    context.record(EngineEnded(why="stopped"))
    over = swarm_tui(context, "wait", "--until", "done")
    assert (over.returncode, "no engine is running" in over.stderr) == (1, True)


def lines_of(process: subprocess.Popen[str]) -> Callable[[int], list[str]]:
    assert process.stdout is not None
    stream = process.stdout

    def read(number: int) -> list[str]:
        return [stream.readline() for _ in range(number)]

    return read


def test_events_go_on_with_the_next_engine_and_end_with_the_sweep(context: SweepContext) -> None:
    test = next(context.state.tests()).test
    with started(context, "events", "--follow", "--json") as following:
        read = lines_of(following)
        assert [json.loads(line)["type"] for line in read(3)] == ["queued", "queued", "engine_started"]
        context.record(EngineEnded(why="stopped"))
        context.record(EngineStarted(pid=2, is_resumed=True))
        context.record(LogMessage(text="\x1b[31m\u009b31m", test=test))
        last = read(3)[-1]
        assert last.isascii()
        assert json.loads(last)["text"] == "\x1b[31m\u009b31m"
        context.record(EngineEnded(why="finished"))
        rest, told = following.communicate(timeout=PATIENCE)
        assert (json.loads(rest)["why"], told, following.returncode) == ("finished", "", 0)


def test_without_json_they_are_the_lines_of_the_log(context: SweepContext) -> None:
    test = next(context.state.tests()).test
    context.record(Pulled(test=test, result=Result.ERROR, reason="\x1b[31mno disk"))
    shown = swarm_tui(context, "events")
    assert [line[9:] for line in shown.stdout.splitlines()] == ["engine started, 50 slots", f"{test}: error: no disk"]
    later = swarm_tui(context, "events", "--json", "--after", "3")
    assert [json.loads(line)["type"] for line in later.stdout.splitlines()] == ["pulled"]


def test_a_line_that_is_no_event_is_passed_over(context: SweepContext) -> None:
    with context.folder.events.open("ab") as file:
        file.write(b"garbage\n\n[]\n{}\n")
    context.record(LogMessage(text="after it"))
    shown = swarm_tui(context, "events", "--json")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert json.loads(shown.stdout.splitlines()[-1])["text"] == "after it"


def test_a_reader_that_goes_ends_it_without_a_word(context: SweepContext) -> None:
    with started(context, "events", "--follow") as following:
        assert following.stdout is not None
        following.stdout.readline()
        following.stdout.close()
        until(lambda: following.poll() is not None, "the end of the stream")
        assert following.stderr is not None
        assert following.stderr.read() == ""
        following.stdout = open(os.devnull)  # noqa: SIM115


def test_a_silence_is_explained_when_no_engine_works(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"))
    with started(context, "events", "--follow") as following:
        assert following.stderr is not None
        assert "no engine is running; to resume: `swarm-tui resume 2026" in following.stderr.readline()
        following.send_signal(signal.SIGINT)
        assert following.wait(PATIENCE) == 130
