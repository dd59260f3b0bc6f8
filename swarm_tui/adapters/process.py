"""Runs outside programs to their end: without a shell, in a process group of their own, bounded in time and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Final, NoReturn

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.process_group import communicate, end_group, start_group
from swarm_tui.adapters.run_watch import RunWatch
from swarm_tui.adapters.threads import finish_in_thread
from swarm_tui.errors import AdapterError, LimitExceeded, ProgramTimeout
from swarm_tui.regular_file import appending_descriptor

OUTPUT_LIMIT: Final = 16 * 1024 * 1024
# A grandchild that keeps our pipe open must not keep us from an answer that its parent has already given.
PIPE_GRACE: Final = 1.0

_CHUNK: Final = 65_536


@dataclass(frozen=True, slots=True)
class Finished:
    """The exit code and the output of a program that has ended by itself, and how long it took."""

    arguments: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    is_truncated: bool

    @property
    def text(self) -> str:
        """Return standard output, decoded; what is no UTF-8 is replaced."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        return self.stderr.decode("utf-8", "replace")


async def run_process(
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float = 60.0,
    output_limit: int = OUTPUT_LIMIT,
    process_limit: int | None = None,
) -> Finished:
    """Run a program to its end; when it overstays or we are cancelled, its whole process group is ended.

    Each of the two outputs is kept up to `output_limit` bytes; the rest is read and dropped. With a `process_limit`,
    more processes than that end it with LimitExceeded, and whatever it has started is ended with it.
    """
    started = time.monotonic()
    popen = start_group(
        arguments,
        cwd=cwd,
        environment=scrubbed_environment() if environment is None else environment,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
    )
    process = _RunningProcess(popen, stdin, output_limit)
    watch = RunWatch(popen, process_limit) if process_limit is not None else None
    try:
        async with asyncio.timeout(timeout):
            await process.exited.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PIPE_GRACE):
                await process.drained.wait()
    except TimeoutError:
        await process.end()
        raise _timeout_error(arguments, timeout) from None
    except BaseException:
        await process.end()
        raise
    finally:
        process.close()
        if watch is not None:
            await finish_in_thread(watch.end)
    if watch is not None and watch.is_over:
        raise LimitExceeded(
            f"it started more than {process_limit} processes and was ended", "--process-limit allows more"
        )
    return Finished(
        arguments=tuple(arguments),
        code=popen.wait(),
        stdout=bytes(process.stdout),
        stderr=bytes(process.stderr),
        seconds=time.monotonic() - started,
        is_truncated=process.is_truncated,
    )


def run_process_blocking(
    arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
) -> Finished:
    """Run a program to its end where no event loop runs, as `run_process` does."""
    started = time.monotonic()
    process = start_group(arguments, environment=scrubbed_environment() if environment is None else environment)
    try:
        stdout, stderr = communicate(process, None, timeout)
    except subprocess.TimeoutExpired:
        raise _timeout_error(arguments, timeout) from None
    seconds = time.monotonic() - started
    return Finished(tuple(arguments), process.returncode, stdout, stderr, seconds, is_truncated=False)


def start_detached(arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], log: Path) -> int:
    """Start a program that outlives us, with its output appended to `log`; return its process id."""
    try:
        output = os.fdopen(appending_descriptor(log), "r+b", buffering=0)
    except OSError as error:
        raise AdapterError(f"{log} cannot be written", error.strerror or str(error)) from error
    with output:
        process = start_group(arguments, cwd=cwd, environment=environment, stdout=output, stderr=output)
    # It is our child: without a waiter it would become a zombie, and seem to run.
    threading.Thread(target=process.wait, name=f"reap-{process.pid}", daemon=True).start()
    return process.pid


def fork_detached(run: Callable[[], int], *, log: Path) -> int:
    """Run a function in a copy of this process, with its output appended to `log`; return the copy's id.

    What is imported already is not imported again. No other thread may run here: the copy would not have it.
    """
    assert threading.active_count() == 1, "a lock of another thread would be held for ever in the copy"
    with os.fdopen(appending_descriptor(log), "r+b", buffering=0) as output:
        process_id = os.fork()
        if not process_id:
            _run_as_copy(run, output.fileno())
    threading.Thread(target=os.waitpid, args=(process_id, 0), name=f"reap-{process_id}", daemon=True).start()
    return process_id


def _run_as_copy(run: Callable[[], int], output: int) -> NoReturn:
    """Leave the terminal and what was set up for it, run the function, and end without the rest of the program."""
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def is_alive(process_id: int) -> bool:
    """Return whether a process of this user has that id."""
    try:
        os.kill(process_id, 0)
    except OSError:
        return False
    return True


class _RunningProcess:
    """A program and its pipes on the event loop.

    asyncio's own transports are not used: a loop that closes while one is being made waits for it for ever.
    """

    def __init__(self, popen: subprocess.Popen[bytes], stdin: bytes | None, output_limit: int) -> None:
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self.stdout, self.stderr = bytearray(), bytearray()
        self.is_truncated = False
        self._popen = popen
        self._output_limit = output_limit
        self._input = memoryview(stdin or b"")
        self._loop = asyncio.get_running_loop()
        self._open: set[IO[bytes]] = set()
        for pipe, output in ((popen.stdout, self.stdout), (popen.stderr, self.stderr)):
            assert pipe is not None, "both outputs are always pipes"
            self._watch(pipe)
            self._loop.add_reader(pipe, self._read, pipe, output)
        if popen.stdin is not None:
            self._watch(popen.stdin)
            self._loop.add_writer(popen.stdin, self._write, popen.stdin)
        self._in_thread(popen.wait, self.exited)

    async def end(self) -> None:
        """End the program and its group. The thread goes on when this wait is cancelled."""
        ended = asyncio.Event()
        self._in_thread(partial(end_group, self._popen), ended)
        await ended.wait()

    def close(self) -> None:
        """Close our ends of the pipes, even if other programs hold the other ends."""
        for pipe in list(self._open):
            self._close(pipe)

    def _watch(self, pipe: IO[bytes]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._open.add(pipe)

    def _close(self, pipe: IO[bytes]) -> None:
        self._open.discard(pipe)
        self._loop.remove_reader(pipe)
        self._loop.remove_writer(pipe)
        pipe.close()
        if self._open <= {self._popen.stdin}:
            self.drained.set()

    def _read(self, pipe: IO[bytes], output: bytearray) -> None:
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._close(pipe)
        kept = data[: self._output_limit - len(output)]
        output += kept
        self.is_truncated = self.is_truncated or len(kept) < len(data)

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            self._input = self._input[os.write(pipe.fileno(), self._input[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            # It has stopped reading before the end of its input.
            self._input = self._input[:0]
        if not self._input:
            self._close(pipe)

    def _in_thread(self, wait: Callable[[], object], done: asyncio.Event) -> None:
        def wait_and_report() -> None:
            wait()
            # The loop may have been closed without us.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(done.set)

        threading.Thread(target=wait_and_report, name=f"wait-{self._popen.pid}", daemon=True).start()


def _timeout_error(arguments: Sequence[str], timeout: float) -> ProgramTimeout:
    return ProgramTimeout(
        f"`{_shown(arguments)}` did not end within {timeout:g} s and was stopped",
        "the machine may be overloaded; try again, or run the command by hand to see what it waits for",
    )


def _shown(arguments: Sequence[str]) -> str:
    """Return the start of a command line for a message; the rest may be a whole prompt."""
    return " ".join([os.path.basename(arguments[0]), *arguments[1:3]])[:80]
