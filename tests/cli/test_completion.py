"""Completion knows the commands, their options and the sweeps that are here."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swarm_tui.cli.commands import COMMANDS
from swarm_tui.cli.completion import SCRIPTS, completions


def test_commands_are_completed(tmp_path: Path) -> None:
    assert completions([""], tmp_path) == [command.name for command in COMMANDS]
    assert completions(["comp"], tmp_path) == ["completion"]
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


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_every_shell_has_a_script(shell: str) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "swarm_tui", "completion", shell], capture_output=True, text=True, check=True
    )
    assert made.stdout == SCRIPTS[shell]


@pytest.mark.parametrize(("typed", "found"), [("compl", "completion"), ("list --", "--help\n--json\n--repository")])
def test_bash_takes_the_script_and_completes(typed: str, found: str) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    lines = (
        f'swarm-tui() {{ "{sys.executable}" -m swarm_tui "$@"; }}\n{SCRIPTS["bash"]}\n'
        f"COMP_WORDS=(swarm-tui {typed}) COMP_CWORD={len(typed.split())}\n"
        "_swarm_tui\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    made = subprocess.run([bash, "--norc", "-c", lines], capture_output=True, text=True, check=True)
    assert made.stdout == f"{found}\n"
