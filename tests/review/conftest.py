"""A small project with an integrated branch, for the tests of reviews."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.review.changes import Change
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder
from tests.git_project import GitProject


@dataclass
class Integrated:
    """A project with a branch `integrated` of one commit of tests and five fixes.

    The fourth fix changes a line of the first one. The second and the third change other places.
    """

    project: GitProject
    base: str
    squashed: str
    fixes: list[str]
    folder: ReviewFolder

    def open(self, by: str = "ada", tip: str = "integrated") -> Review:
        return Review.open(Repository.open(self.project.root), "main", tip, folder=self.folder, by=by)


def number_lines(changed: dict[int, str]) -> str:
    return "".join(f"{changed.get(number, number)}\n" for number in range(1, 41))


@pytest.fixture
def integrated(tmp_path: Path) -> Integrated:
    project = GitProject(tmp_path / "project")
    base = project.commit("base", {"lines.txt": number_lines({}), "other.txt": "other\n"})
    project.git("switch", "--quiet", "--create", "integrated")
    squashed = project.commit("[TEST/DOC] tests and docs", {"tests/test_lines.py": "def test_it(): pass\n"})
    changed: dict[int, str] = {}
    fixes = []
    for number, line in ((1, 5), (2, 15), (3, 25), (4, 5)):
        changed[line] = f"fix {number}"
        fixes.append(project.commit(f"[FIX_IMPL] Fix number {number}", {"lines.txt": number_lines(changed)}))
    fixes.append(project.commit("[FIX_IMPL] Fix number 5", {"other.txt": "fixed\n"}))
    folder = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    return Integrated(project, base, squashed, fixes, folder)


@pytest.fixture
def review(integrated: Integrated) -> Iterator[Review]:
    with integrated.open() as opened:
        yield opened


def ranked(review: Review, rank: int) -> Change:
    return review.fixes[rank - 1]
