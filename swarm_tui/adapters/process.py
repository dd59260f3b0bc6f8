"""The one runner of outside programs: own process group, no shell, bounded in time and in output."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from swarm_tui.adapters.packages import how_to_get
from swarm_tui.errors import AdapterError, ProgramMissing, ProgramTimeout

OUTPUT_LIMIT: Final = 16 * 1024 * 1024
TERM_GRACE: Final = 2.0
ORPHAN_GRACE: Final = 0.3
# A grandchild that keeps our pipe open must not keep us from an answer that its parent has already given.
PIPE_GRACE: Final = 1.0

_CHUNK: Final = 65_536

_DROPPED_NAMES: Final = frozenset(
    {
        # Another tmux server: mngr would look for its agents there and find them all stopped.
        "TMUX",
        "TMUX_PANE",
        # Set while a git hook runs: git would work on that repository whatever folder it is given.
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    }
)
_SECRET_WORDS: Final = frozenset({"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "APIKEY"})
_SECRET_ENDINGS: Final = ("API_KEY", "ACCESS_KEY", "SECRET_KEY", "PRIVATE_KEY", "ACCESS_KEY_ID")


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program that ended by itself has left: its code, its output, and how long it took."""

    arguments: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    is_truncated: bool

    @property
    def text(self) -> str:
        """Return the decoded standard output; what is no UTF-8 is replaced."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """Return the decoded standard error; what is no UTF-8 is replaced."""
        return self.stderr.decode("utf-8", "replace")


def is_secret_name(name: str) -> bool:
    """Return whether a variable of that name is likely to hold a secret."""
    words = name.upper().split("_")
    return bool(_SECRET_WORDS.intersection(words)) or name.upper().endswith(_SECRET_ENDINGS)


def scrubbed_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our environment without other tmux servers, pytest's marks and secrets, and with `extra`.

    mngr's tmux server keeps the environment of the first program that starts it, for every later agent:
    a token reaches it only when the caller names it in `extra`.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _DROPPED_NAMES and not name.startswith("PYTEST_") and not is_secret_name(name)
    }
    return kept | dict(extra or {})


async def run_process(
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float = 60.0,
    output_limit: int = OUTPUT_LIMIT,
) -> Finished:
    """Run a program to its end; when it overstays or we are cancelled, its whole process group is ended.

    Each of the two outputs is kept up to `output_limit` bytes; the rest is read and dropped.
    """
    words = tuple(arguments)
    started = time.monotonic()
    process = _RunningProcess(_start(words, cwd, environment, stdin is not None), stdin, output_limit)
    try:
        async with asyncio.timeout(timeout):
            await process.exited.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PIPE_GRACE):
                await process.drained.wait()
    except TimeoutError:
        await _end_group(process)
        raise ProgramTimeout(
            f"`{_shown(words)}` did not end within {timeout:g} s and was stopped",
            "the machine may be overloaded; try again, or run the command by hand to see what it waits for",
        ) from None
    except asyncio.CancelledError:
        await _end_group(process)
        raise
    finally:
        process.close()
    return Finished(
        arguments=words,
        code=process.popen.wait(),
        stdout=bytes(process.stdout),
        stderr=bytes(process.stderr),
        seconds=time.monotonic() - started,
        is_truncated=process.is_truncated,
    )


def start_detached(arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], log: Path) -> int:
    """Start a program in a session of its own that outlives us, its output appended to `log`; give its process id."""
    words = tuple(arguments)
    try:
        output = log.open("ab")
    except OSError as error:
        raise AdapterError(f"{log} cannot be written", error.strerror or str(error)) from error
    with output, _spawn_errors(words, cwd):
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    # While we live it is our child: without a waiter it would stay a zombie and look alive.
    threading.Thread(target=process.wait, name=f"reap-{process.pid}", daemon=True).start()
    return process.pid


class _RunningProcess:
    """A program and its pipes on the event loop.

    asyncio's own transports are not used: a loop that closes while one is being made waits for it for ever.
    """

    def __init__(self, popen: subprocess.Popen[bytes], stdin: bytes | None, output_limit: int) -> None:
        self.popen = popen
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self.stdout, self.stderr = bytearray(), bytearray()
        self.is_truncated = False
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
        threading.Thread(target=self._wait, name=f"wait-{popen.pid}", daemon=True).start()

    def close(self) -> None:
        """Leave the pipes, whoever else may still hold them."""
        for pipe in list(self._open):
            self._leave(pipe)

    def _watch(self, pipe: IO[bytes]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._open.add(pipe)

    def _leave(self, pipe: IO[bytes]) -> None:
        self._open.discard(pipe)
        self._loop.remove_reader(pipe)
        self._loop.remove_writer(pipe)
        pipe.close()
        if self._open <= {self.popen.stdin}:
            self.drained.set()

    def _read(self, pipe: IO[bytes], output: bytearray) -> None:
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._leave(pipe)
        kept = data[: self._output_limit - len(output)]
        output += kept
        self.is_truncated = self.is_truncated or len(kept) < len(data)

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            self._input = self._input[os.write(pipe.fileno(), self._input[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            # It has stopped reading: what it has not read it did not want.
            self._input = self._input[:0]
        if not self._input:
            self._leave(pipe)

    def _wait(self) -> None:
        self.popen.wait()
        with contextlib.suppress(RuntimeError):
            # The loop may have been closed without us.
            self._loop.call_soon_threadsafe(self.exited.set)


def _start(
    words: tuple[str, ...], cwd: Path | None, environment: Mapping[str, str] | None, has_stdin: bool
) -> subprocess.Popen[bytes]:
    with _spawn_errors(words, cwd):
        return subprocess.Popen(
            words,
            cwd=cwd,
            env=dict(environment) if environment is not None else scrubbed_environment(),
            stdin=subprocess.PIPE if has_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )


@contextlib.contextmanager
def _spawn_errors(words: tuple[str, ...], cwd: Path | None) -> Iterator[None]:
    """Turn what the system says about a program that cannot be started into words."""
    program = words[0]
    try:
        yield
    except ValueError as error:
        raise AdapterError(f"{program!r} cannot be started: {error}", "an argument holds a NUL byte") from error
    except OSError as error:
        if cwd is not None and not cwd.is_dir():
            raise AdapterError(
                f"{program!r} cannot be started in {cwd}", "that folder does not exist any more"
            ) from error
        match error.errno:
            case errno.ENOENT | errno.ENOTDIR:
                raise ProgramMissing(f"{program} is not installed", how_to_get(program)) from error
            case errno.EACCES | errno.ENOEXEC:
                raise ProgramMissing(f"{program} is there but cannot be run", how_to_get(program)) from error
            case _:
                raise AdapterError(f"{program!r} cannot be started", error.strerror or str(error)) from error


async def _end_group(process: _RunningProcess) -> None:
    """End a program and all that it has started: TERM, and KILL for what is left after a grace."""
    group = process.popen.pid
    _signal_group(group, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(TERM_GRACE):
            await process.exited.wait()
    # The others are not ours to wait for, and in a container their zombies may never go: they get a moment.
    deadline = time.monotonic() + ORPHAN_GRACE
    while _signal_group(group, 0) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    _signal_group(group, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(TERM_GRACE):
            await process.exited.wait()


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group (0 only asks); tell whether the group is there."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # macOS answers so for a group of zombies.
        return False
    return True


def _shown(words: tuple[str, ...]) -> str:
    """Return the start of a command line for a message; the rest may be a whole prompt."""
    return " ".join([os.path.basename(words[0]), *words[1:3]])[:80]
