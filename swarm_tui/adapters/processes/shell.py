"""Run a shell line, and keep the order of its two outputs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import selectors
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.group import end_group, start_group
from swarm_tui.errors import AdapterError

READ_SIZE = 65_536
_ONE_PACKET = 4_096
_WIDE = 1_048_576


class OrderedPipes:
    """The read ends of pipes, together with other descriptors to wait for."""

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
        """Make `read` return when this descriptor is readable."""
        self._watch(descriptor, selectors.EVENT_READ)

    def watch_writable(self, descriptor: int) -> None:
        """Make `read` return when this descriptor is writable."""
        self._watch(descriptor, selectors.EVENT_WRITE)

    def unwatch(self, descriptor: int) -> None:
        if self._epoll is not None:
            self._epoll.unregister(descriptor)
        elif self._selector is not None:
            self._selector.unregister(descriptor)

    @property
    def is_open(self) -> bool:
        """Return whether any of the pipes still has a writer."""
        return bool(self._open)

    def read(self, timeout: float) -> Iterator[tuple[int, bytes]]:
        """Wait for the next write and yield (descriptor, data). Yield no data for a watched descriptor."""
        for descriptor, has_hung_up in self._ready(timeout):
            if descriptor not in self._open:
                yield descriptor, b""
                continue
            data = self._read_once(descriptor)
            if data:
                yield descriptor, data
            # There is no further event after the last writer has closed the pipe, so read the rest now.
            while has_hung_up and data:
                data = self._read_once(descriptor)
                if data:
                    yield descriptor, data

    def widen(self) -> None:
        """Give up the order for speed, for output that is dropped or that comes after the end of the command."""
        if self._epoll is None or sys.platform != "linux":
            return
        for descriptor in self._open:
            # The system may allow less to a user with many pipes.
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _WIDE)
            self._epoll.modify(descriptor, select.EPOLLIN)

    def close(self) -> None:
        """Close the read ends. A program that still writes gets SIGPIPE."""
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


TIMED_OUT_CODE: Final = 124
OUTPUT_LIMIT: Final = 8 * 1024 * 1024
# Children can still write after the shell has exited, but do not wait for a server that it left running.
BACKGROUND_GRACE: Final = 0.2
_SEGMENT_COST: Final = 200
_LINE_COST: Final = 40
_POLL_SECONDS: Final = 0.02


class OutputSource(StrEnum):
    """One of the two outputs of a program."""

    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes of one output, with no bytes of the other output in between."""

    source: OutputSource
    data: bytes


@dataclass(frozen=True, slots=True)
class ShellRun:
    """The exit code and the output of a shell line."""

    code: int
    segments: tuple[Segment, ...]
    seconds: float
    is_timed_out: bool
    is_truncated: bool
    background: BackgroundOutput | None


