"""A git process that is kept: it answers one request after another, without the 2 ms that a new process costs."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable
from typing import IO, TypeVar

from swarm_tui.adapters.git.command import GitError
from swarm_tui.adapters.process_group import close_pipes, communicate, end_group
from swarm_tui.model.text import plain

Read = TypeVar("Read")


class KeptProcess:
    """One process that reads requests and writes answers; started at the first request, usable from any thread."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def request(self, request: bytes, read: Callable[[IO[bytes]], Read]) -> Read:
        """Write a request and return what `read` makes of the answer; `read` raises EOFError at an early end."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._end()
            process = self._process = self._process or self._start()
            assert process.stdin is not None, "the adapter starts every process with pipes"
            assert process.stdout is not None, "the adapter starts every process with pipes"
            try:
                process.stdin.write(request)
                process.stdin.flush()
                return read(process.stdout)
            except (BrokenPipeError, EOFError) as error:
                raise GitError("git ended in the middle of an answer", self._error_message(process)) from error
            except BaseException:
                # Half an answer is left in the pipe, which the next request must not read.
                self._end()
                raise

    def _error_message(self, process: subprocess.Popen[bytes]) -> str:
        self._process = None
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            _, message = communicate(process, None, 10)
            return plain(message.decode("utf-8", "replace"), 300) or "it gave no reason"
        return "it gave no reason"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            end_group(process)
            close_pipes(process)

    def close(self) -> None:
        """End the process; the next request starts a new one."""
        with self._lock:
            self._end()
