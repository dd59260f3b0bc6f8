"""The one connection to a host: asks it, follows what it says, and connects again by itself when it is lost."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.line_process import LineProcess
from swarm_tui.adapters.process import OUTPUT_LIMIT, Finished
from swarm_tui.adapters.ssh import connection_error, target_of
from swarm_tui.adapters.tmux import LIST_PANES
from swarm_tui.errors import AdapterError, ProgramMissing, ProgramTimeout, SwarmError
from swarm_tui.model.hosts import HostAccess
from swarm_tui.model.text import plain
from swarm_tui.places.host_mirror import HostMirror
from swarm_tui.places.mngr_agents import PS_COMMAND
from swarm_tui.places.place import PlaceUnreachable

# The first line of the input is the program: nothing is copied to the host, and nothing stays there.
_START: Final = (
    "exec python3 -u -c "
    "\"import base64,os;exec(base64.b64decode(os.fdopen(0,'rb',0,closefd=False).readline()).decode())\""
)
_PROGRAM: Final = base64.b64encode(Path(__file__).with_name("far_program.py").read_bytes())
FIRST_ANSWER: Final = 20.0
"""How long a host may take until it has answered at all."""
SILENCE: Final = 12.0
"""A host that has said nothing for so long is lost: it says something each second."""
_HELD_UP: Final = 1.0
"""When the end of a waiting is noticed so late, this program was busy with something else."""
ANSWER_TIMEOUT: Final = 60.0
_RETRY_FIRST: Final = 0.5
_RETRY_MOST: Final = 30.0
PROBE_WORDS: Final[dict[str, Any]] = {"panes": ["tmux", "-u", *LIST_PANES], "ps": list(PS_COMMAND)}

Starter = Callable[[HostAccess], LineProcess]


def start_ssh(access: HostAccess) -> LineProcess:
    return LineProcess([*target_of(access).words(), _START])


class SshLink:
    """One host. It is connected when it is first asked for something, on the event loop that asks."""

    def __init__(self, access: HostAccess, start: Starter = start_ssh) -> None:
        self.access = access
        self.mirror = HostMirror()
        self.is_there = False
        self.reason = ""
        """Why it is lost; empty while it is there, or is connected for the first time."""
        self.heard_at = 0.0
        """When it last said something, in seconds since 1970."""
        self.load, self.processors, self.home = 0.0, 0, ""
        self.greeting = ""
        """What its shell prints before any command: it is in the way of git, which reads what is printed."""
        self._start = start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process: LineProcess | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._known = asyncio.Event()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._is_watched = False

    async def ask(self, op: str, *, timeout: float = ANSWER_TIMEOUT, **fields: Any) -> dict[str, Any]:
        """Ask the host and return its answer; PlaceUnreachable at once when it is lost, or when it breaks off."""
        self.open()
        if not self.is_there and not self.reason:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_ANSWER):
                    await self._known.wait()
        if not self.is_there or self._process is None:
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
            # Only of these two is an error of the host's disk or programs expected.
            if op in ("run", "write") and isinstance(answer.get("errno"), int):
                raise OSError(answer["errno"], problem, plain(str(answer.get("path")), 300))
            raise self.unreachable(f"it could not {op}: {problem}")
        return answer

    async def run(
        self, words: Sequence[str], *, cwd: str | None = None, stdin: bytes | None = None, timeout: float = 60.0
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
                limit=OUTPUT_LIMIT,
            )
        except FileNotFoundError as error:
            if cwd is not None and error.filename == cwd:
                raise AdapterError(f"{words[0]} cannot be started on {self.access.name} in {cwd}") from error
            raise ProgramMissing(f"{words[0]} is not installed on {self.access.name}", str(error)) from error
        except OSError as error:
            raise AdapterError(f"{words[0]} cannot be run on {self.access.name}", error.strerror or "") from error
        if answer.get("overdue"):
            raise ProgramTimeout(f"{words[0]} did not end on {self.access.name} within {timeout:g} s")
        try:
            out, err = base64.b64decode(answer["out"]), base64.b64decode(answer["err"])
            return Finished(tuple(words), int(answer["code"]), out, err, time.monotonic() - began, bool(answer["cut"]))
        except (KeyError, ValueError, TypeError) as error:
            raise self.unreachable("it says what makes no sense") from error

    def open(self) -> None:
        """Begin to connect, unless that has begun; a link is of one event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is loop and self._keeper is not None and not self._keeper.done():
            return
        if self._process is not None and self._loop is not loop:
            self._process = None
        self._loop = loop
        self._known, self.is_there, self.reason = asyncio.Event(), False, ""
        self._keeper = loop.create_task(self._keep())

    def watch(self) -> None:
        """Have the host say what its agents do, and tell it what else is wanted."""
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

    def unreachable(self, reason: str) -> PlaceUnreachable:
        return PlaceUnreachable(f"{self.access.name} does not answer: {reason}")

    async def _keep(self) -> None:
        pause = _RETRY_FIRST
        while True:
            began = time.monotonic()
            try:
                await self._work_connected()
            except (SwarmError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                self.reason = str(error) or "it says what makes no sense"
            finally:
                self._break_off()
            self._known.set()
            if time.monotonic() - began > SILENCE:
                pause = _RETRY_FIRST
            # Many links to one gateway must not all come back in the same moment.
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
                    # Not the host was silent: nobody here listened, as while a person's terminal is connected.
                    continue
                raise PlaceUnreachable(f"it has said nothing for {SILENCE:g} s") from None
            if not lines:
                raise self._connection_error(await self._process.last_errors())
            for line in lines:
                self._take(line)

    def _connection_error(self, said: str) -> AdapterError:
        if "python3" in said and "not found" in said:
            return AdapterError(f"{self.access.name} has no python3", "install it there")
        if not said.strip():
            return AdapterError("the connection was closed")
        return connection_error(target_of(self.access), said)

    def _take(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
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
