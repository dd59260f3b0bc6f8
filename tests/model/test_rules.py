"""Rules answer matching questions only."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import structs

from swarm_tui.model.questions import AnswerRule, Question, QuestionKind, common_subject, fits, item_id, rule_problem


def asked(subject: str, tool: str = "Bash", **more: object) -> Question:
    return msgspec.convert({"id": "1", "tool": tool, "subject": subject, **more}, Question)


def is_answered(pattern: str, subject: str, way: str = "begins", tool: str = "Bash") -> bool:
    rule = msgspec.convert({"id": "r1", "tool": tool, "way": way, "pattern": pattern}, AnswerRule)
    assert rule_problem(rule) == ""
    return fits(rule, asked(subject, tool), common_subject(asked(subject, tool), {"COPY": "/copies/a"}))


@pytest.mark.parametrize(
    "subject", ["pytest", "pytest -q", "pytest tests/a.py::test_b", "  pytest  -x", "pytest 'a b'", "pytest --lf"]
)
def test_prefix_rule_matches_single_commands_with_prefix(subject: str) -> None:
    assert is_answered("pytest", subject)


@pytest.mark.parametrize(
    "subject",
    [
        "pytest; rm -rf ~",
        "pytest && rm x",
        "pytest || rm x",
        "pytest | sh",
        "pytest > /etc/passwd",
        "pytest < x",
        "pytest $(rm x)",
        "pytest `rm x`",
        "pytest $HOME",
        "pytest\nrm x",
        "pytest \\\nrm",
        "pytest & rm x",
        "pytest {a,b}",
        "pytester",
        "pytest2 -q",
        "PATH=. pytest",
        "sudo pytest",
        "/tmp/pytest",
        "rm pytest",
        "",
    ],
)
def test_prefix_rule_rejects_shell_operators(subject: str) -> None:
    assert not is_answered("pytest", subject)


def test_prefix_rule_compares_all_words() -> None:
    assert is_answered("git log", "git log -1")
    assert not is_answered("git log", "git push")
    assert not is_answered("git log", "git logs")
    assert not is_answered("git log", "git")


def test_exact_rule_matches_command_in_every_copy() -> None:
    assert is_answered("cd COPY && pytest", "cd /copies/a && pytest", "exactly")
    assert not is_answered("cd COPY && pytest", "cd /copies/ab && pytest", "exactly")
    assert not is_answered("curl x", "curl x ", "exactly")


@pytest.mark.parametrize(
    ("subject", "common"),
    [
        ("/copies/a/shop.py", "COPY/shop.py"),
        ("ls /copies/a /copies/a/b", "ls COPY COPY/b"),
        ("ls '/copies/a'", "ls 'COPY'"),
        ("ls --in=/copies/a", "ls --in=COPY"),
        ("ls /old/copies/a", "ls /old/copies/a"),
        ("ls /copies/abc", "ls /copies/abc"),
    ],
)
def test_common_subject_replaces_copy_path(subject: str, common: str) -> None:
    assert common_subject(asked(subject), {"COPY": "/copies/a"}) == common
    assert common_subject(asked(subject), {"COPY": "/copies/a/"}) == common


def test_common_subject_without_copy_is_unchanged() -> None:
    assert common_subject(asked("ls /"), {"COPY": ""}) == common_subject(asked("ls /"), {"COPY": "/"}) == "ls /"


@pytest.mark.parametrize(
    ("path", "is_below"),
    [
        ("/copies/a/tests/a.py", True),
        ("/copies/a/tests/b/c.py", True),
        ("/copies/a/tests", False),
        ("/copies/a/tests2/a.py", False),
        ("/copies/a/tests/../../../etc/passwd", False),
        ("/etc/passwd", False),
    ],
)
def test_folder_rule_matches_files_below(path: str, is_below: bool) -> None:
    assert is_answered("COPY/tests", path, "folder", "Edit") is is_below


def test_rule_answers_only_exact_permissions_of_its_tool() -> None:
    rule = AnswerRule(id="r1", tool="Bash", way="begins", pattern="ls")
    assert fits(rule, asked("ls"), "ls")
    assert not fits(rule, asked("ls", "Zsh"), "ls")
    assert not fits(rule, asked("ls", is_inexact=True), "ls")
    for kind in (QuestionKind.PLAN, QuestionKind.QUESTION, QuestionKind.INPUT):
        assert not fits(rule, asked("ls", kind=kind), "ls")


@pytest.mark.parametrize(
    "rule",
    [
        AnswerRule(id="r1", tool="", pattern="x"),
        AnswerRule(id="r1", tool="Bash", pattern=" "),
        AnswerRule(id="r1", tool="Bash", pattern="x" * 3_000),
        AnswerRule(id="r1", tool="Bash", way="begins", pattern="a; b"),
        AnswerRule(id="r1", tool="Bash", way="any"),
        AnswerRule(id="r1", tool="Bash", pattern="x", answer=" "),
    ],
)
def test_invalid_rule_is_refused(rule: AnswerRule) -> None:
    assert rule_problem(rule)


def test_duplicate_rule_is_refused() -> None:
    rule = AnswerRule(id="r1", tool="Bash", pattern="x")
    assert rule_problem(structs.replace(rule, id="", answer="no"), [rule]) == "rule r1 already covers this"


def test_item_id_changes_with_any_field() -> None:
    question = asked("ls")
    same = [item_id("t", question), item_id("t", structs.replace(question))]
    others = [
        item_id("u", question),
        *(item_id("t", structs.replace(question, **{name: "x"})) for name in ("id", "subject", "detail", "text")),
    ]
    assert len({*same, *others}) == 6
    assert len(same[0]) == 8
