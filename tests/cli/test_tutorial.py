"""`swarm-tui tutorial` as it is typed: words, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swarm_tui.cli.main import run_command_line

TUTORIAL = "#!/bin/sh\n\n## START\n\n# see the other commands\nmytool --help\n\n# list\nmytool list\n"
TESTS = '''
def test_help(e2e):
    e2e.write_tutorial_block("""
        # see the other commands
        mytool --help
    """)

def test_list(e2e):
    """Tutorial block:
        # list
        mytool ls
    """
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tutorial.sh").write_text(TUTORIAL)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    return tmp_path


def test_blocks_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["tutorial", "blocks", "tutorial.sh", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["blocks"][0] == {
        "line": 5,
        "end_line": 6,
        "title": "see the other commands",
        "section": "START",
        "text": "# see the other commands\nmytool --help",
        "commands": ["mytool --help"],
    }


def test_blocks_as_text(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["tutorial", "blocks", "tutorial.sh"]) == 0
    assert capsys.readouterr().out == "tutorial.sh: 2 blocks\n\nSTART\n  5  see the other commands\n  8  list\n"


def test_check_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["tutorial", "check", "tutorial.sh", "tests", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["blocks"], printed["tests"]) == (2, 2)
    assert printed["uncited_blocks"] == [{"line": 8, "text": "# list\nmytool list"}]
    assert printed["unmatched_tests"] == [{"file": "tests/test_it.py", "line": 8, "name": "test_list"}]
    (miss,) = printed["near_misses"]
    assert (miss["name"], miss["block_line"]) == ("test_list", 8)
    assert miss["difference"] == ["  # list", "- mytool ls", "+ mytool list"]


def test_check_as_text(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["tutorial", "check", "tutorial.sh", "tests"]) == 1
    printed = capsys.readouterr().out
    assert "tutorial.sh: 2 blocks, 2 tests in 1 file\n" in printed
    assert "  tutorial.sh:8  list\n" in printed
    assert "      - mytool ls\n      + mytool list\n" in printed


def test_check_of_what_fits(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tutorial.sh").write_text(TUTORIAL.replace("mytool list", "mytool ls"))
    assert run_command_line(["tutorial", "check", "tutorial.sh", "tests/"]) == 0
    assert capsys.readouterr().out.endswith("each block has a test, and each test a block\n")


def test_a_broken_test_file_is_named_and_the_others_go_on(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "test_bad.py").write_text("x = 1\ndef (\n")
    assert run_command_line(["tutorial", "check", "tutorial.sh", "tests"]) == 1
    printed = capsys.readouterr().out
    assert "tests/test_bad.py:2  invalid syntax" in printed
    assert "2 tests in 2 files" in printed


def test_what_a_tutorial_says_never_acts_on_the_terminal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tutorial.sh").write_text("# \x1b]0;title\x07words\nmytool \x1b[31mred\n")
    for words in (["blocks", "tutorial.sh"], ["check", "tutorial.sh", "tests"], ["blocks", "tutorial.sh", "--json"]):
        run_command_line(["tutorial", *words])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["tutorial"],
        ["tutorial", "bloks"],
        ["tutorial", "blocks", "missing.sh"],
        ["tutorial", "check"],
        ["tutorial", "check", "tutorial.sh", "missing"],
        ["tutorial", "check", "missing.sh", "tests"],
    ],
)
def test_misuse_is_exit_2_with_words(project: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert run_command_line(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err


def test_a_check_of_one_block_is_about_nothing_else(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["tutorial", "check", "tutorial.sh", "tests", "--block", "see the other commands"]) == 0
    assert run_command_line(["tutorial", "check", "tutorial.sh", "tests", "--block=8"]) == 1
    assert run_command_line(["tutorial", "check", "tutorial.sh", "tests", "--block=9"]) == 2
    assert "unknown block: '9'" in capsys.readouterr().err


def test_without_tests_the_comments_are_checked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["tutorial", "check", "tutorial.sh"]) == 0
    assert capsys.readouterr().out == "tutorial.sh: 2 blocks\n\neach comment has commands\n"
    (project / "tutorial.sh").write_text(TUTORIAL + "\n# copy it elsewhere\n")
    assert run_command_line(["tutorial", "check", "tutorial.sh"]) == 1
    assert "1 comment without commands\n  tutorial.sh:11  copy it elsewhere\n" in capsys.readouterr().out
    assert run_command_line(["tutorial", "check", "tutorial.sh", "--block", "list"]) == 0
    capsys.readouterr()
    assert run_command_line(["tutorial", "check", "tutorial.sh", "--json", "--block", "copy it elsewhere"]) == 1
    waiting = json.loads(capsys.readouterr().out)["comments_without_commands"]
    assert waiting == [{"line": 11, "text": "# copy it elsewhere"}]
