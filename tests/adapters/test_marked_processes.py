"""What a test left running is found by its mark and ended; nothing else is."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from swarm_tui.adapters.processes.ends import end_marked_processes, marked_in_proc, marked_in_ps, marked_processes
from tests.waiting import until

NAME = "SWARM_LEFTOVER_TEST"


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"], env=dict(os.environ) | {NAME: "another"})
    yield process
    process.kill()
    process.wait()


def start(line: str, mark: str) -> None:
    """Start a line as an orphan in a session of its own, as a daemon would."""
    environment = dict(os.environ) | {NAME: mark}
    subprocess.run(["sh", "-c", f"setsid sh -c {line!r} >/dev/null 2>&1 &"], env=environment, check=True)
    until(lambda: marked_processes(NAME, mark), "the process")


def wait_for_program(command: str, mark: str) -> None:
    until(lambda: command in marked_processes(NAME, mark).values(), command)


def test_marked_daemon_is_stopped_and_reported(bystander: subprocess.Popen[bytes]) -> None:
    mark = uuid.uuid4().hex
    start("exec sleep 1001", mark)
    wait_for_program("sleep 1001", mark)
    assert "sleep 1001" in end_marked_processes(NAME, mark)
    assert marked_processes(NAME, mark) == {}
    assert bystander.poll() is None


def test_marked_process_ignoring_term_is_killed() -> None:
    mark = uuid.uuid4().hex
    start('trap "" TERM; while :; do sleep 0.01; done', mark)
    assert end_marked_processes(NAME, mark, grace=0.2)
    assert marked_processes(NAME, mark) == {}


def test_ps_and_proc_agree() -> None:
    mark = uuid.uuid4().hex
    start("exec sleep 1005", mark)
    wait_for_program("sleep 1005", mark)
    assert marked_in_ps(f"{NAME}={mark}") == marked_in_proc(f"{NAME}={mark}".encode())
    end_marked_processes(NAME, mark)


def test_longer_value_is_another_mark() -> None:
    mark = uuid.uuid4().hex
    start("exec sleep 1002", mark + "x")
    wait_for_program("sleep 1002", mark + "x")
    assert end_marked_processes(NAME, mark) == ()
    assert end_marked_processes(NAME, mark + "x") == ("sleep 1002",)
