"""Notice when processes exit, and kill processes with a mark."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.run import run_process_blocking

_PROCESSES: Final = Path("/proc")
_VARIABLE: Final = re.compile(r" [A-Za-z_][A-Za-z0-9_]*=")
_POLL_SECONDS: Final = 0.01
_SETTLING_SECONDS: Final = 0.1
_ROUNDS: Final = 20


def marked_processes(name: str, value: str) -> dict[int, str]:
    """Return the ids and command lines of our running programs that were started with `name=value`."""
    if (_PROCESSES / "self/environ").exists():
        return marked_in_proc(f"{name}={value}".encode())
    return marked_in_ps(f"{name}={value}")


def end_marked_processes(name: str, value: str, grace: float = 1.0) -> tuple[str, ...]:
    """Stop all marked processes, with KILL after the grace period; return their command lines."""
    deadline = time.monotonic() + _SETTLING_SECONDS
    # Ignore a process that is about to exit.
    while (found := marked_processes(name, value)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    ended: dict[int, str] = {}
    signalled: set[int] = set()
    deadline = time.monotonic() + grace
    while found:
        ended |= found
        if time.monotonic() >= deadline:
            break
        # A process that exits can start another one before.
        for process in found.keys() - signalled:
            _signal(process, signal.SIGTERM)
        signalled |= found.keys()
        time.sleep(_POLL_SECONDS)
        found = marked_processes(name, value)
    for _ in range(_ROUNDS):
        if not found:
            break
        for process in found:
            _signal(process, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
        found = marked_processes(name, value)
        ended |= found
    return tuple(ended[process] for process in sorted(ended))


def marked_in_proc(mark: bytes) -> dict[int, str]:
    """Return the marked processes with Linux's /proc, in a few milliseconds."""
    found: dict[int, str] = {}
    for name in os.listdir(_PROCESSES):
        if not name.isdigit():
            continue
        # Processes of others are unreadable, and any process can exit now.
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/environ", "rb", buffering=0) as file:
                environment = file.read()
            if mark in environment and mark in environment.split(b"\0") and int(name) != os.getpid():
                words = Path(f"/proc/{name}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                found[int(name)] = b" ".join(words).decode("utf-8", "replace")
    return found


def marked_in_ps(mark: str) -> dict[int, str]:
    """Return the marked processes with `ps`, for systems without /proc."""
    listing = run_process_blocking(["ps", "axeww", "-o", "pid=,command="]).text
    found: dict[int, str] = {}
    for line in listing.splitlines():
        number, _, command = line.strip().partition(" ")
        if mark in command.split() and int(number) != os.getpid():
            found[int(number)] = _VARIABLE.split(command, maxsplit=1)[0]
    return found


def _signal(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)


SHARE_OF_DESCRIPTORS: Final = 4
"""One part in this number of our descriptors is used to follow processes."""


class ProcessEnds:
    """Follows processes, including those that are not our children, for one event loop."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self._tell = tell
        self._descriptors: dict[int, int] = {}
        """By process id."""

    def follow(self, process_ids: Iterable[int]) -> bool:
        """Follow these processes only; return whether all their exits will be reported."""
        wanted = set(process_ids)
        for process_id in self._descriptors.keys() - wanted:
            self._forget(process_id)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // SHARE_OF_DESCRIPTORS
        return len(wanted) <= most and all(self._open(one) for one in wanted - self._descriptors.keys())

    def close(self) -> None:
        for process_id in list(self._descriptors):
            self._forget(process_id)

    def _open(self, process_id: int) -> bool:
        if not hasattr(os, "pidfd_open"):
            return False
        try:
            descriptor = os.pidfd_open(process_id)
        except ProcessLookupError:
            # The process has exited already.
            asyncio.get_running_loop().call_soon(self._tell)
            return True
        except OSError:
            return False
        self._descriptors[process_id] = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._take_end, process_id)
        return True

    def _take_end(self, process_id: int) -> None:
        self._forget(process_id)
        self._tell()

    def _forget(self, process_id: int) -> None:
        descriptor = self._descriptors.pop(process_id)
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
