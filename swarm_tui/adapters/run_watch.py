"""Watches a program that may be hostile while it runs: it is ended when it has started too many processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from swarm_tui.adapters.process_group import signal_group

_PROCESSES: Final = Path("/proc")
_LOOK_SECONDS: Final = 0.05
_COUNT_SECONDS: Final = 1.0
_KILL_SECONDS: Final = 0.01
_ROUNDS: Final = 500


class RunWatch:
    """Counts the processes of a program that leads a session, and ends them all when they are too many.

    A limit of the kernel's would be one for all programs of the user, and none for root. Where there is no /proc,
    nothing is counted. A process that leaves both the session and its parents before it was seen is not known.
    """

    def __init__(self, popen: subprocess.Popen[bytes], limit: int) -> None:
        self.is_over = False
        self._popen = popen
        self._limit = limit
        self._known: Mapping[int, str] = {}
        """The processes that were seen last, each with the moment of its start: ids are given again."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"watch-{popen.pid}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End what the program has left running."""
        self._ended.set()
        self._thread.join()
        self._kill(own_processes(self._popen.pid, self._known))

    def _watch(self) -> None:
        counted_at, total = 0.0, 0
        while not self._ended.wait(_LOOK_SECONDS):
            # Reading one number costs nothing beside reading a file of every process.
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
        """Stop them all, then kill them: the children of what is killed get another parent, and are lost to sight."""
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
    """Return the running processes of a leader's session, those that descend from it or from known ones."""
    parents: dict[int, list[int]] = defaultdict(list)
    starts: dict[int, str] = {}
    found: dict[int, str] = {}
    for name in os.listdir(_PROCESSES) if _PROCESSES.is_dir() else ():
        if not name.isdigit():
            continue
        # It may end while we look.
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
    """Return how many processes and threads there are on this machine."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read(100).split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0
