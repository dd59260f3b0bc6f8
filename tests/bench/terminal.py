"""A terminal for benchmarks: runs a full-screen program on a pty and times what reaches the screen.

It answers what a modern terminal answers to the query for synchronised output (DECRQM 2026), so that a program
brackets its frames; a frame is on the screen when its closing mark has been read.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

FRAME_END: Final = b"\x1b[?2026l"
ANSWERS: Final = {
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[>c": b"\x1b[>41;354;0c",
    b"\x1b[>0q": b"\x1bP>|bench\x1b\\",
}


class BenchTerminal:
    """One program on a terminal of its own; ends with the `with` block."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        columns: int = 160,
        rows: int = 50,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._words = list(words)
        self._folder = folder
        self._size = struct.pack("HHHH", rows, columns, 0, 0)
        self._environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
        # The last of these would let every start compile again what it imports.
        for name in ("TMUX", "TMUX_PANE", "NO_COLOR", "COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE"):
            self._environment.pop(name, None)
        self.buffer = bytearray()
        self.received = 0
        self.is_ended = False

    def __enter__(self) -> Self:
        self.started_at = time.perf_counter()
        self.process, self._descriptor = pty.fork()
        if self.process == 0:
            with contextlib.suppress(OSError):
                # The child waits for its size: what it draws first is what a person would see first.
                fcntl.ioctl(0, termios.TIOCSWINSZ, self._size)
                if self._folder is not None:
                    os.chdir(self._folder)
                os.execvpe(self._words[0], self._words, self._environment)
            os._exit(127)
        os.set_blocking(self._descriptor, False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._descriptor)

    def send(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def read(self, seconds: float) -> bool:
        """Read once; True when something came."""
        readable, _, _ = select.select([self._descriptor], [], [], max(0.0, seconds))
        if not readable:
            return False
        try:
            block = os.read(self._descriptor, 1 << 18)
        except OSError:
            # Linux says so when the program has ended.
            self.is_ended = True
            return False
        self.take(block)
        for query, answer in ANSWERS.items():
            if query in block:
                os.write(self._descriptor, answer)
        return bool(block)

    def take(self, block: bytes) -> None:
        """Keep what was read."""
        self.received += len(block)
        self.buffer += block

    def seconds_until(self, text: bytes, *, within: float = 20.0, is_frame: bool = True) -> float:
        """Return the seconds until the text is on the screen, its frame closed; TimeoutError when it never is."""
        start = time.perf_counter()
        searched, found = 0, -1
        while True:
            if found < 0:
                found = self.buffer.find(text, max(0, searched - len(text)))
                searched = len(self.buffer)
            if found >= 0 and (not is_frame or self.buffer.find(FRAME_END, found) >= 0):
                return time.perf_counter() - start
            left = within - (time.perf_counter() - start)
            if left <= 0 or self.is_ended:
                raise TimeoutError(f"{text!r} was not drawn within {within} s")
            self.read(left)

    def read_for(self, seconds: float) -> None:
        """Read, and forget, what comes in this time."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)
            if len(self.buffer) > 1 << 20:
                del self.buffer[: -(1 << 16)]

    def forget(self) -> None:
        self.buffer.clear()

    def cpu_seconds(self) -> float:
        """Return the processor time that the program and its children, ended ones too, have taken so far."""
        return sum(sum(map(int, _stat(process)[11:15])) for process in self._family()) / os.sysconf("SC_CLK_TCK")

    def memory_megabytes(self) -> float:
        """Return the resident memory of the program and its children."""
        return sum(_resident_kilobytes(process) for process in self._family()) / 1024

    def _family(self) -> list[int]:
        family = [self.process]
        for process in family:
            with contextlib.suppress(OSError):
                for children in Path(f"/proc/{process}/task").glob("*/children"):
                    family += map(int, children.read_text().split())
        return family


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


def quantile(values: Sequence[float], part: float) -> float:
    """Return the value below which this part of all values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))]
