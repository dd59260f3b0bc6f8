"""One connection to a host program: pipe here, ssh elsewhere."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.group import end_group, start_group
from swarm_tui.adapters.processes.run import OUTPUT_LIMIT, Finished
from swarm_tui.adapters.ssh import connection_error, target_of
from swarm_tui.adapters.tmux import LIST_PANES
from swarm_tui.errors import AdapterError, ProgramMissing, ProgramTimeout, SwarmError
from swarm_tui.hosts.mirror import HostMirror
from swarm_tui.hosts.processes import PS_COMMAND
from swarm_tui.hosts.protocol import HostUnfit, HostUnreachable
from swarm_tui.model.spec import HostSettings
from swarm_tui.model.text import parse_json, plain

LINE_LIMIT: Final = 1 << 25
_CHUNK: Final = 1 << 18
_ERRORS_KEPT: Final = 4_000
_LAST_WORDS: Final = 1.0


class LineProcess:
    """A running program with lines as input and output. It exits when its input is closed."""

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
        """Send a line when the program can read it. Do nothing if the program has exited."""
        if self._is_over:
            return
        self._unsent += line + b"\n"
        self._flush()

    async def lines(self) -> list[bytes]:
        """Return the lines since the last call, at least one; none if the program has exited."""
        while not self._lines and not self._is_over:
            self._changed.clear()
            await self._changed.wait()
        lines, self._lines = self._lines, []
        return lines

    async def last_errors(self) -> str:
        """Return the end of its error output, which may come after its last line."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._has_said_all.wait()
        return self._errors.decode("utf-8", "replace")

    def close(self) -> None:
        """Stop the program and everything that it has started, without waiting."""
        self._is_over = True
        for pipe in self._readers:
            self._loop.remove_reader(pipe)
        self._changed.set()
        self._loop.remove_writer(self._stdin)
        for pipe in (self._stdin, *self._readers):
            try:
                pipe.close()
            except OSError:
                # Unsent input cannot be flushed any more.
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
    """Return the next bytes of a pipe: b"" at its end, None if there are none yet."""
    try:
        return os.read(pipe.fileno(), _CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


# The first line of input is the program, so that no file is left on the host.
_START: Final = (
    "exec python3 -u -c "
    "\"import base64,os;exec(base64.b64decode(os.fdopen(0,'rb',0,closefd=False).readline()).decode())\""
)
_PROGRAM: Final = base64.b64encode(Path(__file__).with_name("program.py").read_bytes())
FIRST_ANSWER: Final = 20.0
"""Seconds until the first answer of a host."""
SILENCE: Final = 12.0
"""Seconds of silence after which a host is lost. It sends something each second."""
_HELD_UP: Final = 1.0
"""Seconds of delay that show that this process was busy."""
ANSWER_TIMEOUT: Final = 60.0
_RETRY_FIRST: Final = 0.5
_RETRY_MOST: Final = 30.0
PROBE_WORDS: Final[dict[str, Any]] = {"panes": ["tmux", "-u", *LIST_PANES], "ps": list(PS_COMMAND)}

Starter = Callable[[HostSettings], LineProcess]


def start_ssh(access: HostSettings) -> LineProcess:
    return LineProcess([*target_of(access).words(), _START])


class SshLink:
    """The connection to one host, opened by the first call, for one event loop."""

    def __init__(self, access: HostSettings, start: Starter = start_ssh) -> None:
        self.access = access
        self.mirror = HostMirror()
        self.is_there = False
        self.reason = ""
        """Why it is lost. Empty while it is connected, and during the first connection."""
        self.heard_at = 0.0
        """The time of its last message, in seconds since 1970."""
        self.load, self.processors, self.home = 0.0, 0, ""
        self.greeting = ""
        """The output of its shell before every command, which breaks git."""
        self._start = start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process: LineProcess | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._known = asyncio.Event()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._is_watched = False
        self._is_unfit = False

    async def ask(self, op: str, *, timeout: float = ANSWER_TIMEOUT, **fields: Any) -> dict[str, Any]:
        """Send a request and return the answer. Raise HostUnreachable if the host is lost or the connection breaks."""
        self.open()
        if not self.is_there and not self.reason:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_ANSWER):
                    await self._known.wait()
        if not self.is_there or self._process is None:
            if self._is_unfit:
                raise HostUnfit(self.reason)
            raise self.unreachable(self.reason or "it does not answer")
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send({"op": op, "id": number, **fields})
        try:
            async with asyncio.timeout(timeout):
                answer = await self._waiting[number]
        except TimeoutError:
            raise self.unreachable(f"no answer within {timeout:g} s") from None
        finally:
            self._waiting.pop(number, None)
        if "problem" in answer:
            problem = plain(str(answer["problem"]), 300)
            # Only these requests have expected errors of the host's disk or programs.
            if op in ("run", "write") and isinstance(answer.get("errno"), int):
                raise OSError(answer["errno"], problem, plain(str(answer.get("path")), 300))
            raise self.unreachable(f"cannot {op}: {problem}")
        return answer

    async def run(
        self,
        words: Sequence[str],
        *,
        cwd: str | None = None,
        stdin: bytes | None = None,
        timeout: float = 60.0,
        output_limit: int = OUTPUT_LIMIT,
    ) -> Finished:
        """Run a command on the host to its end."""
        began = time.monotonic()
        given = None if stdin is None else base64.b64encode(stdin).decode()
        try:
            answer = await self.ask(
                "run",
                timeout=timeout + FIRST_ANSWER,
                words=list(words),
                cwd=cwd,
                stdin=given,
                seconds=timeout,
                limit=output_limit,
            )
        except FileNotFoundError as error:
            if cwd is not None and error.filename == cwd:
                raise AdapterError(f"cannot start {words[0]} on {self.access.name} in {cwd}") from error
            raise ProgramMissing(f"{words[0]} is not installed on {self.access.name}: {error}") from error
        except OSError as error:
            raise AdapterError(f"cannot run {words[0]} on {self.access.name}: {error.strerror or ''}") from error
        if answer.get("overdue"):
            raise ProgramTimeout(f"{words[0]} did not exit on {self.access.name} within {timeout:g} s")
        try:
            out, err = base64.b64decode(answer["out"]), base64.b64decode(answer["err"])
            return Finished(tuple(words), int(answer["code"]), out, err, time.monotonic() - began, bool(answer["cut"]))
        except (KeyError, ValueError, TypeError) as error:
            raise self.unreachable("invalid answer") from error

    def open(self) -> None:
        """Start to connect, unless that was done already."""
        loop = asyncio.get_running_loop()
        if self._loop is loop and self._keeper is not None and not self._keeper.done():
            return
        if self._process is not None and self._loop is not loop:
            self._process = None
        self._loop = loop
        self._known, self.is_there, self.reason = asyncio.Event(), False, ""
        self._keeper = loop.create_task(self._keep())

    def watch(self) -> None:
        """Ask the host to report the states of agents, and what else the mirror needs."""
        self.open()
        if self.is_there:
            if not self._is_watched:
                self._is_watched = True
                self._send({"op": "watch", "agents": f"{self.access.host_dir}/agents", **PROBE_WORDS})
            for request in self.mirror.requests():
                self._send(request)

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None and self._loop is asyncio.get_running_loop():
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)

    def unreachable(self, reason: str) -> HostUnreachable:
        return HostUnreachable(f"{self.access.name} does not answer: {reason}")

    async def _keep(self) -> None:
        pause = _RETRY_FIRST
        while True:
            began = time.monotonic()
            try:
                await self._work_connected()
            except (SwarmError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                self.reason = str(error) or "invalid message"
            finally:
                self._break_off()
            self._known.set()
            if time.monotonic() - began > SILENCE:
                pause = _RETRY_FIRST
            # Many connections to one gateway must not all retry at the same moment.
            await asyncio.sleep(pause * random.uniform(0.7, 1.3))
            pause = min(pause * 2, _RETRY_MOST)

    async def _work_connected(self) -> None:
        self._process = self._start(self.access)
        self._process.send(_PROGRAM)
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + (SILENCE if self.is_there else FIRST_ANSWER)
            try:
                async with asyncio.timeout_at(due):
                    lines = await self._process.lines()
            except TimeoutError:
                if loop.time() > due + _HELD_UP:
                    # This process was busy, for example while the user's terminal was attached to an agent.
                    continue
                raise HostUnreachable(f"silent for {SILENCE:g} s") from None
            if not lines:
                raise self._connection_error(await self._process.last_errors())
            for line in lines:
                self._take(line)

    def _connection_error(self, said: str) -> AdapterError:
        self._is_unfit = "python3" in said and "not found" in said
        if self._is_unfit:
            return AdapterError(f"missing on {self.access.name}: python3", "install it there")
        if not said.strip():
            return AdapterError("the connection was closed")
        return connection_error(target_of(self.access), said)

    def _take(self, line: bytes) -> None:
        try:
            said = parse_json(line)
        except ValueError:
            if not self.is_there and not self.greeting:
                self.greeting = plain(line.decode("utf-8", "replace"), 80).strip()
            return
        if not isinstance(said, dict):
            return
        self.heard_at = time.time()
        if "id" in said:
            future = self._waiting.get(said["id"])
            if future is not None and not future.done():
                future.set_result(said)
        elif said.get("t") == "hello":
            self.home = str(said.get("home") or "")
            for request in self.mirror.begin_again():
                self._send(request)
            self.is_there, self.reason = True, ""
            self._known.set()
        elif said.get("t") == "beat":
            self.load, self.processors = float(said["load"]), int(said["processors"])
        else:
            self.mirror.take(said)

    def _send(self, request: dict[str, Any]) -> None:
        if self._process is not None:
            self._process.send(json.dumps(request).encode())

    def _break_off(self) -> None:
        self.is_there = self._is_watched = False
        self.mirror.probe = None
        if self._process is not None:
            self._process.close()
            self._process = None
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self.unreachable(self.reason or "the connection was closed"))
        self._waiting.clear()
