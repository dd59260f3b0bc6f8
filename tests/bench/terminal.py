"""A terminal for benchmarks: keeps what reaches the screen as bytes and times it; a frame counts when it is closed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.terminal import ProgramTerminal

FRAME_END: Final = b"\x1b[?2026l"


class BenchTerminal(ProgramTerminal):
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
        super().__init__(words, columns=columns, rows=rows, environment=environment, folder=folder)
        self.buffer = bytearray()
        self.received = 0

    def keep(self, block: bytes) -> None:
        """Keep what was read, and nothing else while something is timed."""
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
        while (left := end - time.perf_counter()) > 0 and not self.is_ended:
            self.read(left)
            if len(self.buffer) > 1 << 20:
                del self.buffer[: -(1 << 16)]

    def forget(self) -> None:
        self.buffer.clear()


def quantile(values: Sequence[float], part: float) -> float:
    """Return the value below which this part of all values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))]
