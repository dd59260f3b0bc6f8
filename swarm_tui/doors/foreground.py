"""Runs a program on the person's own terminal - an editor, a pager, a merge tool - and waits until it is left."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from swarm_tui.doors.packages import how_to_get
from swarm_tui.doors.process import scrubbed_environment
from swarm_tui.errors import DoorError, ProgramMissing, UsageError


def editor_command() -> tuple[str, ...]:
    """Give the person's editor with its options, as git finds it: $GIT_EDITOR, $VISUAL, $EDITOR, else vi."""
    for name in ("GIT_EDITOR", "VISUAL", "EDITOR"):
        words = os.environ.get(name, "").strip()
        if words:
            try:
                return tuple(shlex.split(words))
            except ValueError as error:
                raise UsageError(f"${name} cannot be read: {error}", "set it to a program and its options") from error
    return ("vi",)


def run_in_foreground(arguments: Sequence[str], *, cwd: Path, extra: Mapping[str, str] = {}) -> int:
    """Run a program with this terminal as its own, and `extra` in its environment; give its exit code."""
    program = arguments[0]
    try:
        return subprocess.run(list(arguments), cwd=cwd, env=scrubbed_environment(extra), check=False).returncode
    except FileNotFoundError as error:
        if not cwd.is_dir():
            raise DoorError(f"{program} cannot be started in {cwd}", "that folder does not exist any more") from error
        raise ProgramMissing(f"{program} is not installed", how_to_get(program)) from error
    except OSError as error:
        raise DoorError(f"{program} cannot be started", error.strerror or str(error)) from error
