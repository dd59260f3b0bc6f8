"""What a terminal still answers after a program has left it is taken off before anybody reads it as keys."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from swarm_tui.adapters.processes.foreground import drop_late_answers
from tests.waiting import PATIENCE


class Pair(NamedTuple):
    person: int
    program: int


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair(*os.openpty())
    yield made
    for end in made:
        os.close(end)


def is_silent(terminal: int) -> bool:
    return not select.select([terminal], [], [], 0)[0]


def test_late_answers_are_dropped_up_to_ours(pair: Pair) -> None:
    os.write(pair.person, b"\x1b[?62;22c\x1bP>|terminal(q6)\x1b\\\x1b[0n")
    assert drop_late_answers(pair.program)
    assert is_silent(pair.program)


def test_terminal_settings_are_restored(pair: Pair) -> None:
    before = termios.tcgetattr(pair.program)
    os.write(pair.person, b"\x1b[0n")
    drop_late_answers(pair.program)
    shown = b""
    # What was typed is echoed first, and may be read by itself.
    while not shown.endswith(b"\x1b[5n"):
        assert select.select([pair.person], [], [], PATIENCE)[0], shown
        shown += os.read(pair.person, 100)
    assert termios.tcgetattr(pair.program) == before


def test_silent_terminal_has_time_limit(pair: Pair) -> None:
    os.write(pair.person, b"\x1b[?6c")
    assert not drop_late_answers(pair.program, timeout=0.01)


EARLY_SIGNAL = """
import os, signal, sys
from collections import UserDict
from swarm_tui.adapters.processes.foreground import run_in_foreground

class Environment(UserDict):
    def __iter__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return super().__iter__()

run_in_foreground(["sleep", "1000"], cwd=None, environment=Environment(os.environ))
"""


def test_signal_during_the_start_of_a_program_ends_it() -> None:
    words = [sys.executable, "-c", EARLY_SIGNAL]
    ended = subprocess.run(words, stdin=subprocess.DEVNULL, timeout=PATIENCE)
    assert ended.returncode == 128 + signal.SIGTERM


def test_pipe_has_no_late_answers() -> None:
    with open(os.devnull) as nothing:
        assert drop_late_answers(nothing.fileno())
