"""What a test process has started and written is gone after it, however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.adapters.processes.ends import end_marked_processes, marked_processes
from swarm_tui.model.spec import MngrSettings
from tests.leftovers import MARK, ROOT
from tests.waiting import until

SCRIPT = """
import os, subprocess, sys, tempfile, time
from tests.leftovers import RunFolder
folder = RunFolder()
tempfile.mkstemp()
os.environ["TMUX_TMPDIR"] = tempfile.mkdtemp()
subprocess.run(["tmux", "-f", "/dev/null", "new-session", "-d", "exec sleep 1006"], check=True)
subprocess.Popen(["setsid", "sh", "-c", "trap '' HUP; exec sleep 1007"], stdout=subprocess.DEVNULL)
print(folder.path, flush=True)
if sys.stdin.read() == "close":
    folder.close(is_kept=sys.argv[1] == "kept")
"""


class Started:
    """A test process that has left two programs running and two things in its temporary folder."""

    def __init__(self, word: str) -> None:
        words = [sys.executable, "-c", SCRIPT, word]
        self.process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.folder = Path(self.process.stdout.readline().strip())
        until(lambda: {"sleep 1006", "sleep 1007"} <= self.programs, "its programs to start")
        assert len(list(self.folder.iterdir())) == 2

    @property
    def programs(self) -> set[str]:
        return set(marked_processes(MARK, self.folder.name).values())

    @property
    def is_gone(self) -> bool:
        return not self.folder.exists() and not self.programs


@pytest.fixture
def started(request: pytest.FixtureRequest) -> Iterator[Started]:
    process = Started(getattr(request, "param", ""))
    yield process
    process.process.kill()
    process.process.communicate()
    end_marked_processes(MARK, process.folder.name)


def test_mark_is_passed_to_agents_and_test_runs() -> None:
    environment = mngr_environment(MngrSettings(path="mngr", host_dir="/mngr", prefix="", tmux_tmpdir=None, home=None))
    assert environment[MARK] == os.environ[MARK]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_test_process_that_is_ended_leaves_nothing(started: Started, number: signal.Signals) -> None:
    started.process.send_signal(number)
    until(lambda: started.is_gone, "its programs and its folder to be gone", describe=lambda: str(started.programs))


def test_closing_waits_until_everything_is_gone(started: Started) -> None:
    started.process.communicate("close")
    assert started.is_gone


@pytest.mark.parametrize("started", ["kept"], indirect=True)
def test_what_is_to_be_kept_stays(started: Started) -> None:
    started.process.communicate("close")
    assert started.folder.is_dir()
    assert {"sleep 1006", "sleep 1007"} <= started.programs
