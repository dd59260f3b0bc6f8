"""Runs a program on the person's own terminal - an editor, a pager, a merge tool - and waits until it is left."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import termios
import time
import tty
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from swarm_tui.adapters.packages import how_to_get
from swarm_tui.adapters.process import scrubbed_environment
from swarm_tui.errors import AdapterError, ProgramMissing, UsageError

ANSWER_TIMEOUT: Final = 1.0
_ARE_YOU_THERE: Final = b"\x1b[5n"
_I_AM_THERE: Final = b"\x1b[0n"


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


def run_in_foreground(arguments: Sequence[str], *, cwd: Path, extra: Mapping[str, str] = {}) -> int:
    """Run a program with this terminal as its own, and `extra` in its environment; return its exit code."""
    program = arguments[0]
    try:
        return subprocess.run(list(arguments), cwd=cwd, env=scrubbed_environment(extra), check=False).returncode
    except FileNotFoundError as error:
        if not cwd.is_dir():
            raise AdapterError(
                f"{program} cannot be started in {cwd}", "that folder does not exist any more"
            ) from error
        raise ProgramMissing(f"{program} is not installed", how_to_get(program)) from error
    except OSError as error:
        raise AdapterError(f"{program} cannot be started", error.strerror or str(error)) from error


def settle_terminal(terminal: int, timeout: float = ANSWER_TIMEOUT) -> bool:
    """Take off what the terminal still answers to questions of a program that has left; return whether it is quiet now.

    tmux and vim ask a terminal what it can do, and leave without waiting. A late answer would be read as keys
    by whoever comes next. Terminals answer in order: with the answer to a question of ours, all others are through.
    """
    try:
        before = termios.tcgetattr(terminal)
    except termios.error:
        return True
    try:
        tty.setraw(terminal, termios.TCSANOW)
        os.write(terminal, _ARE_YOU_THERE)
        deadline = time.monotonic() + timeout
        heard = b""
        while _I_AM_THERE not in heard:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([terminal], [], [], left)[0]:
                return False
            if not (content := os.read(terminal, 4096)):
                return False
            heard = heard[-len(_I_AM_THERE) :] + content
        return True
    except OSError:
        return False
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
