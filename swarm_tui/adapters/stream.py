"""A program whose output is taken while it runs, for as long as somebody wants it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from swarm_tui.adapters.packages import how_to_get
from swarm_tui.errors import AdapterError, ProgramMissing
from swarm_tui.model.text import plain

CHUNK: Final = 1 << 16
TERM_GRACE: Final = 2.0


async def stream_process(
    arguments: Sequence[str], *, environment: Mapping[str, str], take: Callable[[bytes], None]
) -> None:
    """Return every piece of standard output to `take` until the program ends; cancelled, end it and all its children.

    AdapterError when it ends by itself with a code other than 0.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise ProgramMissing(f"{arguments[0]} is not installed", how_to_get(arguments[0])) from error
    except OSError as error:
        raise AdapterError(f"{arguments[0]!r} cannot be started", error.strerror or str(error)) from error
    assert process.stdout is not None
    assert process.stderr is not None
    errors = asyncio.create_task(_last_words(process.stderr))
    try:
        while piece := await process.stdout.read(CHUNK):
            take(piece)
        code = await process.wait()
        if code:
            raise AdapterError(f"{os.path.basename(arguments[0])} {arguments[1]} ended: {plain(await errors, 300)}")
    finally:
        errors.cancel()
        await _end(process)


async def _last_words(stream: asyncio.StreamReader) -> str:
    """Read to the end, and return the last of it."""
    last = b""
    while piece := await stream.read(CHUNK):
        last = (last + piece)[-2000:]
    return last.decode("utf-8", "replace").strip().rpartition("\n")[2]


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a program and what it has started: TERM, and KILL after a grace."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TERM_GRACE):
                await process.wait()
