"""A program that runs beside us and carries lines both ways, such as the ssh that keeps a host's connection."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.process_group import end_group, start_group

LINE_LIMIT: Final = 1 << 25
_CHUNK: Final = 1 << 18
_ERRORS_KEPT: Final = 4_000
_LAST_WORDS: Final = 1.0


class LineProcess:
    """A program that runs beside us, with lines on its input and its output; it ends when its input is closed."""

    def __init__(self, words: Sequence[str], *, cwd: Path | None = None) -> None:
        self._process = start_group(words, environment=scrubbed_environment(), cwd=cwd, stdin=subprocess.PIPE)
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._read = bytearray()
        self._lines: list[bytes] = []
        self._errors = bytearray()
        self._changed = asyncio.Event()
        self._has_said_all = asyncio.Event()
        self._is_over = False
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None, "all three are pipes"
        assert stdout is not None, "all three are pipes"
        assert stderr is not None, "all three are pipes"
        self._stdin = stdin
        self._readers: list[IO[bytes]] = [stdout, stderr]
        for pipe in (stdin, stdout, stderr):
            os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(stdout, self._take_lines, stdout)
        self._loop.add_reader(stderr, self._take_errors, stderr)

    def send(self, line: bytes) -> None:
        """Send a line as soon as the program reads it; one that has ended gets nothing."""
        if self._is_over:
            return
        self._unsent += line + b"\n"
        self._flush()

    async def lines(self) -> list[bytes]:
        """Return the lines that have come since the last call, at least one; none when the program has ended."""
        while not self._lines and not self._is_over:
            self._changed.clear()
            await self._changed.wait()
        lines, self._lines = self._lines, []
        return lines

    async def last_errors(self) -> str:
        """Return the end of what it wrote as errors; what it writes last may come after the end of its lines."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._has_said_all.wait()
        return self._errors.decode("utf-8", "replace")

    def close(self) -> None:
        """End the program and all that it has started, without waiting for it."""
        self._is_over = True
        for pipe in self._readers:
            self._loop.remove_reader(pipe)
        self._changed.set()
        self._loop.remove_writer(self._stdin)
        for pipe in (self._stdin, *self._readers):
            try:
                pipe.close()
            except OSError:
                # What was not sent yet cannot be flushed any more.
                continue
        threading.Thread(target=end_group, args=(self._process,), daemon=True).start()

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._stdin.fileno(), self._unsent[:_CHUNK])]
        except BlockingIOError:
            self._loop.add_writer(self._stdin, self._flush)
            return
        except OSError:
            self._unsent.clear()
        self._loop.remove_writer(self._stdin)

    def _take_lines(self, pipe: IO[bytes]) -> None:
        block = _read_block(pipe)
        if block is None:
            return
        if not block or len(self._read) > LINE_LIMIT:
            self._is_over = True
            self._loop.remove_reader(pipe)
            self._changed.set()
            return
        end = block.rfind(b"\n") + 1
        if end:
            self._lines += (bytes(self._read) + block[:end]).split(b"\n")[:-1]
            self._read = bytearray(block[end:])
            self._changed.set()
        else:
            self._read += block

    def _take_errors(self, pipe: IO[bytes]) -> None:
        block = _read_block(pipe)
        if block is None:
            return
        if not block:
            self._loop.remove_reader(pipe)
            self._has_said_all.set()
        self._errors = (self._errors + block)[-_ERRORS_KEPT:]


def _read_block(pipe: IO[bytes]) -> bytes | None:
    """Return the next bytes of a pipe: nothing at its end, and None where there are none yet."""
    try:
        return os.read(pipe.fileno(), _CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
