"""How an agent's commits weakened tests, from their sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.strength.signs import remarks_on_tests, why_weaker
from tests.git_project import GitProject

FILE = "tests/test_a.py"
BEFORE = """\
import pytest


@pytest.mark.parametrize('x', [1, 2])
def test_a(x):
    assert f(x) == 3


def test_b():
    assert g()
"""


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("f(x) == 3", "f(x)", "a check was loosened"),
        ("    assert f", "    pytest.skip('later')\n    assert f", "skip added, a check is never reached"),
        ("f(x) == 3", "f(x) == 4", ""),
        ("assert g()", "pass", ""),
        ("[1, 2]", "[1]", ""),
    ],
)
def test_only_certain_weakening_of_own_test_counts(tmp_path: Path, old: str, new: str, why: str) -> None:
    project = GitProject(tmp_path / "project")
    base = project.commit("base", {FILE: BEFORE})
    tip = project.commit("[IMPROVE_TEST] x", {FILE: BEFORE.replace(old, new)})
    repository = Repository.open(project.root)
    assert why_weaker(repository, base, tip, FILE, f"{FILE}::test_a[1]") == why
    assert why_weaker(repository, base, tip, "gone.py", "gone.py::test_a") == ""


def test_renamed_and_weakened_other_tests_are_remarks(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project")
    base = project.commit(
        "base", {FILE: BEFORE, "src/f.py": "f = 1\n", "tests/test_c.py": "def test_c():\n    assert h()\n"}
    )
    renamed = BEFORE.replace("def test_a", "def test_all").replace("assert g()", "pass")
    tip = project.commit("[FIX_IMPL] x", {FILE: renamed, "src/f.py": "f = 2\n", "tests/test_c.py": None})
    found = remarks_on_tests(Repository.open(project.root), base, tip, FILE, f"{FILE}::test_a[1]")
    assert found == (
        f"renamed tests whose old ids no longer exist: {FILE}::test_a is now {FILE}::test_all",
        f"weakened other tests: {FILE}::test_b: checks nothing any more; tests/test_c.py::test_c: the test is gone",
    )
    assert remarks_on_tests(Repository.open(project.root), base, base, FILE, f"{FILE}::test_a[1]") == ()
