"""A program in a terminal of its own, for panes inside the room: pexpect behind a small class."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from swarm_tui.adapters.packages import how_to_get
from swarm_tui.errors import AdapterError, ProgramMissing

READ_SIZE = 1 << 13
"""So much is taken at a time that a flood of output leaves room for keys in between."""


class TerminalProgram:
    """A running program and the master side of its terminal. Nothing here blocks."""

    def __init__(
        self, words: Sequence[str], *, rows: int, columns: int, environment: Mapping[str, str], cwd: Path | None = None
    ) -> None:
        import pexpect

        try:
            self._child = pexpect.spawn(
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
        # By default pexpect sleeps for 50 ms before it sends, which a person feels at every key.
        self._child.delaybeforesend = None
        self._pending = bytearray()
        os.set_blocking(self.descriptor, False)

    @property
    def descriptor(self) -> int:
        """The descriptor to watch for output."""
        return int(self._child.child_fd)

    def read(self) -> bytes | None:
        """Return some output, b"" when there is none now, None when the program has ended."""
        try:
            return os.read(self.descriptor, READ_SIZE) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def send(self, content: bytes) -> None:
        """Type something; what the terminal does not take yet goes with the next call."""
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
        """Whether something typed still waits to be taken."""
        return bool(self._pending)

    def resize(self, rows: int, columns: int) -> None:
        with contextlib.suppress(OSError):
            self._child.setwinsize(rows, columns)

    def close(self) -> None:
        """End the program: its terminal hangs up."""
        with contextlib.suppress(Exception):
            self._child.close(force=True)
