"""A small project with faults, and a function that creates agents' branches for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from swarm_tui.adapters.git import Repository
from swarm_tui.integrator.inputs import BranchInput, ExcludedBranch, IntegratorInputs, PersonInput, TestInput
from tests.git_project import PYTEST_INI, GitProject

SWEEP = "20261118-061200"
TEST_FILE = "tests/test_sums.py"

CODE = """def add(first, second):
    return first - second


def double(number):
    return number * 3


def halve(number):
    return number / 2


def name():
    return "sums"
"""

TESTS = """from sums import add, double, halve, name


def test_add():
    assert add(2, 3) == 5


def test_add_negative():
    assert add(-2, -3) == -5


def test_double():
    assert double(4) == 8


def test_halve():
    assert halve(4) == 2


def test_name():
    assert name() == "Sums"
"""

README = """# sums

Adds, doubles and halves.
"""

Files = Mapping[str, str | bytes | None]


class SweptProject:
    """The project, and the branches of its agents as the engine stores them."""

    def __init__(self, root: Path) -> None:
        self.git = GitProject(root)
        self.base = self.git.commit(
            "Begin", {"sums.py": CODE, TEST_FILE: TESTS, "README.md": README, "pytest.ini": PYTEST_INI}
        )
        self.branches: list[BranchInput] = []

    def agent(
        self, test: str, commits: Sequence[tuple[str, Files]], *, name: str = "", tip: str | None = None, **more: str
    ) -> BranchInput:
        """Create commits on an agent's branch, with the refs of pulled branches."""
        slug = name or test.replace("_", "-")
        self.git.git("checkout", "--quiet", "--detach", self.base)
        for message, files in commits:
            self.git.commit(message, files)
        made = self.git.git("rev-parse", "HEAD")
        if tip is None:
            self.git.git("update-ref", f"refs/swarm/{SWEEP}/{slug}", made)
        self.git.git("checkout", "--quiet", "main")
        source = BranchInput(
            agent=f"swarm-{SWEEP}-{slug}",
            test=f"{TEST_FILE}::{test}",
            branch=f"swarm/{SWEEP}/{slug}",
            tip=made if tip is None else tip,
            is_passing_after=True,
            **more,
        )
        self.branches.append(source)
        return source

    def inputs(self, *, measure_seconds: float = 0.0, **more: object) -> IntegratorInputs:
        """Return the input of an integrator, as the engine writes it."""
        tests = [line.split("(")[0].removeprefix("def ") for line in TESTS.splitlines() if line.startswith("def ")]
        results = {source.test: "impl_fix" for source in self.branches}
        ids = [f"{TEST_FILE}::{test}" for test in tests]
        fields: dict[str, object] = {
            "sweep": SWEEP,
            "repository": str(self.git.root),
            "base": self.base,
            "branch": f"swarm/{SWEEP}/integrated",
            "committer": PersonInput(name="Ada Lovelace", email="ada@example.org"),
            "branches": tuple(self.branches),
            "tests": tuple(
                TestInput(test=test, file=TEST_FILE, result=results.get(test, _found(test))) for test in ids
            ),
            "python": sys.executable,
            "measure_seconds": measure_seconds,
        }
        return IntegratorInputs.model_validate(fields | more)

    @property
    def repository(self) -> Repository:
        return Repository.open(self.git.root)

    def subjects(self, inputs: IntegratorInputs) -> list[str]:
        """Return the subjects of the integrated branch, oldest first."""
        listed = self.git.git("log", "--reverse", "--format=%s", f"{self.base}..refs/heads/{inputs.branch}")
        return listed.splitlines()

    def file(self, inputs: IntegratorInputs, path: str) -> str:
        """Return a file of the integrated branch."""
        return self.git.git("show", f"refs/heads/{inputs.branch}:{path}") + "\n"


def _found(test: str) -> str:
    """Return the report of an agent that changed nothing; only one of the tests passes."""
    return "clean" if test.endswith("halve") else "unresolved"


def changed(text: str, old: str, new: str) -> str:
    """Return a text with one place replaced, which must exist."""
    assert text.count(old) == 1, old
    return text.replace(old, new)


__all__ = ["CODE", "README", "SWEEP", "TESTS", "TEST_FILE", "ExcludedBranch", "SweptProject", "changed"]
