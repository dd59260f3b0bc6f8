"""What a person does, in a real terminal: tmux with a server of its own."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.waiting import until

pytestmark = pytest.mark.slow

COMMAND = f"{sys.executable} -m swarm_tui"


class Terminal:
    """A terminal in tmux in which a person types."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._environment = {
            name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE", "NO_COLOR")
        }
        self._environment |= {
            "TMUX_TMPDIR": str(folder),
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PS1": "$ ",
        }
        self.home = home

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", *words], env=self._environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def open(self, columns: int = 100, rows: int = 30) -> None:
        self.tmux("new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(rows), "-c", str(self.home), "sh")

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "t", *keys)

    def run(self, command: str) -> None:
        self.type(f"clear; {command}; echo left with $?", "Enter")

    def shown(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "t")

    def wait_for(self, what: str | Callable[[str], bool], seconds: float = 30.0) -> str:
        def is_so(shown: str) -> bool:
            return re.search(what, shown) is not None if isinstance(what, str) else what(shown)

        return until(lambda: is_so(shown := self.shown()) and shown, repr(what), seconds, told=self.shown) or ""

    def process_of(self, word: str) -> int:
        """Return the process below the pane whose command line has this word."""
        pane = self.tmux("list-panes", "-t", "t", "-F", "#{pane_pid}").strip()
        table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in table.splitlines()]
        family = {pane}
        for _ in range(4):
            family |= {row[0] for row in rows if row[1] in family}
        return next(int(row[0]) for row in rows if row[0] in family and word in row[2])


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="sw"))
    terminal = Terminal(folder, tmp_path)
    try:
        yield terminal
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            terminal.tmux("kill-server")
        shutil.rmtree(folder, ignore_errors=True)


def test_one_watches_finds_who_waits_and_leaves(terminal: Terminal) -> None:
    terminal.open()
    terminal.run(f"{COMMAND} simulate --tests 60 --ahead 0.8 --rate 5 --seed 4")
    terminal.wait_for(r"Tests 60")
    terminal.type("w")
    terminal.wait_for(r"\d of \d+ tests? that want")
    terminal.type("+", "+")
    terminal.wait_for(r"state +test")
    terminal.type("/")
    terminal.wait_for("filter; !word")
    terminal.type("e2e")
    terminal.wait_for(r"match /e2e")
    terminal.type("Escape")
    terminal.wait_for(lambda shown: "match" not in shown)
    terminal.type("q")
    shown = terminal.wait_for("left with 0")
    assert "Traceback" not in shown
    assert "Tests 60" not in shown


def test_slots_asked_for_become_true(terminal: Terminal) -> None:
    terminal.open()
    terminal.run(f"{COMMAND} simulate --tests 60 --ahead 0.3 --rate 5 --slots 10")
    terminal.wait_for(r"/10 ")
    terminal.type(">", ">")
    terminal.wait_for(r"slots \d+/12 ")
    terminal.type(":")
    terminal.wait_for("Everything")
    terminal.type("slots 4", "Enter")
    terminal.wait_for(r"slots \d+/4 ")


def test_keys_that_are_read_at_once_go_where_the_ones_before_have_led(terminal: Terminal) -> None:
    terminal.open()
    terminal.run(f"{COMMAND} simulate --tests 60 --ahead 0.8 --rate 1 --seed 4")
    terminal.wait_for(r"Tests 60")
    terminal.type("-l", ":slots 4\r")
    terminal.wait_for(r"slots \d+/4 ")
    terminal.type("-l", "/copies\rw6")
    terminal.wait_for("Log ")
    terminal.type("-l", "4jk5q1")
    terminal.wait_for("match /copies")


def test_a_terminal_that_closes_takes_the_room_and_its_feeder_along(terminal: Terminal) -> None:
    terminal.open()
    terminal.run(f"{COMMAND} simulate --tests 30 --rate 5")
    terminal.wait_for(r"Tests 30")
    feeder, room = terminal.process_of("simulate.feeder"), terminal.process_of("swarm_tui simulate")
    terminal.tmux("kill-session", "-t", "t")
    until(lambda: not is_alive(room), "the end of the room")
    until(lambda: not is_alive(feeder), "the end of its feeder")


def test_a_terminal_that_becomes_tiny_and_large_again(terminal: Terminal) -> None:
    terminal.open()
    terminal.run(f"{COMMAND} simulate --tests 60 --ahead 0.5 --rate 5")
    terminal.wait_for(r"Tests 60")
    terminal.tmux("resize-window", "-t", "t", "-x", "20", "-y", "5")
    terminal.type("+", "4", "5", "1")
    terminal.wait_for(lambda shown: len(shown.splitlines()) == 5)
    terminal.tmux("resize-window", "-t", "t", "-x", "120", "-y", "40")
    terminal.wait_for(r"Tests 60")


def test_without_a_sweep_it_says_what_can_be_done(terminal: Terminal) -> None:
    terminal.open()
    terminal.run(COMMAND)
    terminal.wait_for("There is no sweep in this folder yet")
    terminal.type("q")
    terminal.wait_for("left with 0")


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # One that nobody has waited for is dead too.
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False
