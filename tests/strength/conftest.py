"""A branch that changes sixty tests and fixes one bug."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder
from tests.git_project import PYTEST_INI, GitProject
from tests.strength.edits import EDITS, FIXED, PROGRAM, Edit, file_of_tests


def make_project(root: Path, edits: tuple[Edit, ...] = EDITS) -> GitProject:
    """Create a repository with the base on main, and the edited tests and the fix on the branch `integrated`."""
    project = GitProject(root)
    before = {
        "stock.py": PROGRAM.replace(*FIXED),
        "pytest.ini": PYTEST_INI,
        "tests/test_stock.py": file_of_tests(is_after=False, edits=edits),
    }
    project.commit("base", before)
    project.git("switch", "--quiet", "--create", "integrated")
    project.commit("[TEST/DOC] tests", {"tests/test_stock.py": file_of_tests(is_after=True, edits=edits)})
    project.commit("[FIX_IMPL] Count the last day", {"stock.py": PROGRAM})
    return project


def open_review(project: GitProject, folder: Path) -> Review:
    kept = ReviewFolder(folder / "verdicts.jsonl", folder)
    return Review.open(Repository.open(project.root), "main", "integrated", folder=kept, by="ada")


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    chosen = tuple(edit for edit in EDITS if edit.name in ("other_input", "passes_without_the_fix", "two_in_one"))
    return make_project(tmp_path / "project", chosen)


@pytest.fixture
def review(project: GitProject, tmp_path: Path) -> Iterator[Review]:
    with open_review(project, tmp_path / "review") as opened:
        yield opened
