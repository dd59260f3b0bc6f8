"""Failure descriptions of the live plugin: the original error, its place, and the calls that the test checks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.agents.packaged import live_folder

PROGRAM = """\
class Missing(Exception):
    def __init__(self, name):
        self.name = name
        super().__init__("user %s not found" % name)

def find(name):
    raise Missing(name)

def from_cause(name):
    try:
        find(name)
    except Missing as error:
        raise RuntimeError("request failed") from error

def in_handler(name):
    try:
        find(name)
    except Missing:
        raise RuntimeError("request failed")

def hidden(name):
    try:
        find(name)
    except Missing:
        raise RuntimeError("request failed") from None

def fallback():
    return int("x")

def instead(name):
    try:
        find(name)
    except Missing:
        return fallback()

def both():
    raise ExceptionGroup("two", [OSError("full"), KeyError("a")])

def down(depth):
    return up(depth + 1)

def up(depth):
    return down(depth + 1)

def total(items):
    return 3
"""
TESTS = """\
import program

def check(value):
    assert value == 4

def test_asserts():
    result = program.total([1])
    doubled = result * 2
    assert doubled == 4

def test_helped():
    check(program.total([1]))

def test_shown(capsys):
    program.total([3])
    out = capsys.readouterr
    assert str(out) == "4"

def test_served(client=None):
    answer = (client or str).get("/users/3", timeout=3)
    assert answer.status_code == 200

def get(): pass
"""


@pytest.fixture
def describe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a call in a project and describes its error."""
    monkeypatch.syspath_prepend(str(live_folder()))
    from swarm_live.failure import describe_failure  # type: ignore[import-not-found]

    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "program.py").write_text(PROGRAM)
    test_file = project / "tests" / "test_it.py"
    test_file.write_text(TESTS)
    monkeypatch.syspath_prepend(str(project))
    spaces: dict[str, Any] = {}
    program = compile(PROGRAM, str(project / "program.py"), "exec")
    exec(program, spaces)
    module = type(sys)("program")
    module.__dict__.update(spaces)
    monkeypatch.setitem(sys.modules, "program", module)
    exec(compile(TESTS, str(test_file), "exec"), spaces)

    def described(name: str, *arguments: Any) -> Any:
        with pytest.raises(BaseException) as raised:
            spaces[name](*arguments)
        return describe_failure(raised.value, str(project), str(test_file))

    return described


def test_error_has_place_where_it_was_raised(describe: Any) -> None:
    (error,) = describe("find", "alice")["errors"]
    assert error["message"] == "user alice not found"
    assert (error["file"], error["function"], error["statement"]) == ("program.py", "find", "raise Missing(name)")
    assert error["values"] == ["alice"]
    assert not error["is_test"]


@pytest.mark.parametrize("name", ["from_cause", "in_handler"])
def test_wrapping_error_is_removed(describe: Any, name: str) -> None:
    said = describe(name, "alice")
    assert [error["function"] for error in said["errors"]] == ["find"]
    assert said["wrappers"] == ["RuntimeError"]


@pytest.mark.parametrize(("name", "function"), [("hidden", "hidden"), ("instead", "fallback")])
def test_replacing_error_is_described_itself(describe: Any, name: str, function: str) -> None:
    said = describe(name, "alice")
    assert [error["function"] for error in said["errors"]] == [function]
    assert said["wrappers"] == []


def test_exception_group_is_described_by_its_members(describe: Any) -> None:
    assert [error["type"] for error in describe("both")["errors"]] == ["OSError", "KeyError"]


def test_recursion_has_same_place_at_any_depth(describe: Any) -> None:
    places = {describe(name, 0)["errors"][0]["function"] for name in ("up", "down")}
    assert len(places) == 1


@pytest.mark.parametrize("name", ["test_asserts", "test_helped"])
def test_assertion_names_calls_that_created_its_values(describe: Any, name: str) -> None:
    (error,) = describe(name)["errors"]
    assert error["is_test"]
    assert error["subjects"] == ["total"]
    assert error["place"] == f"tests/test_it.py::{name}"


def test_captured_output_names_the_last_call(describe: Any) -> None:
    class Captured:
        readouterr = "3"

    assert describe("test_shown", Captured())["errors"][0]["subjects"] == ["total"]


def test_request_is_named_by_start_of_path(describe: Any) -> None:
    class Client:
        status_code = 500

        def get(self, *_: Any, **__: Any) -> Client:
            return self

    assert describe("test_served", Client())["errors"][0]["subjects"] == ["get /users"]
