"""Fixes whose commits also change tests: the row, the list and the evidence name these tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.model.test_strength import StrengthChangeKind
from swarm_tui.review.hand_over import pull_request
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder
from swarm_tui.room.draw.spans import text_of
from swarm_tui.room.fixes.draw import draw_strength
from swarm_tui.room.fixes.tests import ChangedTests
from swarm_tui.strength.review import ReviewStrength
from swarm_tui.testing.settings import TestSettings
from tests.git_project import GitProject

TESTS = """\
from program import one, two


def test_one():
    assert one() == 1


def test_two():
    assert two() == 2
    assert two() > 0


def test_three():
    assert one() + two() == 3
"""


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "project")
    program = "def one():\n    return 0\n\n\ndef two():\n    return 0\n"
    project.commit(
        "base", {"program.py": program, "test_all.py": TESTS, "test_more.py": "def test_m():\n    assert f()\n"}
    )
    project.git("switch", "--quiet", "--create", "fixed")
    mixed = TESTS.replace("def test_one", "def test_first").replace("== 2\n", "\n")
    project.commit("[FIX_IMPL] Return one", {"program.py": program.replace("0", "1", 1), "test_all.py": mixed})
    project.commit("[FIX_IMPL] Return two", {"program.py": program.replace("0", "2"), "test_more.py": None})
    project.commit("[FIX_IMPL] Say so", {"program.py": f"# {program}"})
    return project


@pytest.fixture
def review(project: GitProject, tmp_path: Path) -> Iterator[Review]:
    folder = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    with Review.open(Repository.open(project.root), "main", "fixed", folder=folder, by="ada") as opened:
        yield opened


async def test_row_of_a_mixed_fix_has_mark_and_reason(review: Review) -> None:
    changed = ChangedTests(ReviewStrength(review, TestSettings(sys.executable)))
    await changed.load([fix.commit for fix in review.fixes])
    first, second, third = (changed.of_row(fix, ()) for fix in review.fixes)
    found = {strength.test: (strength.is_weaker, strength.is_renamed) for strength in first}
    assert found == {"test_all.py::test_two": (True, False), "test_all.py::test_one": (False, True)}
    assert [(strength.test, [sign.kind for sign in strength.signs]) for strength in second] == [
        ("test_more.py::test_m", [StrengthChangeKind.REMOVED])
    ]
    assert list(third) == []
    lines = [text_of(line).strip() for line in draw_strength(first, 80)]
    assert "renamed · its id no longer exists: it is now test_all.py::test_first" in lines
    assert "weaker · a check was loosened" in lines


def test_list_and_pull_request_name_weakened_tests(project: GitProject, review: Review) -> None:
    words = [sys.executable, "-m", "swarm_tui", "fixes", "--base", "main", "fixed", "--list"]
    listed = subprocess.run(words, cwd=project.root, capture_output=True, text=True, check=True).stdout
    assert "▼ test_all.py::test_two: a check was loosened" in listed
    assert "▼ test_all.py::test_one: its id no longer exists: it is now test_all.py::test_first" in listed
    assert "▼ test_more.py::test_m: the test is gone" in listed
    weaker = ReviewStrength(review, TestSettings(sys.executable)).sentences(review.fixes)
    assert set(weaker) == {fix.id for fix in review.fixes[:2]}
    body = pull_request(review, review.preview(), {}, "", weaker).body
    assert "  - ▼ `test_more.py::test_m: the test is gone`" in body
