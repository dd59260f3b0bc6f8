"""Programs that lead a process group: how they are started, and that nothing is left of them when they are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from swarm_tui.adapters.processes.group import communicate, end_group, signal_group, start_group
from swarm_tui.adapters.processes.run import run_process_blocking
from swarm_tui.errors import AdapterError, ProgramMissing, ProgramTimeout
from tests.waiting import PATIENCE, until

PARENT = "sh -c 'echo $$ > {0}.new; mv {0}.new {0}; {1} while :; do sleep 0.05; done' & {1} wait; sleep 60"


def start_parent(note: Path, handler: str = "") -> subprocess.Popen[bytes]:
    """Start a program with a child of its own, whose process id is then in a file."""
    process = start_group(["sh", "-c", PARENT.format(note, handler)], environment=dict(os.environ))
    until(note.exists, "the child to begin")
    return process


def has_gone(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None and not signal_group(process.pid, 0)


@pytest.mark.parametrize(("handler", "code"), [("", -signal.SIGTERM), ("trap '' TERM;", -signal.SIGKILL)])
def test_group_is_stopped_despite_ignored_signals(tmp_path: Path, handler: str, code: int) -> None:
    process = start_parent(tmp_path / "child", handler)
    end_group(process)
    assert process.returncode == code
    until(lambda: has_gone(process), "the group to end")
    end_group(process)


def test_interrupt_stops_group(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    process = start_parent(tmp_path / "child")
    try:
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGUSR1)).start()
        with pytest.raises(KeyboardInterrupt):
            communicate(process, None, PATIENCE)
    finally:
        signal.signal(signal.SIGUSR1, before)
    until(lambda: has_gone(process), "the group to end")


def test_blocking_run_has_time_limit() -> None:
    with pytest.raises(ProgramTimeout, match=r"`sh -c sleep 1000` did not exit within 0.2 s"):
        run_process_blocking(["sh", "-c", "sleep 1000"], timeout=0.2)
    finished = run_process_blocking(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (finished.code, finished.text, finished.error_text) == (3, "out\n", "err\n")


def test_failed_start_has_reason(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    with pytest.raises(ProgramMissing, match="is not installed"):
        start_group(["no-such-program"], environment={})
    with pytest.raises(ProgramMissing, match="is not executable"):
        start_group([str(tmp_path / "text")], environment={})
    with pytest.raises(AdapterError, match=r"cannot start .* in "):
        start_group(["true"], environment={}, cwd=tmp_path / "gone")
    with pytest.raises(AdapterError, match="cannot start") as caught:
        start_group(["true", "\0"], environment={})
    assert "NUL" in caught.value.hint
