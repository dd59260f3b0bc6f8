"""Tests that a fix may affect: those that executed changed code, and those with unknown code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.pytest import TestRun
from swarm_tui.integrator.measure import ALL_POSSIBLE, Concerns, RelatedTests
from swarm_tui.testing.traced import TracedRun
from tests.git_project import GitProject

LIB = "LIMIT = 3\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef made():\n    return 3\n"
FILE = "tests/test_lib.py"
ONE, TWO, DARK, PROGRAM, SHAKY = (f"{FILE}::test_{name}" for name in ("one", "two", "dark", "program", "shaky"))
OUTCOMES = {ONE: "failed", TWO: "passed", DARK: "passed", PROGRAM: "passed", SHAKY: "failed"}


class Sight:
    """The traced code of five tests, and the tests that a commit may affect."""

    def __init__(self, project: GitProject, space: ObjectSpace) -> None:
        self.project = project
        own = (FILE, 1)
        traced = TracedRun(
            TestRun({**OUTCOMES, SHAKY: "passed"}),
            {
                ONE: frozenset({own, ("lib.py", 5)}),
                TWO: frozenset({own, ("lib.py", 8), ("lib.py", 12)}),
                PROGRAM: frozenset({own}),
                SHAKY: frozenset({own}),
            },
            prepared=frozenset({("lib.py", 12)}),
            starting_programs=frozenset({PROGRAM}),
        )
        self.concerns = Concerns(space, project.git("rev-parse", "HEAD^{tree}"), traced, TestRun(OUTCOMES))

    def of(self, path: str, content: str | None) -> RelatedTests:
        self.project.commit("change", {path: content})
        tree = self.project.git("rev-parse", "HEAD^{tree}")
        self.project.git("reset", "--quiet", "--hard", "HEAD~1")
        return self.concerns.of([path], tree)


@pytest.fixture
def sight(tmp_path: Path) -> Iterator[Sight]:
    project = GitProject(tmp_path / "project")
    project.commit("base", {"lib.py": LIB, "conftest.py": "", "words.txt": "a\n"})
    with ObjectSpace(Repository.open(project.root)) as space:
        yield Sight(project, space)


def test_changed_function_affects_tests_that_executed_it(
    sight: Sight,
) -> None:
    found = sight.of("lib.py", LIB.replace("return 1", "return 4"))
    assert found.seen == {ONE}
    assert found.possible == frozenset({DARK, PROGRAM, SHAKY})
    assert [found.may_be(test) for test in (ONE, TWO, DARK)] == [True, False, True]
    assert sight.of("lib.py", LIB.replace("return 2", "return 4")).seen == {TWO}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("lib.py", LIB.replace("LIMIT = 3", "LIMIT = 4")),
        ("lib.py", LIB.replace("def two():", "def two(more=1):")),
        ("lib.py", LIB.replace("return 3", "return 4")),
        ("lib.py", LIB + "def ("),
        ("lib.py", None),
        ("new.py", "def one():\n    return 1\n"),
        ("conftest.py", "def pytest_configure():\n    pass\n"),
        ("words.txt", "b\n"),
    ],
    ids=["module", "signature", "run while preparing", "broken", "removed", "new", "conftest", "no Python"],
)
def test_other_changes_may_affect_every_test(sight: Sight, path: str, content: str | None) -> None:
    assert sight.of(path, content) == ALL_POSSIBLE
