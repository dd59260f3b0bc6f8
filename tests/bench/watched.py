"""Measures any full-screen program from outside, the same way for all: by what its terminal would show.

While a program is timed, its output is only kept, each piece with the moment it came at. Afterwards the pieces are
replayed on an emulated screen: a thing was shown with the piece after which it first stood there.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.room.emulator import Emulator
from tests.bench.terminal import BenchTerminal

ROWS: Final = 60
COLUMNS: Final = 200
PAINTED_ROWS: Final = 3
"""So many rows with something in them are a first frame."""
_ESCAPE: Final = re.compile(
    rb"\x1b\[[0-9;?<>=: ]*[@-~]|\x1b[()][A-Za-z0-9]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[\r\n\x0f]"
)


@dataclass(frozen=True)
class Program:
    """A program to be measured."""

    name: str
    words: Sequence[str]
    ready: str
    """A pattern of what is on its screen when it is of use."""
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    first_keys: Sequence[bytes] = ()
    """What brings it to where it is measured."""


@dataclass(frozen=True)
class Key:
    """A key that was pressed."""

    at: float
    piece: int
    """How many pieces of output came before it."""


class WatchedTerminal(BenchTerminal):
    """A terminal that keeps all output with its moments."""

    def __init__(self, program: Program) -> None:
        super().__init__(
            program.words, columns=COLUMNS, rows=ROWS, environment=program.environment, folder=program.folder
        )
        self.program = program
        self.pieces: list[tuple[float, bytes]] = []

    def keep(self, block: bytes) -> None:
        self.pieces.append((time.perf_counter(), block))
        self.received += len(block)

    def wait_for_output(self, pattern: str, *, within: float = 60.0, since: int = 0) -> None:
        """Wait until the output since a piece holds the pattern, whatever escape sequences are in between."""
        wanted, end = re.compile(pattern.encode()), time.perf_counter() + within
        while not wanted.search(_ESCAPE.sub(b"", b"".join(block for _, block in self.pieces[since:]))):
            left = end - time.perf_counter()
            if left <= 0 or self.is_ended:
                raise TimeoutError(f"{self.program.name} did not show {pattern!r} within {within:.0f} s")
            self.read(left)

    def settle(self, quiet: float = 0.1, within: float = 3.0) -> None:
        """Wait until nothing has come for a while."""
        end = time.perf_counter() + within
        while time.perf_counter() < end and not self.is_ended and self.read(quiet):
            pass

    def begin(self) -> None:
        """Wait until the program is of use, and bring it to where it is measured."""
        self.wait_for_output(self.program.ready)
        self.settle(0.3)
        for keys in self.program.first_keys:
            self.send(keys)
            self.settle(0.3)

    def press_timed(self, keys: bytes) -> Key:
        """Press a key at a moment that has nothing to do with the program's own rhythm, and wait for what it does."""
        self.read_for(random.uniform(0.03, 0.07))
        key = Key(time.perf_counter(), len(self.pieces))
        self.send(keys)
        self.settle()
        return key


class Replay:
    """What the terminal showed, piece by piece."""

    def __init__(self, terminal: WatchedTerminal) -> None:
        self._emulator = Emulator(ROWS, COLUMNS)
        self._pieces = terminal.pieces
        self._looks: dict[int, object] = {}
        self._next = 0

    @property
    def text(self) -> str:
        """What is on the screen now."""
        return "\n".join(self._emulator.text())

    @property
    def painted_rows(self) -> int:
        """How many rows have something in them now."""
        return sum(bool(row) for row in self._emulator.text())

    def to(self, piece: int) -> None:
        """Go on to a piece, whatever is shown until then."""
        while self._next < min(piece, len(self._pieces)):
            self.step()

    def step(self) -> tuple[float, bool] | None:
        """Show the next piece; return its moment and whether anything looks different; None after the last one."""
        if self._next >= len(self._pieces):
            return None
        at, block = self._pieces[self._next]
        self._next += 1
        is_changed = False
        for row in self._emulator.feed(block):
            look = self._emulator.row(row)
            is_changed |= look != self._looks.get(row)
            self._looks[row] = look
        return at, is_changed

    def moment_of_change(self, key: Key, until: int) -> float | None:
        """Return the moment at which a key's effect was first seen, before another piece; None when there was none."""
        self.to(key.piece)
        while self._next < until and (step := self.step()) is not None:
            if step[1]:
                return step[0]
        return None

    def moment_of(self, pattern: str) -> float | None:
        """Return the moment at which the pattern stood on the screen; None when it never did."""
        wanted = re.compile(pattern)
        while (step := self.step()) is not None:
            if step[1] and wanted.search(self.text):
                return step[0]
        return None


def start_times(terminal: WatchedTerminal) -> tuple[float, float]:
    """Return the seconds from a program's start to its first frame, and until it was of use."""
    replay, first = Replay(terminal), 0.0
    wanted = re.compile(terminal.program.ready)
    while (step := replay.step()) is not None:
        first = first or (step[0] if replay.painted_rows >= PAINTED_ROWS else 0.0)
        if wanted.search(replay.text):
            return (first or step[0]) - terminal.started_at, step[0] - terminal.started_at
    raise TimeoutError(f"{terminal.program.name} never showed {terminal.program.ready!r}")


def key_times(terminal: WatchedTerminal, keys: Sequence[Key]) -> list[float]:
    """Give, for each key that changed the screen, the seconds from the key to the first change."""
    replay, times = Replay(terminal), []
    ends = [key.piece for key in keys[1:]] + [len(terminal.pieces)]
    for key, end in zip(keys, ends, strict=True):
        moment = replay.moment_of_change(key, end)
        if moment is not None:
            times.append(moment - key.at)
    return times
