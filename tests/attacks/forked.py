"""Runs a function in a forked process: bounded in time, struck at a moment, with what it prints caught."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.attacks.scripted_world import IS_STRIKING

WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES: Final = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "fcntl.flock", "subprocess.Popen"}
)
NOT_STRUCK: Final = 1 << 60


@dataclass(frozen=True)
class Ended:
    """How a forked process has ended."""

    code: int
    """Its exit code, or minus the signal that has killed it."""
    output: str
    seconds: float
    is_late: bool = False
    """It was killed because it did not end in time."""


def run_forked(work: Callable[[], int], *, limit: float = 180.0, strike: int = NOT_STRUCK) -> Ended:
    """Run a function in a process of its own, which is killed right before its `strike`-th act on a file.

    Acts are what changes files, locks them, or starts a program: before and after each event of a journal is one.
    """
    with tempfile.TemporaryFile() as caught:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _run_child(work, caught.fileno(), strike)
        started = time.monotonic()
        status, is_late = _wait(child, started + limit)
        caught.seek(0)
        output = caught.read(1 << 20).decode(errors="replace")
        return Ended(os.waitstatus_to_exitcode(status), output, time.monotonic() - started, is_late)


def count_acts(work: Callable[[], int], path: Path) -> int:
    """Return how many acts a function makes when nothing strikes it."""

    def count_and_write() -> int:
        counter = _Striker(NOT_STRUCK)
        sys.addaudithook(counter)
        code = work()
        path.write_text(str(counter.acts))
        return code

    ended = run_forked(count_and_write)
    assert ended.code == 0, ended.output
    return int(path.read_text())


class _Striker:
    def __init__(self, strike: int) -> None:
        self.acts = 0
        self._strike = strike

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_act = event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING)
        if is_act and IS_STRIKING[0]:
            self.acts += 1
            if self.acts == self._strike:
                os.kill(os.getpid(), signal.SIGKILL)


def _run_child(work: Callable[[], int], output: int, strike: int) -> None:
    code = 70
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # pytest has put files of its own in their places.
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        if strike != NOT_STRUCK:
            sys.addaudithook(_Striker(strike))
        code = work()
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, deadline: float) -> tuple[int, bool]:
    pause = 0.002
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status, False
        time.sleep(pause)
        pause = min(pause * 1.3, 0.05)
    os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1], True
