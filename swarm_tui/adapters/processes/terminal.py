"""Start programs in pseudo-terminals with pexpect, for panes of the room and for recordings."""

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
"""Few enough bytes that keys are sent during a flood of output."""


def spawn_on_terminal(
    words: Sequence[str], *, rows: int, columns: int, environment: Mapping[str, str], cwd: Path | None = None
) -> pexpect.spawn[bytes]:
    """Start a program in a new terminal, as the leader of a new session."""
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
        raise AdapterError(f"cannot open a terminal: {error.strerror or error}") from error


class TerminalProgram:
    """A program in a separate terminal. No method blocks."""

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
        """Return some output; b"" if there is none now, None if the program has exited."""
        # pexpect's `read_nonblocking` loses the last output of a program.
        try:
            return os.read(self.descriptor, READ_SIZE) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def send(self, content: bytes) -> None:
        """Send input. What the terminal does not accept now is sent by the next call."""
        # pexpect's `send` waits until the terminal accepts everything.
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
        """Close the terminal and stop the program with its process group."""
        is_alive = self._child.isalive()
        with contextlib.suppress(Exception):
            self._child.close(force=True)
        if is_alive and self._child.pid is not None:
            signal_group(self._child.pid, signal.SIGKILL)
