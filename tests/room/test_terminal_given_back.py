"""The terminal is restored however the room or a program in it exits."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.terminal import ProgramTerminal
from tests.waiting import until

_MODES: Final = re.compile(rb"\x1b\[\?([0-9;]+)([hl])|\x1b\[([<>])[0-9]*u")
# The initial state of every terminal: visible cursor and line wrapping.
USUAL: Final = frozenset({"25", "7"})
# A foreground program that changes all terminal modes, prints a word, and waits to be killed.
GREEDY: Final = r"stty raw -echo; printf '\033[?1049;1000;1006;2004h\033[?25lmine'; echo $$ > pid; exec sleep 600"
IN_FRONT: Final = """
import os, sys
from swarm_tui.adapters.processes.foreground import run_in_foreground
print("code", run_in_foreground(["sh", "-c", sys.argv[1]], cwd=None, environment=os.environ))
"""
CRASHING: Final = """
import sys, tempfile, time
from pathlib import Path
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.room import entry
from swarm_tui.room.app import RoomApp
from swarm_tui.room.settings import read_settings
from swarm_tui.room.store import Store

class Crashing(RoomApp):
    CSS_PATH = str(Path(entry.__file__).with_name("room.tcss"))

    def action_hint_leave(self):
        raise RuntimeError("crash")

folder = SweepFolder(Path(sys.argv[1]) / "sweep")
spec = SweepSpec(sweep="s", repository="", base="", created_at=time.time(), mngr=MngrSettings(path=""))
folder.write_spec(spec)
sys.exit(entry._run(Crashing(Store(folder), read_settings())))
"""


class WatchedTerminal(ProgramTerminal):
    """Records the modes that the program has set on its terminal, and the output of stty."""

    def __init__(self, words: Sequence[str], **options: Any) -> None:
        super().__init__(words, **options)
        self.modes = set(USUAL)
        self.kept = b""

    def keep(self, block: bytes) -> None:
        super().keep(block)
        self.kept += block
        while found := _MODES.search(self.kept):
            self.kept = self.kept[found.end() :]
            names, is_set = found[1], found[2] == b"h"
            for name in (names or b"kitty").decode().split(";"):
                (self.modes.add if is_set or found[3] == b">" else self.modes.discard)(name)

    @property
    def stty(self) -> list[Any]:
        return termios.tcgetattr(self._child.child_fd)


def opened(words: Sequence[str], folder: Path) -> tuple[WatchedTerminal, list[Any]]:
    """Return a terminal with a program started by a shell, and the previous output of stty."""
    terminal = WatchedTerminal(
        ["sh", "-c", 'read begin; "$@"; echo "exited with $?"; read end', "sh", *words], folder=folder
    ).open()
    before = terminal.stty
    terminal.type("begin\n")
    return terminal, before


def assert_given_back(terminal: WatchedTerminal, before: list[Any], code: int) -> None:
    terminal.wait_for(f"exited with {code}")
    assert terminal.modes == USUAL
    assert terminal.stty == before
    assert not terminal.has_own_screen


def child_of(process: int) -> int | None:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(children[0]) if children else None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=lambda number: number.name)
def test_terminal_is_restored_after_signal(number: signal.Signals, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "swarm_tui", "simulate", "--tests", "12", "--rate", "5"]
    terminal, before = opened(words, tmp_path)
    try:
        terminal.wait_until(lambda screen: screen.has_list("Tests 12"))
        assert terminal.modes != USUAL
        assert terminal.stty != before
        room = child_of(terminal.process)
        assert room is not None
        os.kill(room, number)
        assert_given_back(terminal, before, 128 + number)
    finally:
        terminal.hang_up()


def test_terminal_is_restored_after_crash(tmp_path: Path) -> None:
    program = tmp_path / "crashing.py"
    program.write_text(CRASHING)
    terminal, before = opened([sys.executable, str(program), str(tmp_path)], tmp_path)
    try:
        terminal.wait_until(lambda screen: bool(screen.lists()))
        terminal.press("C-q")
        assert_given_back(terminal, before, 1)
    finally:
        terminal.hang_up()


@pytest.mark.parametrize("is_told", [False, True], ids=["its child is killed", "both are told to end"])
def test_terminal_is_restored_after_killed_program(is_told: bool, tmp_path: Path) -> None:
    terminal, before = opened([sys.executable, "-c", IN_FRONT, GREEDY], tmp_path)
    try:
        terminal.wait_for("mine")
        until((tmp_path / "pid").exists, "the program in front")
        assert terminal.modes != USUAL
        if is_told:
            ours = child_of(terminal.process)
            assert ours is not None
            os.kill(ours, signal.SIGTERM)
        else:
            until(lambda: (tmp_path / "pid").read_text().endswith("\n"), "the id of the program in front")
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        assert_given_back(terminal, before, 128 + signal.SIGTERM if is_told else 0)
    finally:
        terminal.hang_up()
