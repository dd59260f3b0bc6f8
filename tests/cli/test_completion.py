"""Completion knows the commands, their options and the sweeps that are here."""

import os
import shutil
import sys
from pathlib import Path

import pexpect
import pytest

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.cli.completion import completions
from swarm_tui.cli.main import COMMANDS
from tests.programs import make_program
from tests.waiting import PATIENCE


def test_commands_are_completed(tmp_path: Path) -> None:
    assert completions([""], tmp_path) == [command.name for command in COMMANDS]
    assert completions(["comp"], tmp_path) == ["compare", "completion"]
    assert completions(["nothing", ""], tmp_path) == []


def test_choices_and_options_are_completed(tmp_path: Path) -> None:
    assert completions(["completion", "f"], tmp_path) == ["fish"]
    assert completions(["completion", "--h"], tmp_path) == ["--help"]


def test_sweeps_are_completed_from_anywhere_below(tmp_path: Path) -> None:
    (tmp_path / ".swarm" / "runs" / "20261118-061200").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    assert completions(["status", "2026"], tmp_path / "src") == ["20261118-061200"]


def test_the_value_of_an_option_is_completed_and_nothing_beside(tmp_path: Path) -> None:
    (tmp_path / ".swarm" / "runs" / "20261118-061200").mkdir(parents=True)
    assert completions(["run", "--only", ""], tmp_path) == ["red", "flaky", "green"]
    assert completions(["run", "--only-failed-of", "2"], tmp_path) == ["20261118-061200"]
    assert completions(["report", "-o", ""], tmp_path) == [], "a folder: the shell knows those"
    assert completions(["report", "--json", ""], tmp_path) == ["20261118-061200"]
    assert completions(["run", "--", "--o"], tmp_path) == [], "pytest's own"


# What begins each shell without a person's own settings, and what its settings would say.
SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$(swarm-tui completion bash)"'),
    "zsh": (["-f", "-i"], 'autoload -Uz compinit; compinit -D -u; eval "$(swarm-tui completion zsh)"'),
    "fish": (["--no-config", "-i"], "swarm-tui completion fish | source"),
}


@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(name, marks=pytest.mark.needs(name)) for name in ("zsh", "fish"))]
)
def test_tab_completes_in_the_shell_itself(shell: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / ".swarm" / "runs" / "20261118-061200").mkdir(parents=True)
    make_program(tmp_path / "bin" / "swarm-tui", f'exec "{sys.executable}" -m swarm_tui "$@"')
    words, settings = SHELLS[shell]
    path = shutil.which(shell)
    assert path is not None
    environment = scrubbed_environment(
        {
            "HOME": str(tmp_path / "home"),
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "TERM": "dumb",
            "PS1": "$ ",
        }
    )
    terminal = pexpect.spawn(
        path, words, env=environment, cwd=str(tmp_path), encoding="utf-8", timeout=PATIENCE, dimensions=(24, 200)
    )
    try:
        terminal.sendline(f"{settings}; echo rea''dy")
        terminal.expect_exact("ready")
        for typed, completed in (
            ("swarm-tui compl", "completion"),
            ("swarm-tui wait --unt", "--until"),
            ("swarm-tui status 2026", "20261118-061200"),
        ):
            # What a shell then has in its line is printed by it, and so the words are told from their echo.
            terminal.send(f"{typed}\t")
            terminal.expect_exact(completed)
            terminal.sendcontrol("u")
    finally:
        terminal.close(force=True)
