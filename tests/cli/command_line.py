"""Calls the command line as a shell would, in this process: starting Python takes longer than most commands."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from swarm_tui.cli.main import run_command_line


def run_swarm_tui(
    *words: str, folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with exactly the variables of `environment` if there is one."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as own, redirect_stdout(out), redirect_stderr(err):
        own.chdir(folder)
        if environment is not None:
            for name in os.environ.keys() - environment.keys():
                own.delenv(name)
            for name, value in environment.items():
                own.setenv(name, value)
        code = run_command_line(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
