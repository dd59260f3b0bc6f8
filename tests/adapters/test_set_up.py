"""A set-up that fails says its code and its last lines, whoever runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from swarm_tui.adapters.pytest import read_failure, set_up_script


def run(setup: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    script = set_up_script(setup, "/the check'out")
    environment = {**os.environ, **more}
    return subprocess.run(["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("setup", ["true", "true # a comment", "touch a; exit 0", "false; true"])
def test_one_that_succeeds_says_nothing(setup: str, tmp_path: Path) -> None:
    done = run(setup, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_failed_set_up_reports_code_and_output(tmp_path: Path) -> None:
    done = run("seq 50; echo $SWARM_CHECKOUT; echo 'no compiler' >&2; exit 3 # so", tmp_path)
    assert done.returncode == 3
    failure = read_failure(f"Creating agent...\n{done.stderr}Error: command failed: {done.args}\nstderr: {done.stderr}")
    assert failure is not None
    assert str(failure) == "the set-up command failed with code 3 in a fresh copy: no compiler"
    assert failure.lines == [*map(str, range(41, 51)), "/the check'out", "no compiler"]


def test_unwritable_temporary_folder_is_reported(tmp_path: Path) -> None:
    done = run("true", tmp_path, TMPDIR=str(tmp_path / "nowhere"))
    failure = read_failure(done.stderr)
    assert failure is not None
    assert str(failure).endswith(f"{tmp_path}/nowhere cannot be written")


def test_output_goes_to_a_private_file_with_a_random_name(tmp_path: Path) -> None:
    # The shell's process id is in the names that another user could place a link under.
    setup = f"ls -l '{tmp_path}'; echo $$; exit 1"
    listed = run(setup, tmp_path, TMPDIR=str(tmp_path)).stderr
    (line,) = (line for line in listed.splitlines() if "swarm-set-up-" in line)
    (shell,) = {line for line in listed.splitlines() if line.isdigit()}
    assert line.startswith("-rw------- ")
    assert f"swarm-set-up-{shell}" not in line
    assert list(tmp_path.iterdir()) == []


def test_set_up_output_is_harmless(tmp_path: Path) -> None:
    done = run("printf 'a\\033[31mb\\n'; exit 1", tmp_path)
    failure = read_failure(done.stderr)
    assert failure is not None
    assert "\x1b" not in "".join(failure.lines)
    assert read_failure("the set-up exited with code x") is None