class SegmentCollector:
    """Keeps the first and the last part of an output, and counts the omitted bytes."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head: list[tuple[OutputSource, bytearray]] = []
        self._tail: deque[tuple[OutputSource, bytearray]] = deque()
        self._head_cost = 0
        self._tail_cost = 0
        self._left_out = dict.fromkeys(OutputSource, 0)

    @property
    def is_full(self) -> bool:
        """Return whether bytes were omitted."""
        return any(self._left_out.values())

    def add(self, source: OutputSource, data: bytes) -> None:
        """Append bytes. Drop bytes from the middle above the limit."""
        if self._head_cost < self._half:
            self._head_cost += _append(self._head, source, data)
            return
        self._tail_cost += _append(self._tail, source, data)
        while self._tail_cost > self._half and len(self._tail) > 1:
            old_source, old_data = self._tail.popleft()
            self._tail_cost -= _cost(old_data) + _SEGMENT_COST
            self._left_out[old_source] += len(old_data)

    def segments(self) -> tuple[Segment, ...]:
        """Return the kept parts, with a line in the middle that counts the omitted bytes."""
        gaps = [
            (source, bytearray(f"\n[... {count:,} bytes left out ...]\n".encode()))
            for source, count in self._left_out.items()
            if count
        ]
        return tuple(Segment(source, bytes(data)) for source, data in (*self._head, *gaps, *self._tail))


class BackgroundOutput:
    """Reads the output of programs that a command left running, so that they never block on a full pipe."""

    def __init__(self, pipes: OrderedPipes, sources: Mapping[int, OutputSource], limit: int) -> None:
        self._pipes = pipes
        self._sources = sources
        self._collector = SegmentCollector(limit)
        pipes.widen()
        self._thread = threading.Thread(target=self._collect, name="background-output", daemon=True)
        self._thread.start()

    def finish(self) -> tuple[Segment, ...]:
        """Return the output since the end of the command; nothing while one of the programs is running."""
        self._thread.join(timeout=1.0)
        return () if self._thread.is_alive() else self._collector.segments()

    def _collect(self) -> None:
        while self._pipes.is_open:
            for descriptor, data in self._pipes.read(timeout=60.0):
                self._collector.add(self._sources[descriptor], data)
            if self._collector.is_full:
                # Dropped output must not take processor time from the test.
                time.sleep(_POLL_SECONDS)
        self._pipes.close()


@cache
def shell_program() -> str:
    """Return the shell for command lines: bash, which tutorials expect, or sh."""
    return shutil.which("bash") or "/bin/sh"


def run_shell(
    line: str,
    *,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: bytes = b"",
    timeout: float = 30.0,
    output_limit: int = OUTPUT_LIMIT,
) -> ShellRun:
    """Run a shell line in a new session. After the timeout, or if we are interrupted, stop its process group."""
    started = time.monotonic()
    running = _RunningShell(line, cwd, environment, stdin, output_limit)
    try:
        running.read_until(started + timeout)
    except BaseException:
        # Ctrl+c during a test must stop its command.
        running.end()
        running.close()
        raise
    is_timed_out = not running.has_ended
    running.end()
    return ShellRun(
        code=TIMED_OUT_CODE if is_timed_out else _shell_code(running.process.returncode),
        segments=running.collector.segments(),
        seconds=time.monotonic() - started,
        is_timed_out=is_timed_out,
        is_truncated=running.collector.is_full,
        background=running.collect_background(output_limit),
    )


class _RunningShell:
    """A running shell with its pipes and its output so far."""

    def __init__(self, line: str, cwd: Path, environment: Mapping[str, str], stdin: bytes, output_limit: int) -> None:
        self.collector = SegmentCollector(output_limit)
        self._pipes = OrderedPipes()
        stdout, stdout_writer = self._pipes.add_pipe()
        stderr, stderr_writer = self._pipes.add_pipe()
        self._sources = {stdout: OutputSource.STDOUT, stderr: OutputSource.STDERR}
        self._unsent = memoryview(stdin)
        self._stdin_writer: int | None = None
        if stdin:
            stdin_reader, self._stdin_writer = os.pipe()
        else:
            stdin_reader = os.open(os.devnull, os.O_RDONLY)
        try:
            self.process = start_group(
                [shell_program(), "-c", line],
                cwd=cwd,
                environment=environment,
                stdin=stdin_reader,
                stdout=stdout_writer,
                stderr=stderr_writer,
            )
        except AdapterError:
            self._pipes.close()
            if self._stdin_writer is not None:
                os.close(self._stdin_writer)
            raise
        finally:
            for descriptor in (stdin_reader, stdout_writer, stderr_writer):
                os.close(descriptor)
        if self._stdin_writer is not None:
            os.set_blocking(self._stdin_writer, False)
            self._pipes.watch_writable(self._stdin_writer)
        self._exit_notice = os.pidfd_open(self.process.pid) if hasattr(os, "pidfd_open") else None
        if self._exit_notice is not None:
            self._pipes.watch_readable(self._exit_notice)

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def read_until(self, deadline: float) -> None:
        """Read the output until the shell has exited, and for a moment that of its children; or until the deadline."""
        while not self.has_ended:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._read(left if self._exit_notice is not None else min(left, _POLL_SECONDS))
        self._stop_watching_exit()
        deadline = time.monotonic() + BACKGROUND_GRACE
        while self._pipes.is_open and (left := deadline - time.monotonic()) > 0:
            self._read(left)

    def end(self) -> None:
        """Stop the shell's process group if the shell is running."""
        if not self.has_ended:
            # Keep reading the pipes, because a program may need that to exit.
            ending = threading.Thread(target=end_group, args=(self.process,), name="end-shell")
            ending.start()
            while ending.is_alive():
                self._read(_POLL_SECONDS)
            self.read_until(time.monotonic())
        self._stop_watching_exit()
        self._close_stdin()

    def collect_background(self, output_limit: int) -> BackgroundOutput | None:
        """Return a reader of the output of background programs; None if the pipes are closed."""
        if self._pipes.is_open:
            return BackgroundOutput(self._pipes, self._sources, output_limit)
        self.close()
        return None

    def close(self) -> None:
        self._pipes.close()

    def _read(self, timeout: float) -> None:
        was_full = self.collector.is_full
        for descriptor, data in self._pipes.read(timeout):
            if descriptor in self._sources:
                self.collector.add(self._sources[descriptor], data)
            elif descriptor == self._stdin_writer:
                self._send_stdin(descriptor)
        if self.collector.is_full and not was_full:
            self._pipes.widen()

    def _send_stdin(self, descriptor: int) -> None:
        try:
            self._unsent = self._unsent[os.write(descriptor, self._unsent[:65_536]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            # Some programs, such as `head`, do not read all of their input.
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin_writer is not None:
            self._pipes.unwatch(self._stdin_writer)
            os.close(self._stdin_writer)
            self._stdin_writer = None

    def _stop_watching_exit(self) -> None:
        if self._exit_notice is not None:
            self._pipes.unwatch(self._exit_notice)
            os.close(self._exit_notice)
            self._exit_notice = None


def _append(
    segments: list[tuple[OutputSource, bytearray]] | deque[tuple[OutputSource, bytearray]],
    source: OutputSource,
    data: bytes,
) -> int:
    """Append bytes, to the last segment if it has the same source; return their cost."""
    if segments and segments[-1][0] is source and len(segments[-1][1]) < 65_536:
        segments[-1][1].extend(data)
        return _cost(data)
    segments.append((source, bytearray(data)))
    return _cost(data) + _SEGMENT_COST


def _cost(data: bytes | bytearray) -> int:
    """Return an estimate of the memory for bytes. Short lines need more, because each becomes an object."""
    return len(data) + _LINE_COST * data.count(b"\n")


def _shell_code(code: int) -> int:
    """Return the exit code in the style of a shell: 128 plus the signal's number for a killed program."""
    return 128 - code if code < 0 else code
