"""Run a full-screen program of a test in a private tmux server: type keys, read the screen, record the terminal.

Tests compare screens, so the emulator is tmux, as in agents' terminals, and not pexpect.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.cast_writer import CastWriter
from swarm_tui.adapters.processes.run import run_process_blocking
from swarm_tui.adapters.processes.shell import shell_program
from swarm_tui.errors import AdapterError

_CALL_SECONDS: Final = 20.0
_CLOSE_SECONDS: Final = 1.0
_LONGEST_TYPED: Final = 1_000
# tmux sets these for its programs. Ours belong to another terminal.
_OWN_NAMES: Final = frozenset({"TERM", "TMUX", "TMUX_PANE", "COLUMNS", "LINES", "SHLVL", "PWD", "_"})
_CONFIGURATION: Final = """\
set -g status off
set -g remain-on-exit on
set -gq remain-on-exit-format ''
set -g history-limit 10000
set -s escape-time 0
set -g default-terminal screen-256color
set -g update-environment ''
set -g focus-events on
"""


@dataclass(frozen=True, slots=True)
class ScreenShot:
    """The screen of a terminal at one moment, with the exit code if the program has exited."""

    text: str
    exit_code: int | None


class DrivenTerminal:
    """A program in a terminal with a private server. `folder` holds the socket: a short private path."""

    def __init__(
        self, line: str, *, name: str, folder: Path, cwd: Path, environment: Mapping[str, str], width: int, height: int
    ) -> None:
        self.recording = folder / f"{name}.cast"
        self._socket = folder / name
        self._code = folder / f"{name}.code"
        self._target = f"={name}:"
        self._environment = dict(environment)
        gate, pipe = folder / f"{name}.gate", folder / f"{name}.pipe"
        for fifo in (gate, pipe):
            os.mkfifo(fifo, mode=0o600)
        launcher = folder / f"{name}.sh"
        launcher.write_text(
            _launcher(line, gate, self._code, cwd, environment), encoding="utf-8", errors="surrogateescape"
        )
        configuration = folder / f"{name}.conf"
        configuration.write_text(_CONFIGURATION, encoding="utf-8")
        self._cast = CastWriter.begin(self.recording, width, height, line)
        self._listener = threading.Thread(target=self._listen, args=(pipe,), name=f"listen-{name}", daemon=True)
        self._listener.start()
        try:
            # A tmux server reads its configuration when the first call starts it.
            self._call(
                *("-f", str(configuration), "new-session", "-d", "-s", name, "-x", str(width), "-y", str(height)),
                *(shlex.join([shell_program(), str(launcher)]), ";"),
                *("pipe-pane", "-t", self._target, f"exec cat > {shlex.quote(str(pipe))}"),
            )
        except AdapterError:
            # Opening and closing the pipe ends the listener.
            os.close(os.open(pipe, os.O_WRONLY))
            raise
        # The program starts after the recorder, so that the recording is complete.
        gate.write_bytes(b"\n")

    def screenshot(self) -> ScreenShot:
        """Return the text of the terminal without trailing blanks."""
        shown = self._call(
            *("display-message", "-p", "-t", self._target, "#{pane_dead}", ";"),
            *("capture-pane", "-p", "-t", self._target),
        )
        head, _, text = shown.partition("\n")
        return ScreenShot(text, self._read_code() if head == "1" else None)

    def press(self, *keys: str) -> None:
        """Press keys, by their names in tmux."""
        self._call("send-keys", "-t", self._target, "--", *(_escaped(key) for key in keys))

    def type_text(self, text: str) -> None:
        for start in range(0, len(text), _LONGEST_TYPED):
            self._call("send-keys", "-l", "-t", self._target, "--", _escaped(text[start : start + _LONGEST_TYPED]))

    def resize(self, width: int, height: int) -> None:
        self._call("resize-window", "-t", self._target, "-x", str(width), "-y", str(height))
        self._cast.resize(width, height)

    def close(self) -> None:
        """Close the terminal. The program gets SIGHUP."""
        # The program may have stopped the server.
        with contextlib.suppress(AdapterError):
            self._call("kill-session", "-t", self._target.removesuffix(":"))
        self._listener.join(timeout=_CLOSE_SECONDS)
        # The server exits shortly after its only session.
        deadline = time.monotonic() + _CLOSE_SECONDS
        while _is_served(self._socket) and time.monotonic() < deadline:
            time.sleep(0.002)

    def _read_code(self) -> int:
        # tmux sometimes forgets how a program exited. If there is no code, the launcher was killed, too.
        return int(self._code.read_text()) if self._code.exists() else 128 + signal.SIGKILL

    def _listen(self, pipe: Path) -> None:
        # Opening waits for the writer. Without a buffer, each write is recorded at its time.
        with open(pipe, "rb", buffering=0) as file, contextlib.closing(self._cast):
            while data := file.read(65_536):
                self._cast.output(data)

    def _call(self, *words: str) -> str:
        words = ("tmux", "-u", "-S", str(self._socket), *words)
        finished = run_process_blocking(words, environment=self._environment, timeout=_CALL_SECONDS)
        if finished.code != 0:
            raise AdapterError(f"tmux cannot run the terminal: {finished.error_text.strip()}")
        return finished.text


def _launcher(line: str, gate: Path, code: Path, cwd: Path, environment: Mapping[str, str]) -> str:
    """Return a script that waits for the recorder, runs the program and writes its exit code to a file.

    The program does not see tmux. Messages of the launching shell about killed programs are dropped.
    """
    exports = [
        f"export {name}={shlex.quote(value)}"
        for name, value in environment.items()
        if name not in _OWN_NAMES and name.isascii() and name.isidentifier()
    ]
    return "\n".join(
        [
            f"read -r _ < {shlex.quote(str(gate))}",
            "unset TMUX TMUX_PANE",
            *exports,
            f"cd {shlex.quote(str(cwd))} || exit 1",
            "trap : INT QUIT",
            "exec 3>&2 2>/dev/null",
            f"{shlex.quote(shell_program())} -c {shlex.quote(line)} 2>&3 3>&-",
            f"echo $? > {shlex.quote(str(code))}\n",
        ]
    )


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


def _escaped(word: str) -> str:
    """Escape a semicolon at the end of a word, which would end a tmux command."""
    return f"{word[:-1]}\\;" if word.endswith(";") else word
