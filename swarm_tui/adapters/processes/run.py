"""Run programs to their end, with limits; detach programs; wait for work in threads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Final, NoReturn, TypeVar

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.group import communicate, end_group, signal_group, start_group
from swarm_tui.errors import AdapterError, LimitExceeded, ProgramTimeout
from swarm_tui.files import appending_descriptor

_PROCESSES: Final = Path("/proc")
_LOOK_SECONDS: Final = 0.05
_COUNT_SECONDS: Final = 1.0
_KILL_SECONDS: Final = 0.01
_ROUNDS: Final = 500


class RunWatch:
    """Counts the processes of a program that leads a session, and kills them all if there are too many.

    A limit of the kernel would count all programs of the user, and would not exist for root. Without /proc, nothing is
    counted. A process that leaves both the session and its parents between two counts is missed.
    """

    def __init__(self, popen: subprocess.Popen[bytes], limit: int) -> None:
        self.is_over = False
        self._popen = popen
        self._limit = limit
        self._known: Mapping[int, str] = {}
        """The processes of the last count, each with its start time, because ids are reused."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"watch-{popen.pid}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Kill what the program has left running."""
        self._ended.set()
        self._thread.join()
        self._kill(own_processes(self._popen.pid, self._known))

    def _watch(self) -> None:
        counted_at, total = 0.0, 0
        while not self._ended.wait(_LOOK_SECONDS):
            # Reading one number is much cheaper than reading a file of every process.
            now, grown = time.monotonic(), _total() - total
            if now - counted_at < _COUNT_SECONDS and grown * 4 < self._limit:
                continue
            counted_at, total = now, _total()
            self._known = own_processes(self._popen.pid, self._known)
            if len(self._known) > self._limit:
                self.is_over = True
                self._kill(self._known)
                return

    def _kill(self, found: Mapping[int, str]) -> None:
        """Stop all processes before killing them: children of a killed process get another parent and are lost."""
        for _ in range(_ROUNDS):
            if not found:
                return
            self._signal(found, signal.SIGSTOP)
            before, found = found, own_processes(self._popen.pid, found)
            if found.keys() <= before.keys():
                break
        for _ in range(_ROUNDS):
            if not found:
                return
            self._signal(found, signal.SIGKILL)
            time.sleep(_KILL_SECONDS)
            found = own_processes(self._popen.pid, found)

    def _signal(self, found: Mapping[int, str], number: int) -> None:
        signal_group(self._popen.pid, number)
        for process in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)


def own_processes(leader: int, known: Mapping[int, str]) -> dict[int, str]:
    """Return the running processes of a leader's session, and descendants of it and of known processes."""
    parents: dict[int, list[int]] = defaultdict(list)
    starts: dict[int, str] = {}
    found: dict[int, str] = {}
    for name in os.listdir(_PROCESSES) if _PROCESSES.is_dir() else ():
        if not name.isdigit():
            continue
        # A process can exit now.
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                words = file.read(4096).rpartition(b")")[2].split()
            state, parent, session, started = words[0], int(words[1]), int(words[3]), words[19].decode()
            if state in b"ZX":
                continue
            process = int(name)
            parents[parent].append(process)
            starts[process] = started
            if session == leader or known.get(process) == started:
                found[process] = started
    waiting = [*found, leader]
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            if child not in found:
                found[child] = starts[child]
                waiting.append(child)
    return found


def _total() -> int:
    """Return the number of processes and threads on this machine."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read(100).split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0


Made = TypeVar("Made")


async def finish_in_thread(work: Callable[[], Made]) -> Made:
    """Run a function in a thread. If cancelled, wait for its end first."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


OUTPUT_LIMIT: Final = 16 * 1024 * 1024
# A grandchild can keep our pipe open after its parent has answered.
PIPE_GRACE: Final = 1.0

_CHUNK: Final = 65_536


