"""Runs a program, such as an editor, in the person's own terminal, and waits for its end."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import subprocess
import termios
import time
import tty
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from swarm_tui.adapters.process_group import spawn_errors
from swarm_tui.errors import UsageError

ANSWER_TIMEOUT: Final = 1.0
# The first screen, a cursor, usual colours; no mouse, no pasting or focus in brackets, usual keys.
_USUAL_SCREEN: Final = b"\x1b[?1049l\x1b[?25h\x1b[0m\x1b[?1000;1002;1003;1006;2004;1004;1l\x1b>"
_STATUS_QUERY: Final = b"\x1b[5n"
_STATUS_ANSWER: Final = b"\x1b[0n"


def editor_command() -> tuple[str, ...]:
    """Return the person's editor with its options, as git finds it: $GIT_EDITOR, $VISUAL, $EDITOR, else vi."""
    for name in ("GIT_EDITOR", "VISUAL", "EDITOR"):
        words = os.environ.get(name, "").strip()
        if words:
            try:
                return tuple(shlex.split(words))
            except ValueError as error:
                raise UsageError(f"${name} cannot be read: {error}", "set it to a program and its options") from error
    return ("vi",)


def run_in_foreground(arguments: Sequence[str], *, cwd: Path | None, environment: Mapping[str, str]) -> int:
    """Run a program with this terminal as its own; return its exit code.

    It stays in our process group, which is the one that the terminal's keys go to.
    """
    with spawn_errors(arguments[0], cwd), _ignored_interrupts():
        return subprocess.run(list(arguments), cwd=cwd, env=dict(environment), check=False).returncode


@contextlib.contextmanager
def _ignored_interrupts() -> Iterator[None]:
    """Leave ctrl+c to the program in front; a handler, unlike an ignored signal, is not inherited by it."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def restored_terminal() -> Iterator[None]:
    """Leave the terminal as it was, also behind a program that lost its other end and could not clear up."""
    try:
        before = termios.tcgetattr(0)
    except termios.error:
        before = None
    try:
        yield
    finally:
        if before is not None:
            termios.tcsetattr(0, termios.TCSANOW, before)
        if os.isatty(1):
            os.write(1, _USUAL_SCREEN)


def drop_late_answers(terminal: int, timeout: float = ANSWER_TIMEOUT) -> bool:
    """Read and drop a terminal's answers to queries of a program that has ended; return whether all have come.

    tmux and vim query what a terminal can do, and end without waiting. The next program would read a late answer as
    keys. Terminals answer in order, so that the answer to a query of ours is the last one.
    """
    try:
        before = termios.tcgetattr(terminal)
    except termios.error:
        return True
    try:
        tty.setraw(terminal, termios.TCSANOW)
        os.write(terminal, _STATUS_QUERY)
        deadline = time.monotonic() + timeout
        read = b""
        while _STATUS_ANSWER not in read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([terminal], [], [], left)[0]:
                return False
            if not (content := os.read(terminal, 4096)):
                return False
            read = read[-len(_STATUS_ANSWER) :] + content
        return True
    except OSError:
        return False
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
