"""Each row of the emulator equals the row of tmux."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.terminal import TerminalProgram
from swarm_tui.room.emulator import Emulator
from tests.waiting import PATIENCE

ROWS, COLUMNS = 40, 100
STEPS = (
    "seq 1 200\n",
    "clear\n",
    "printf 'a\\nb\\nc\\n'; seq 1 60; clear; ls /usr/bin | head -40\n",
    "for i in 1 2 3 4 5 6; do echo line $i; sleep .05; done\n",
    "seq 1 500 | less\n",
    "  ",
    "b",
    "jjjjkkk",
    "q",
    "printf 'wide 宽宽 and 🙂 end\\n'\n",
    "vim -u NONE -N /etc/passwd\n",
    "\x04\x15jjjj",
    "ggdd5joinserted\x1b",
    ":q!\n",
    "top -b -n1 | head -30\n",
    "top -d 0.3\n",
    "q",
    "tput csr 2 8; printf '\\033[5S'; tput csr 0 38; echo done\n",
    "printf '\\033[31mred \\033[1;44mbold\\033[0m plain\\n'\n",
    "for i in $(seq 3000); do echo flood $i; done\n",
)


class Attached:
    """tmux in an emulator, and the screen that tmux itself reports."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.tmux(
            "new-session", "-d", "-s", "a", "-x", str(COLUMNS), "-y", str(ROWS), "env PS1='$ ' bash --norc --noprofile"
        )
        self.tmux("set-option", "-sg", "escape-time", "0")
        self.program = TerminalProgram(
            ["tmux", "-u", "attach-session", "-t", "=a"], rows=ROWS, columns=COLUMNS, environment=environment
        )
        self.emulator = Emulator(ROWS, COLUMNS, self.program.send)

    def tmux(self, *words: str) -> str:
        finished = subprocess.run(
            ["tmux", "-f", "/dev/null", *words], env=self.environment, capture_output=True, text=True, timeout=PATIENCE
        )
        return finished.stdout

    def pump(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self.program.descriptor], [], [], left)[0]:
                content = self.program.read()
                if content is None:
                    return
                self.emulator.feed(content)

    def expected(self) -> list[str]:
        return [line.rstrip() for line in self.tmux("capture-pane", "-p", "-t", "=a:").split("\n")][: ROWS - 1]

    def agrees(self, seconds: float = PATIENCE) -> bool:
        """Return whether the rows become equal. A moving screen must be compared at one moment."""
        self.pump(0.25)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.pump(0.05)
            expected = self.expected()
            if self.emulator.text()[: ROWS - 1] == expected and expected == self.expected():
                return True
        return False


@pytest.fixture
def attached() -> Iterator[Attached]:
    folder = tempfile.mkdtemp(prefix="sw")
    extra = {"TMUX_TMPDIR": folder, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
    it = Attached(scrubbed_environment(extra))
    yield it
    it.program.close()
    it.tmux("kill-server")
    shutil.rmtree(folder)


@pytest.mark.slow
def test_emulator_rows_match_tmux_after_each_step(attached: Attached) -> None:
    for step in STEPS:
        attached.program.send(step.encode())
        assert attached.agrees(), f"after {step!r}: {difference(attached)}"


@pytest.mark.slow
def test_emulator_rows_match_tmux_after_resize(attached: Attached) -> None:
    attached.program.send(b"seq 1 100\n")
    assert attached.agrees()
    for rows, columns in ((20, 60), (30, 140)):
        attached.program.resize(rows, columns)
        attached.emulator.resize(rows, columns)
        attached.program.send(b"echo resized\n")
        deadline = time.monotonic() + PATIENCE
        while attached.emulator.text()[: rows - 1] != attached.expected()[: rows - 1]:
            attached.pump(0.1)
            assert time.monotonic() < deadline, difference(attached)


def difference(attached: Attached) -> list[tuple[str, str]]:
    pairs = zip(attached.expected(), attached.emulator.text(), strict=False)
    return [pair for pair in pairs if pair[0] != pair[1]][:3]


@given(st.binary(max_size=400))
def test_emulator_accepts_any_bytes(content: bytes) -> None:
    emulator = Emulator(5, 20)
    changed = emulator.feed(content)
    assert changed <= set(range(5))
    assert (emulator.rows, emulator.columns) == (5, 20)


@given(st.lists(st.sampled_from("0123456789;?>=!$ \x1b[]()#%ABCDEFGHJKLMPSTXZabcdfghlmnrstu\x07\x9b"), max_size=60))
def test_emulator_accepts_any_escape_sequence(characters: list[str]) -> None:
    emulator = Emulator(5, 20)
    emulator.feed(b"\x1b[" + "".join(characters).encode())
    emulator.feed(b"\x1bcok")
    assert len(emulator.text()) == 5


@pytest.mark.parametrize("final", [b"S", b"T", b"b", b"L", b"M", b"@", b"P", b"X", b"A", b"B", b"C", b"D", b"d", b"G"])
def test_emulator_limits_huge_counts(final: bytes) -> None:
    emulator = Emulator(24, 80)
    started = time.process_time()
    emulator.feed(b"x\x1b[999999999" + final)
    # It takes a millisecond; one step for each of a thousand million would take minutes.
    assert time.process_time() - started < 30


def test_emulator_answers_device_queries() -> None:
    replies: list[bytes] = []
    Emulator(5, 20, replies.append).feed(b"\x1b[6n")
    assert replies == [b"\x1b[1;1R"]


def test_typing_after_program_exit_is_ignored(tmp_path: Path) -> None:
    program = TerminalProgram(["sh", "-c", "read x; echo got $x"], rows=5, columns=20, environment=dict(os.environ))
    program.send(b"hello\n")
    seen = b""
    deadline = time.monotonic() + PATIENCE
    while (content := program.read()) is not None:
        seen += content
        assert time.monotonic() < deadline
    assert b"got hello" in seen
    program.send(b"more\n")
    assert not program.has_pending
    program.close()
