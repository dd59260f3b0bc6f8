"""A connection that a program inherits in addition to its standard streams. Its own children do not inherit it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

_CHUNK: Final = 65_536


class InheritedChannel:
    """One end of a socket pair, read while a program with the other end runs.

    Pass it to `run_process` once. `greeting` is the first input of the program.
    """

    def __init__(self, greeting: bytes = b"", limit: int = 64_000_000) -> None:
        self.received = bytearray()
        """The output of the program so far, up to the limit."""
        self.is_truncated = False
        self._limit = limit
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._ours.sendall(greeting)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def descriptor(self) -> int:
        """The number of the descriptor that the program inherits."""
        return self._theirs.fileno()

    def begin(self) -> None:
        """Start to read, after the program was started."""
        self._theirs.close()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._ours, self._read)

    def close(self) -> None:
        """Read the rest and close both ends, even if another process holds the other end."""
        if self._loop is not None:
            self._loop.remove_reader(self._ours)
            self._loop = None
            while not self.is_truncated and self._read():
                pass
        self._theirs.close()
        self._ours.close()

    def _read(self) -> bool:
        with contextlib.suppress(OSError):
            data = self._ours.recv(_CHUNK)
            kept = data[: self._limit - len(self.received)]
            self.received += kept
            self.is_truncated = self.is_truncated or len(kept) < len(data)
            if not data and self._loop is not None:
                self._loop.remove_reader(self._ours)
            return bool(data)
        return False
