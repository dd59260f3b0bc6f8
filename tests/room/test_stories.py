"""User stories of the room in a real terminal."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.terminal import ProgramTerminal
from tests.waiting import until

pytestmark = pytest.mark.slow

OpenRoom = Callable[..., ProgramTerminal]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[OpenRoom]:
    """Start swarm-tui with these arguments, in an empty folder and with a separate home."""
    environment = {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": f"{tmp_path}/state",
        "XDG_CONFIG_HOME": f"{tmp_path}/config",
    }
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])

    with ExitStack() as opened:

        def start(*words: str) -> ProgramTerminal:
            command = [sys.executable, "-m", "swarm_tui", *words]
            return opened.enter_context(ProgramTerminal(command, environment=environment, folder=tmp_path))

        yield start


def test_user_finds_waiting_test_and_leaves(room: OpenRoom) -> None:
    terminal = room("simulate", "--tests", "60", "--ahead", "0.8", "--rate", "5", "--seed", "4")
    terminal.wait_until(lambda screen: screen.has_list("Tests 60"))
    terminal.press("w")
    terminal.wait_for(re.compile(r"\d of \d+ tests? that need"))
    terminal.press("+", "+")
    screen = terminal.wait_for(re.compile(r"state +test"))
    assert screen.list("Tests 60").selected is not None
    terminal.press("/")
    terminal.wait_for("filter (!word")
    terminal.type("e2e")
    terminal.wait_for("match /e2e")
    terminal.press("Escape")
    terminal.wait_until_gone("match")
    assert terminal.has_own_screen
    terminal.press("q")
    assert terminal.wait_for_end() == 0
    assert not terminal.screen.has("Traceback")
    assert not terminal.has_own_screen


def test_keys_read_together_follow_opened_screens(room: OpenRoom) -> None:
    terminal = room("simulate", "--tests", "60", "--ahead", "0.8", "--rate", "1", "--seed", "4")
    terminal.wait_until(lambda screen: screen.has_list("Tests 60"))
    terminal.type(":slots 4\r")
    terminal.wait_for(re.compile(r"slots \d+/4 "))
    terminal.type("/copies\rw6")
    terminal.wait_until(lambda screen: screen.has_list("Log "))
    terminal.type("4jk5q1")
    terminal.wait_for("match /copies")


def test_closed_terminal_stops_room_and_simulation(room: OpenRoom) -> None:
    terminal = room("simulate", "--tests", "30", "--rate", "5")
    terminal.wait_until(lambda screen: screen.has_list("Tests 30"))
    feeder = terminal.process_of("simulate.feeder")
    terminal.close_window()
    until(terminal.has_ended, "the end of the room")
    until(lambda: not is_alive(feeder), "the end of its feeder")


def test_room_without_sweep_lists_commands(room: OpenRoom) -> None:
    terminal = room()
    terminal.wait_for("This repository has no sweep yet")
    terminal.press("q")
    assert terminal.wait_for_end() == 0


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A zombie process is dead too.
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False
