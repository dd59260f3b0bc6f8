"""`swarm-tui tutorial fill` and `sync` with nothing to do, and with invalid requests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.cli.main import run_command_line
from tests.git_project import GitProject, file_contents

WHOLE = "# list it\nls\n\n# go home\ncd\n"
TESTS = '''\
def test_list(e2e):
    """Tutorial block:
        # list it
        ls
    """


def test_go_home(e2e):
    """Tutorial block:
        # go home
        cd
    """
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    project = GitProject(tmp_path / "project")
    files = {"whole.sh": WHOLE, "tests/test_it.py": TESTS, "short.sh": WHOLE + "\n# look around\n", "empty.sh": " \n"}
    project.commit("Begin", {**files, "more.sh": WHOLE + "\n# look around\nfind .\n"})
    project.write({"new.sh": WHOLE})
    monkeypatch.chdir(project.root)
    return project


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fill", "whole.sh"], "whole.sh: each comment has commands"),
        (["sync", "whole.sh", "tests"], "whole.sh: each block has a test, and each test a block"),
    ],
)
def test_nothing_to_do_is_reported_with_exit_code_0(
    project: GitProject, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    before = file_contents(project.root)
    assert run_command_line(["tutorial", *words]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert told in printed.err
    assert file_contents(project.root) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fill", "missing.sh"], "missing.sh does not exist"),
        (["fill", "tests"], "tests is not a file"),
        (["fill", "empty.sh"], "empty.sh is empty"),
        (["fill", "new.sh"], "new.sh is not in commit"),
        (["fill", "/etc/passwd"], "is not in the repository"),
        (["sync", "whole.sh", "missing"], "there is no missing"),
        (["sync", "whole.sh", "whole.sh"], "whole.sh is not a folder"),
        (["fill", "short.sh", "--agent", "offline"], "the offline agent plays records, and none are given"),
        (["fill", "short.sh", "--agent", "offline", "--records", "missing"], "--records missing does not exist"),
        (["fill", "short.sh", "--batch", "0"], "invalid value for --batch: 0"),
        (["fill", "short.sh", "--batch", "51"], "use 1 to 50 blocks"),
        (["fill", "short.sh", "--slots", "0"], "invalid value for --slots: 0"),
        (["sync", "more.sh", "tests", "--timeout", "soon"], "argument --timeout: invalid duration: 'soon'"),
    ],
)
def test_usage_error_is_one_sentence_and_changes_nothing(
    project: GitProject, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    before = file_contents(project.root)
    assert run_command_line(["tutorial", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert told in printed.err
    assert file_contents(project.root) == before


def test_uncommitted_tutorial_is_reported(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    project.write({"whole.sh": WHOLE + "\n# look around\n"})
    assert run_command_line(["tutorial", "fill", "whole.sh"]) == 0
    told = capsys.readouterr().err
    assert "whole.sh has uncommitted changes: its blocks are read as they are in commit" in told
    assert "nothing to do" in told


def test_folder_without_repository_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.sh").write_text(WHOLE)
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["tutorial", "fill", "t.sh"]) == 2
    assert "not in a git repository" in capsys.readouterr().err


def test_slash_command_is_written_to_top_of_project(
    project: GitProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.root / "tests")
    assert run_command_line(["tutorial", "install-command"]) == 0
    place = project.root / ".claude/commands/swarm-tutorial.md"
    assert capsys.readouterr().out == f"{os.fspath(place)}\n"
    assert place.is_file()
