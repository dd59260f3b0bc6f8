"""Invalid requests of `run`: one sentence with a hint, exit code 2, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import run_swarm_tui
from tests.git_project import PYTEST_INI, GitProject, file_contents, quiet_environment


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "project")
    tests, record = "def test_a(): pass\n# {% if %}\n", 'test = "test_a.py::test_a"\n'
    project.commit("Begin", {"test_a.py": tests, "records/a.toml": record, "pytest.ini": PYTEST_INI})
    return project


@pytest.fixture
def fake_mngr(tmp_path: Path) -> Path:
    """Return a program that answers as a mngr of a version would, and can do nothing else."""
    program = tmp_path / "mngr"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "mngr 0.3.0" || echo "{}"\n')
    program.chmod(0o755)
    return program


def run(folder: Path, *words: str, mngr: str | Path = "/no/mngr", **more: str) -> subprocess.CompletedProcess[str]:
    environment = quiet_environment() | {"SWARM_MNGR": str(mngr)} | more
    words = words if "--agent" in words else (*words, "--agent", "offline")
    return run_swarm_tui("run", "--headless", *words, folder=folder, environment=environment)


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    error = done.stderr.rpartition("swarm-tui: ")[2]
    assert error.count("\n") <= 2
    assert all(word in error for word in words), error


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--slots", "0"), ("--slots: 0", "1 or more")),
        (("--per-host", "2"), ("--per-host requires --host or --provider",)),
        (("--timeout", "0"), ("--timeout: 0", "above 0")),
        (("--wait-timeout", "soon"), ("invalid duration: 'soon'", "30m")),
        (("--speed", "-1"), ("--speed: -1",)),
        (("--provider", "modal"), ("unknown provider: modal", "imbue-mngr-modal")),
        (("--records", "nowhere"), ("--records nowhere does not exist",)),
        (("--records", "test_a.py"), ("--records test_a.py is not a folder",)),
        (("--tutorial", "nowhere"), ("--tutorial nowhere does not exist",)),
        (("--python", "/no/python"), ("--python /no/python is not a program",)),
        (("--agent", "martian"), ("unknown agent type: martian", "offline")),
        (("--agent", "command"), ("--agent command requires a command",)),
        (("--agent", "claude"), ("claude is not installed", "offline")),
        (("--only-failed-of", "2020"), ("no sweeps in this repository",)),
        (("--changed-since", "no-such-commit"), ("unknown commit", "'no-such-commit'")),
        (("--label", "x"), ("invalid label: 'x'",)),
        (("--mapper-prompt", "nowhere.md"), ("cannot read prompt template", "nowhere.md")),
        (("--integrator-prompt", "nowhere.md"), ("cannot read prompt template nowhere.md: No such file",)),
        (("--integrator-prompt", "test_a.py"), ("invalid prompt template test_a.py, line 2",)),
        (("--pass-env", "NO_SUCH_TOKEN"), ("--pass-env: NO_SUCH_TOKEN is not set",)),
    ],
)
def test_usage_error_is_one_sentence_and_changes_nothing(
    project: GitProject, fake_mngr: Path, words: tuple[str, ...], told: tuple[str, ...]
) -> None:
    before = file_contents(project.root)
    path = os.pathsep.join(str(Path(shutil.which(name) or "").parent) for name in ("git", "tmux", "ps"))
    # Without claude, wherever this runs.
    assert_refused(run(project.root, *words, mngr=fake_mngr, PATH=path), *told)
    assert file_contents(project.root) == before


def test_missing_git_commit_identity_or_mngr_is_reported(project: GitProject, tmp_path: Path, fake_mngr: Path) -> None:
    (tmp_path / "bare").mkdir()
    assert_refused(run(tmp_path / "bare"), "not in a git repository: ", "git init")
    empty = GitProject(tmp_path / "empty")
    assert_refused(run(empty.root), "has no commits yet", "commit something first")
    assert_refused(run(project.root), "SWARM_MNGR is not a program: /no/mngr", "doctor --fix")
    project.git("config", "--unset", "user.email")
    project.git("config", "user.useConfigOnly", "true")
    assert_refused(run(project.root, mngr=fake_mngr), "git has no identity for commits", "git config --global")


def test_old_mngr_is_refused(project: GitProject, fake_mngr: Path) -> None:
    fake_mngr.write_text('#!/bin/sh\necho "mngr 0.2.2"\n')
    assert_refused(run(project.root, mngr=fake_mngr), "mngr 0.2.2", "0.3 is needed")


def test_path_with_shell_characters_is_refused(tmp_path: Path, fake_mngr: Path) -> None:
    project = GitProject(tmp_path / "pro$(touch pwned)ject")
    project.commit("Begin", {"test_a.py": "def test_a(): pass\n", "pytest.ini": PYTEST_INI})
    assert_refused(
        run(project.root, mngr=fake_mngr), "has characters that a shell would interpret", "rename the folder"
    )
    assert not (project.root / ".swarm").exists()


def test_sha256_repository_is_refused(tmp_path: Path, fake_mngr: Path) -> None:
    (tmp_path / "sha256").mkdir()
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256"], cwd=tmp_path / "sha256", check=True)
    project = GitProject(tmp_path / "sha256")
    project.commit("Begin", {"test_a.py": "def test_a(): pass\n"})
    assert_refused(run(project.root, mngr=fake_mngr), "a repository with SHA-256 ids")


def test_branch_named_swarm_is_refused(project: GitProject, fake_mngr: Path) -> None:
    project.git("branch", "swarm")
    assert_refused(run(project.root, mngr=fake_mngr), "a branch is named swarm", "git branch --move swarm")
    assert not (project.root / ".swarm").exists()
