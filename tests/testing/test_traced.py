"""Executed lines of each test are recorded, including in programs that it starts with a separate environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.settings import TestSettings
from swarm_tui.testing.traced import run_traced
from tests.git_project import PYTEST_INI, GitProject

LIB = """def first():
    value = 1
    return value


def second():
    return 2


def prepare():
    return 3
"""
TESTS = """import os
import subprocess
import sys

import pytest

import lib


@pytest.fixture
def ready():
    return lib.prepare()


def test_direct():
    assert lib.first() == 1


def test_with_a_program():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    subprocess.run([sys.executable, "-c", "import lib; lib.second()"], env=kept, check=True)


def test_prepared(ready):
    assert ready == 3
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_coarse", [False, True])
async def test_executed_lines_are_recorded_for_each_test(tmp_path: Path, is_coarse: bool) -> None:
    project = GitProject(tmp_path / "project")
    project.commit("base", {"lib.py": LIB, "tests/test_lib.py": TESTS, "pytest.ini": PYTEST_INI, "conftest.py": ""})
    names = {name: f"tests/test_lib.py::test_{name}" for name in ("direct", "with_a_program", "prepared")}
    settings = TestSettings(sys.executable)
    with ObjectSpace(Repository.open(project.root)) as space:
        base = project.git("rev-parse", "HEAD")
        tree = project.git("rev-parse", "HEAD^{tree}")
        async with TestCopies(space, settings, base=base) as copies:
            traced = await run_traced(copies, tree, list(names.values()), 60.0, is_coarse=is_coarse)
    assert set(traced.run.outcomes.values()) == {"passed"}
    ran = {name: {line for path, line in traced.lines[test] if path == "lib.py"} for name, test in names.items()}
    assert ran["direct"] == ({1} if is_coarse else {2, 3})
    assert ran["with_a_program"] == ({6} if is_coarse else {7})
    assert ran["prepared"] == ({10} if is_coarse else {11})
    assert {line for path, line in traced.prepared if path == "lib.py"} == ran["prepared"]
    assert traced.starting_programs == {names["with_a_program"]}
