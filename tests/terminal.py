"""A person at a terminal: starts a full-screen program, presses keys, and reads the screen by its lists and rows.

    with ProgramTerminal(["swarm-tui", "fixes"]) as terminal:
        terminal.wait_for("10 fixes")
        terminal.press("Down", "y")
        terminal.wait_until(lambda screen: screen.list("Ranked").row("Mend part 1").has("keep"))
        assert terminal.screen.list("Ranked").row("Mend part 2").is_selected

The terminal answers the queries of a modern one (synchronised output, DECRQM 2026, among them), so that a program
brackets its frames as it would for a person.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pexpect
from rich.segment import Segment
from rich.style import Style

from swarm_tui.room.emulator import Emulator
from tests.waiting import PATIENCE

ANSWERS: Final = {
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[>c": b"\x1b[>41;354;0c",
    b"\x1b[>0q": b"\x1bP>|tests\x1b\\",
}
KEYS: Final = {
    "Enter": "\r",
    "Escape": "\x1b",
    "Tab": "\t",
    "Space": " ",
    "Backspace": "\x7f",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "Right": "\x1b[C",
    "Left": "\x1b[D",
    "Home": "\x1b[H",
    "End": "\x1b[F",
    "PageUp": "\x1b[5~",
    "PageDown": "\x1b[6~",
    **{f"C-{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}
_READ_SIZE: Final = 1 << 18
_FRAME_TOP: Final = re.compile(r"[╭┌][─ ]*(?P<title>[^─╮┐]*)")
_OWN_SCREEN: Final = b"\x1b[?1049"
_FRAME_SIDES: Final = "│┃"
# Variables that would tell a program of another terminal.
_OF_ANOTHER_TERMINAL: Final = ("TMUX", "TMUX_PANE", "NO_COLOR", "COLUMNS", "LINES")


@dataclass(frozen=True)
class ScreenRow:
    """One row of a list, without its frame."""

    text: str
    is_selected: bool
    """Whether its colours differ from those of most rows of its list."""

    def has(self, words: str) -> bool:
        return words in self.text


@dataclass(frozen=True)
class ScreenList:
    """The rows inside a frame with a title."""

    title: str
    rows: tuple[ScreenRow, ...]

    def row(self, words: str) -> ScreenRow:
        """Return the first row with these words."""
        found = next((row for row in self.rows if row.has(words)), None)
        assert found is not None, f"no row of {self.title!r} has {words!r}:\n" + "\n".join(
            row.text for row in self.rows
        )
        return found

    def has(self, words: str) -> bool:
        return any(row.has(words) for row in self.rows)

    @property
    def selected(self) -> ScreenRow | None:
        """The row under the cursor, the first of them when there are several."""
        return next((row for row in self.rows if row.is_selected), None)


class Screen:
    """What a terminal shows at one moment."""

    def __init__(self, rows: Sequence[Sequence[Segment]]) -> None:
        self._rows = [_cells(row) for row in rows]
        self.lines = ["".join(character for character, _ in row).rstrip() for row in self._rows]
        self.text = "\n".join(self.lines)

    def has(self, wanted: str | re.Pattern[str]) -> bool:
        """Return whether a text, or a match of a compiled expression, is on the screen."""
        return wanted in self.text if isinstance(wanted, str) else wanted.search(self.text) is not None

    def lists(self) -> tuple[str, ...]:
        """Return the titles of all frames."""
        return tuple(title for _, _, title in self._frames())

    def has_list(self, title: str) -> bool:
        return any(own.startswith(title) for own in self.lists())

    def list(self, title: str) -> ScreenList:
        """Return the frame with a title that begins with this text."""
        for top, left, own in self._frames():
            if own.startswith(title):
                return ScreenList(own, self._rows_below(top, left))
        raise AssertionError(f"no list {title!r}, only {self.lists()}:\n{self.text}")

    def _frames(self) -> Sequence[tuple[int, int, str]]:
        """Return row, column and title of every frame, from above."""
        return [
            (number, found.start(), found["title"].strip())
            for number, line in enumerate(self.lines)
            for found in _FRAME_TOP.finditer(line)
        ]

    def _rows_below(self, top: int, left: int) -> tuple[ScreenRow, ...]:
        inner = []
        for row in self._rows[top + 1 :]:
            if left >= len(row) or row[left][0] not in _FRAME_SIDES:
                break
            right = next((at for at in range(len(row) - 1, left, -1) if row[at][0] in _FRAME_SIDES), len(row))
            inner.append(row[left + 1 : right])
        colours = [_colours_of(cells) for cells in inner]
        usual = Counter(colours).most_common(1)[0][0] if colours else None
        return tuple(
            ScreenRow("".join(character for character, _ in cells).strip(), own != usual)
            for cells, own in zip(inner, colours, strict=True)
        )


class ProgramTerminal:
    """One program on a terminal of its own, which ends with the `with` block."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        columns: int = 100,
        rows: int = 30,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._words = list(words)
        self._folder = folder
        self._size = (rows, columns)
        self._environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
        for name in _OF_ANOTHER_TERMINAL:
            self._environment.pop(name, None)
        self.is_ended = False
        self.has_own_screen = False
        """Whether the program draws on a screen of its own, which leaves no trace when it is given back."""
        self._seen_last = b""
        self._emulator: Emulator | None = None

    def __enter__(self) -> Self:
        return self.open()

    def open(self) -> Self:
        """Start the program; without a `with` block `hang_up` must be called at the end."""
        self.started_at = time.perf_counter()
        self._child = pexpect.spawn(
            self._words[0],
            self._words[1:],
            dimensions=self._size,
            env=self._environment,
            cwd=None if self._folder is None else str(self._folder),
            timeout=None,
        )
        os.set_blocking(self._child.child_fd, False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hang_up()

    @property
    def process(self) -> int:
        """The process that was started."""
        assert self._child.pid is not None
        return self._child.pid

    def hang_up(self) -> None:
        """Close the terminal, as a window that is closed; a program that stays all the same is killed."""
        with contextlib.suppress(pexpect.ExceptionPexpect, OSError):
            self._child.close(force=True)
        self.is_ended = True

    def close_window(self) -> None:
        """Close the terminal only: the program gets SIGHUP."""
        os.close(self._child.child_fd)
        self._child.child_fd = -1
        self.is_ended = True

    def has_ended(self) -> bool:
        """Return whether the program itself has ended."""
        return not self._child.isalive()

    # What a person does

    def press(self, *keys: str) -> None:
        """Press keys, each read by the program at once: single characters, or names such as Enter, Escape, Up, C-c."""
        for key in keys:
            assert len(key) == 1 or key in KEYS, f"{key!r} is no key: type() types a text"
            self.send(KEYS.get(key, key).encode())

    def type(self, text: str) -> None:
        """Type a text as it is, so quickly that the program may read all of it at once."""
        self.send(text.encode())

    def send(self, keys: bytes) -> None:
        """Send bytes as they are."""
        os.write(self._child.child_fd, keys)

    def resize(self, columns: int, rows: int) -> None:
        self.update()
        self._size = (rows, columns)
        if self._emulator is not None:
            self._emulator.resize(rows, columns)
        self._child.setwinsize(rows, columns)

    # What a person sees

    @property
    def screen(self) -> Screen:
        """What the terminal shows now."""
        self.update()
        emulator = self._emulated()
        return Screen([emulator.row(number, has_cursor=False) for number in range(emulator.rows)])

    def wait_for(self, wanted: str | re.Pattern[str], seconds: float = PATIENCE) -> Screen:
        """Wait until a text, or a match of a compiled expression, is on the screen, and return the screen."""
        return self.wait_until(lambda screen: screen.has(wanted), repr(wanted), seconds)

    def wait_until_gone(self, unwanted: str | re.Pattern[str], seconds: float = PATIENCE) -> Screen:
        """Wait until a text is no longer on the screen, and return the screen."""
        return self.wait_until(lambda screen: not screen.has(unwanted), f"the end of {unwanted!r}", seconds)

    def wait_until(
        self, condition: Callable[[Screen], bool], what: str = "a screen", seconds: float = PATIENCE
    ) -> Screen:
        """Wait until the screen meets a condition, and return the screen."""
        deadline = time.monotonic() + seconds
        while not condition(screen := self.screen):
            left = deadline - time.monotonic()
            if left <= 0 or self.is_ended:
                why = "the program has ended" if self.is_ended else f"{seconds:g} s have passed"
                raise AssertionError(f"waited in vain for {what}: {why}\n{screen.text}")
            self.read(left)
        return screen

    def wait_for_end(self, seconds: float = PATIENCE) -> int:
        """Wait until the program has ended, and return its exit code; that of a killed one is 128 and its signal."""
        deadline = time.monotonic() + seconds
        while not self.is_ended:
            left = deadline - time.monotonic()
            assert left > 0, f"the program still runs after {seconds:g} s\n{self.screen.text}"
            self.read(left)
        self._child.wait()
        code, signal = self._child.exitstatus, self._child.signalstatus
        return code if code is not None else 128 + (signal or 0)

    # Output

    def read(self, seconds: float) -> bool:
        """Read once; True when something came."""
        if self.is_ended:
            return False
        readable, _, _ = select.select([self._child.child_fd], [], [], max(0.0, seconds))
        if not readable:
            return False
        try:
            block = os.read(self._child.child_fd, _READ_SIZE)
        except OSError:
            # Linux says so when the program has ended.
            self.is_ended = True
            return False
        self._notice_own_screen(block)
        self.keep(block)
        for query, answer in ANSWERS.items():
            if query in block:
                self.send(answer)
        return bool(block)

    def keep(self, block: bytes) -> None:
        """Put what was read on an emulated screen; a benchmark keeps the bytes instead."""
        self._emulated().feed(block)

    def _notice_own_screen(self, block: bytes) -> None:
        seen = self._seen_last + block
        begun, ended = seen.rfind(_OWN_SCREEN + b"h"), seen.rfind(_OWN_SCREEN + b"l")
        if begun != ended:
            self.has_own_screen = begun > ended
        self._seen_last = block[-len(_OWN_SCREEN) :]

    def update(self) -> None:
        """Read whatever has come."""
        while self.read(0):
            pass

    def _emulated(self) -> Emulator:
        if self._emulator is None:
            self._emulator = Emulator(*self._size)
        return self._emulator

    # What it costs

    def cpu_seconds(self) -> float:
        """Return the processor time that the program and its children, ended ones too, have taken so far."""
        return sum(sum(map(int, _stat(process)[11:15])) for process in self._family()) / os.sysconf("SC_CLK_TCK")

    def memory_megabytes(self) -> float:
        """Return the resident memory of the program and its children."""
        return sum(_resident_kilobytes(process) for process in self._family()) / 1024

    def process_of(self, words: str) -> int:
        """Return the process, of the program's own family, whose command line has these words."""
        for process in self._family():
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if words in line:
                    return process
        raise AssertionError(f"no process of {self._words} has {words!r} in its command line")

    def _family(self) -> list[int]:
        family = [self.process]
        for process in family:
            with contextlib.suppress(OSError):
                for children in Path(f"/proc/{process}/task").glob("*/children"):
                    family += map(int, children.read_text().split())
        return family


def _cells(row: Sequence[Segment]) -> list[tuple[str, Style | None]]:
    return [(character, segment.style) for segment in row for character in segment.text]


def _colours_of(cells: Sequence[tuple[str, Style | None]]) -> tuple[object, bool]:
    """Return the colours of most cells of a row: the background, and whether it is reversed."""
    found = Counter(
        (style.bgcolor if style else None, bool(style and style.reverse)) for _, style in cells
    ).most_common(1)
    return found[0][0] if found else (None, False)


def _stat(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return ["0"] * 15


def _resident_kilobytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)
