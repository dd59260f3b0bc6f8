"""Reads two pipes of one program in the order in which it wrote to them, where the system allows it.

On Linux each pipe holds one packet only and the kernel queues one event a write, so that reading one packet an event
gives the exact order of all writes to both. Elsewhere the order is that in which we come to read.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import selectors
import sys
from collections.abc import Iterator

READ_SIZE = 65_536
_ONE_PACKET = 4_096
_WIDE = 1_048_576


class OrderedPipes:
    """The read ends of some pipes, with other descriptors to wait for at the same time."""

    def __init__(self) -> None:
        self._is_exact = sys.platform == "linux"
        self._epoll = select.epoll() if self._is_exact else None
        self._selector = None if self._is_exact else selectors.DefaultSelector()
        self._open: set[int] = set()

    def add_pipe(self) -> tuple[int, int]:
        """Open a pipe to read from; return its read and its write end."""
        if self._epoll is None or sys.platform != "linux":
            read_end, write_end = os.pipe()
            self._watch(read_end, selectors.EVENT_READ)
        else:
            read_end, write_end = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
            fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, _ONE_PACKET)
            self._epoll.register(read_end, select.EPOLLIN | select.EPOLLET)
        os.set_blocking(read_end, False)
        self._open.add(read_end)
        return read_end, write_end

    def watch_readable(self, descriptor: int) -> None:
        """Let `read` return, too, when this descriptor can be read."""
        self._watch(descriptor, selectors.EVENT_READ)

    def watch_writable(self, descriptor: int) -> None:
        """Let `read` return, too, when this descriptor can be written."""
        self._watch(descriptor, selectors.EVENT_WRITE)

    def unwatch(self, descriptor: int) -> None:
        if self._epoll is not None:
            self._epoll.unregister(descriptor)
        elif self._selector is not None:
            self._selector.unregister(descriptor)

    @property
    def is_open(self) -> bool:
        """Return whether one of the pipes still has a writer."""
        return bool(self._open)

    def read(self, timeout: float) -> Iterator[tuple[int, bytes]]:
        """Wait for the next write and yield (descriptor, data), without data for a watched descriptor."""
        for descriptor, has_hung_up in self._ready(timeout):
            if descriptor not in self._open:
                yield descriptor, b""
                continue
            data = self._read_once(descriptor)
            if data:
                yield descriptor, data
            # After the last writer has left there is no further event: the rest and the end come at once.
            while has_hung_up and data:
                data = self._read_once(descriptor)
                if data:
                    yield descriptor, data

    def widen(self) -> None:
        """Give up the order for speed, for output that is thrown away or that comes after the command has ended."""
        if self._epoll is None or sys.platform != "linux":
            return
        for descriptor in self._open:
            # The system may allow less to a user who holds many pipes.
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _WIDE)
            self._epoll.modify(descriptor, select.EPOLLIN)

    def close(self) -> None:
        """Close the read ends; a program that still writes gets SIGPIPE."""
        for descriptor in tuple(self._open):
            self._close_pipe(descriptor)
        if self._epoll is not None:
            self._epoll.close()
        elif self._selector is not None:
            self._selector.close()

    def _watch(self, descriptor: int, events: int) -> None:
        if self._epoll is not None:
            self._epoll.register(descriptor, select.EPOLLIN if events == selectors.EVENT_READ else select.EPOLLOUT)
        elif self._selector is not None:
            self._selector.register(descriptor, events)

    def _ready(self, timeout: float) -> list[tuple[int, bool]]:
        if self._epoll is not None:
            return [(descriptor, bool(event & select.EPOLLHUP)) for descriptor, event in self._epoll.poll(timeout, 1)]
        assert self._selector is not None
        return [(key.fd, False) for key, _ in self._selector.select(timeout)]

    def _read_once(self, descriptor: int) -> bytes:
        try:
            data = os.read(descriptor, READ_SIZE)
        except BlockingIOError:
            return b""
        if not data:
            self._close_pipe(descriptor)
        return data

    def _close_pipe(self, descriptor: int) -> None:
        self.unwatch(descriptor)
        self._open.discard(descriptor)
        os.close(descriptor)
