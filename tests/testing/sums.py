"""A small project with two fixes, and a Python that counts pytest runs."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.git_project import PYTEST_INI, GitProject

TESTS = "tests/test_sums.py::test_add", "tests/test_sums.py::test_double", "tests/test_other.py::test_other"
IMPORT_ROOTS = ("src", ".")


def make_sums(root: Path) -> GitProject:
    """Return a project whose branch `integrated` fixes `add` and then `double`."""
    project = GitProject(root)
    test_add, test_double = "def test_add(): assert add(1, 2) == 3", "def test_double(): assert double(2) == 4"
    project.commit(
        "base",
        {
            "src/sums.py": "def add(a, b): return a - b\n\n\n\n\n\n\ndef double(a): return a\n",
            "tests/test_sums.py": f"from sums import add, double\n{test_add}\n{test_double}\n",
            "pytest.ini": PYTEST_INI,
            "tests/test_other.py": "def test_other(): pass\n",
        },
    )
    project.git("switch", "--quiet", "--create", "integrated")
    added = "def add(a, b): return a + b\n\n\n\n\n\n\ndef double(a): return a\n"
    project.commit("[FIX_IMPL] Add", {"src/sums.py": added})
    project.commit("[FIX_IMPL] Double", {"src/sums.py": added.replace("return a\n", "return a * 2\n")})
    return project


class CountingPython:
    """An interpreter that records each of its calls in a file."""

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "calls"
        self._calls.touch()
        program = folder / "python"
        program.write_text(f'#!/bin/sh\necho "$*" >> {self._calls}\nexec {sys.executable} "$@"\n')
        program.chmod(0o755)
        self.path = str(program)

    @property
    def calls(self) -> list[str]:
        """The arguments of each call so far."""
        return self._calls.read_text().splitlines()