class InheritedChannel:
    """One end of a socket pair, read while a program with the other end runs. The program's children do not inherit it.

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


@dataclass(frozen=True, slots=True)
class Finished:
    """The exit code and the output of a program that has exited."""

    arguments: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    is_truncated: bool

    @property
    def text(self) -> str:
        """Return standard output as text, with invalid UTF-8 replaced."""
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
    channel: InheritedChannel | None = None,
) -> Finished:
    """Run a program to its end. After the timeout, or if cancelled, stop its whole process group.

    Keep up to `output_limit` bytes of each output, and drop the rest. With a `process_limit`, raise LimitExceeded if
    there are more processes, and stop everything that the program has started. The program inherits `channel`, which is
    completely read when this function returns or raises.
    """
    started = time.monotonic()
    popen = start_group(
        arguments,
        cwd=cwd,
        environment=scrubbed_environment() if environment is None else environment,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        inherited=() if channel is None else (channel.descriptor,),
    )
    process = _RunningProcess(popen, stdin, output_limit)
    if channel is not None:
        channel.begin()
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
        if channel is not None:
            channel.close()
        if watch is not None:
            await finish_in_thread(watch.end)
    if watch is not None and watch.is_over:
        raise LimitExceeded(
            f"stopped because of more than {process_limit} processes", "raise the limit with --process-limit"
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
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> Finished:
    """Run a program to its end like `run_process`, without an event loop."""
    started = time.monotonic()
    environment = scrubbed_environment() if environment is None else environment
    process = start_group(arguments, cwd=cwd, environment=environment)
    try:
        stdout, stderr = communicate(process, None, timeout)
    except subprocess.TimeoutExpired:
        raise _timeout_error(arguments, timeout) from None
    seconds = time.monotonic() - started
    return Finished(tuple(arguments), process.returncode, stdout, stderr, seconds, is_truncated=False)


def start_detached(arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], log: Path) -> int:
    """Start a program that outlives us, and append its output to `log`; return its process id."""
    try:
        output = os.fdopen(appending_descriptor(log), "r+b", buffering=0)
    except OSError as error:
        raise AdapterError(f"cannot write {log}: {error.strerror or error}") from error
    with output:
        process = start_group(arguments, cwd=cwd, environment=environment, stdout=output, stderr=output)
    # Wait for the child. Otherwise it becomes a zombie that looks alive.
    threading.Thread(target=process.wait, name=f"reap-{process.pid}", daemon=True).start()
    return process.pid


def fork_detached(run: Callable[[], int], *, log: Path) -> int:
    """Run a function in a fork of this process, and append its output to `log`; return its process id.

    The fork does not import modules again. No other thread may be running, because the fork would not have it.
    """
    assert threading.active_count() == 1, "the fork would never release a lock of another thread"
    with os.fdopen(appending_descriptor(log), "r+b", buffering=0) as output:
        process_id = os.fork()
        if not process_id:
            _run_as_copy(run, output.fileno())
    threading.Thread(target=os.waitpid, args=(process_id, 0), name=f"reap-{process_id}", daemon=True).start()
    return process_id


def _run_as_copy(run: Callable[[], int], output: int) -> NoReturn:
    """Leave the terminal, run the function, and exit without the rest of the program."""
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
    """Return whether a process with this id is running for this user."""
    try:
        os.kill(process_id, 0)
    except OSError:
        return False
    return True


class _RunningProcess:
    """A program and its pipes on the event loop.

    Not with asyncio's transports: a loop that closes while one is being created waits forever.
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
        """Stop the program and its group. The thread continues if this wait is cancelled."""
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
            # The program has stopped reading before the end of its input.
            self._input = self._input[:0]
        if not self._input:
            self._close(pipe)

    def _in_thread(self, wait: Callable[[], object], done: asyncio.Event) -> None:
        def wait_and_report() -> None:
            wait()
            # The loop may be closed already.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(done.set)

        threading.Thread(target=wait_and_report, name=f"wait-{self._popen.pid}", daemon=True).start()


def _timeout_error(arguments: Sequence[str], timeout: float) -> ProgramTimeout:
    return ProgramTimeout(
        f"`{_shown(arguments)}` did not exit within {timeout:g} s and was stopped",
        "the machine may be overloaded; try again, or run the command by hand",
    )


def _shown(arguments: Sequence[str]) -> str:
    """Return the start of a command line for a message, because the rest may be a whole prompt."""
    return " ".join([os.path.basename(arguments[0]), *arguments[1:3]])[:80]
