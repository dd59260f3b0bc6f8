"""A sweep survives the death of everything that works on it, and does what people ask of it meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.journal.append import engine_process_id
from tests.attacks.real_kills import journal_problems
from tests.isolation import IsolatedMngr
from tests.sweep.endings import FILE, make_endings
from tests.sweep.sweeping import Program, kill_engine, offline
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

QUICK = ("--speed", "20", "--slots", "3")


@pytest.fixture
def program(isolated_mngr: IsolatedMngr, tmp_path: Path) -> Iterator[Program]:
    project = make_endings(tmp_path / "project")
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    yield program
    if (project.root / ".swarm" / "runs").is_dir():
        kill_engine(program.newest())
        program.call("clean", "--yes", "--folder")


def begin(program: Program, tests: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a sweep over the tests that pytest's -k chooses."""
    started = program.start("run", "--headless", *offline("records", *QUICK, *words), "--", "-k", tests)
    runs = program.folder / ".swarm" / "runs"
    until(lambda: runs.is_dir() and any(runs.glob("*/engine.lock")) and program.newest(), "the sweep")
    return started


def state_of(program: Program, name: str) -> str:
    record = program.opened().state.records.get(f"{FILE}::{name}")
    return record.mark if record else ""


def results(program: Program) -> dict[str, str]:
    return {test["test"].partition("::")[2]: test["result"] for test in program.status()["tests"]}


def test_an_engine_that_is_killed_twice_is_as_if_it_had_never_been(program: Program) -> None:
    begin(program, "fixed or wrong_test or clean or tutorial")
    until(lambda: state_of(program, "test_clean") in ("running", "clean"), "the first agent")
    kill_engine(program.newest())
    assert program.status()["state"] == "lost"
    program.start("resume", "--headless")
    until(lambda: engine_process_id(program.newest().lock), "the engine to resume")
    until(lambda: state_of(program, "test_wrong_test") in ("launching", "running", "test_fix"), "another agent")
    kill_engine(program.newest())
    done = program.call("resume", "--headless", "--json")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["state"] == "finished"
    assert {test["result"] for test in status["tests"]} == {"clean", "impl_fix", "test_fix", "tutorial_fix"}
    assert status["integrated"]
    assert journal_problems(program.opened()) == []


def test_an_agent_that_was_stopped_from_outside_is_failed_or_relaunched(program: Program) -> None:
    begin(program, "hangs or clean", "--integrator", "none")
    until(lambda: state_of(program, "test_hangs") == "running", "the agent")
    kill_engine(program.newest())
    agent = program.opened().state.records[f"{FILE}::test_hangs"]
    os.kill(_process_of(agent.agent), signal.SIGKILL)
    assert program.call("resume", "--headless").returncode == 1
    assert results(program)["test_hangs"] == "error"
    assert "its process exited" in program.opened().state.records[agent.test].reason
    program.start("resume", "--headless", "--relaunch")
    until(lambda: state_of(program, "test_hangs") == "running", "another agent")
    assert results(program)["test_clean"] == "clean"
    assert program.call("stop").returncode == 0


def test_stop_keeps_what_is_done_and_resume_does_the_rest(program: Program) -> None:
    started = begin(program, "hangs or clean or asks", "--integrator", "none")
    until(lambda: state_of(program, "test_clean") == "clean", "the first result")
    until(lambda: state_of(program, "test_asks") == "waiting", "the question")
    stopped = program.call("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert started.wait(PATIENCE) == 1
    assert program.status()["state"] == "stopped"
    assert (state_of(program, "test_clean"), state_of(program, "test_asks")) == ("clean", "stopped")
    program.start("resume", "--headless")
    until(lambda: state_of(program, "test_asks") == "waiting", "the question, again")
    assert program.call("request", "message", "test-asks", "--text", "The first.").returncode == 0
    assert program.call("request", "stop", "test-hangs").returncode == 0
    until(lambda: state_of(program, "test_asks") == "clean", "the answer's effect")
    until(lambda: program.status()["state"] == "finished", "the end")
    assert state_of(program, "test_hangs") == "stopped"
    assert journal_problems(program.opened()) == []


def test_second_engine_is_refused(program: Program) -> None:
    begin(program, "hangs", "--integrator", "none")
    until(lambda: state_of(program, "test_hangs") == "running", "the agent")
    second = program.call("resume", "--headless")
    assert second.returncode == 2
    assert "already has an engine" in second.stderr
    assert program.call("stop").returncode == 0


def _process_of(agent: str) -> int:
    def listed() -> int | None:
        words = ["ps", "-e", "-ww", "-o", "pid=,args="]
        found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
        return next((int(line.split()[0]) for line in found if agent in line and "swarm-agent" in line), None)

    process_id = until(listed, f"the process of {agent}")
    assert process_id is not None
    return process_id


def test_the_engine_lets_go_when_it_is_asked_to_end(program: Program) -> None:
    begin(program, "hangs", "--integrator", "none")
    until(lambda: state_of(program, "test_hangs") == "running", "the agent")
    kill_engine(program.newest(), signal.SIGTERM)
    assert program.status()["state"] == "stopped"
    assert _process_of(program.opened().state.records[f"{FILE}::test_hangs"].agent)
    assert engine_process_id(program.newest().lock) is None
