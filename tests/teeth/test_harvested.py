"""What an agent's own commits say of its test."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.teeth.harvested import why_weaker
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
def test_only_its_own_test_and_only_what_is_sure_counts(tmp_path: Path, old: str, new: str, why: str) -> None:
    project = GitProject(tmp_path / "project")
    base = project.commit("base", {FILE: BEFORE})
    tip = project.commit("[IMPROVE_TEST] x", {FILE: BEFORE.replace(old, new)})
    repository = Repository.open(project.root)
    assert why_weaker(repository, base, tip, FILE, f"{FILE}::test_a[1]") == why
    assert why_weaker(repository, base, tip, "gone.py", "gone.py::test_a") == ""
