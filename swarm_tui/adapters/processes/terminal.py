"""Starts programs in a terminal of their own by pexpect: for panes inside the room, and for recordings."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.adapters.processes.group import how_to_get, signal_group
from swarm_tui.errors import AdapterError, ProgramMissing

if TYPE_CHECKING:
    import pexpect

READ_SIZE = 1 << 13
"""Few enough bytes at a time for keys to be sent while a flood of output is read."""


def spawn_on_terminal(
    words: Sequence[str], *, rows: int, columns: int, environment: Mapping[str, str], cwd: Path | None = None
) -> pexpect.spawn[bytes]:
    """Start a program on a new terminal, as the leader of a new session."""
    import pexpect

    try:
        return pexpect.spawn(
            words[0],
            list(words[1:]),
            dimensions=(rows, columns),
            env=dict(environment),
            cwd=str(cwd) if cwd is not None else None,
            timeout=None,
            encoding=None,
        )
    except pexpect.ExceptionPexpect as error:
        raise ProgramMissing(f"{words[0]} is not installed", how_to_get(words[0])) from error
    except OSError as error:
        raise AdapterError(f"no terminal could be opened: {error.strerror or error}") from error


class TerminalProgram:
    """A program on a terminal of its own. No method blocks."""

    def __init__(
        self, words: Sequence[str], *, rows: int, columns: int, environment: Mapping[str, str], cwd: Path | None = None
    ) -> None:
        self._child = spawn_on_terminal(words, rows=rows, columns=columns, environment=environment, cwd=cwd)
        self._pending = bytearray()
        os.set_blocking(self.descriptor, False)

    @property
    def descriptor(self) -> int:
        return int(self._child.child_fd)

    def read(self) -> bytes | None:
        """Return some output, b"" when there is none now, None when the program has ended."""
        # pexpect's own `read_nonblocking` loses what a program writes right before it ends.
        try:
            return os.read(self.descriptor, READ_SIZE) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def send(self, content: bytes) -> None:
        """Type something; what the terminal does not accept yet is sent with the next call."""
        # pexpect's own `send` waits until the terminal has accepted everything.
        self._pending += content
        try:
            while self._pending:
                written = os.write(self.descriptor, self._pending)
                del self._pending[:written]
        except BlockingIOError:
            return
        except OSError:
            self._pending.clear()

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    def resize(self, rows: int, columns: int) -> None:
        with contextlib.suppress(OSError):
            self._child.setwinsize(rows, columns)

    def close(self) -> None:
        """Close the terminal and end the program, with what it has started in its group."""
        is_alive = self._child.isalive()
        with contextlib.suppress(Exception):
            self._child.close(force=True)
        if is_alive and self._child.pid is not None:
            signal_group(self._child.pid, signal.SIGKILL)
