"""The search finds the smallest sets of additional reverts, even for chains of conflicts."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from swarm_tui.adapters.git import Repository
from swarm_tui.review.conflicts import ManualResolution, find_resolutions, manual_resolution
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder
from tests.git_project import GitProject
from tests.review.conftest import number_lines


def open_fixes(folder: Path, edits: list[list[int]]) -> tuple[Review, list[str]]:
    """Open a review with one fix for each entry, which changes these lines of a file; return it and the fixes."""
    project = GitProject(folder / "project")
    project.commit("base", {"lines.txt": number_lines({})})
    project.git("switch", "--quiet", "--create", "integrated")
    changed: dict[int, str] = {}
    fixes = []
    for number, lines in enumerate(edits, start=1):
        changed |= {line: f"fix {number} of line {line}" for line in lines}
        fixes.append(project.commit(f"[FIX_IMPL] Fix number {number}", {"lines.txt": number_lines(changed)}))
    kept = ReviewFolder(folder / "review/verdicts.jsonl", folder / "review")
    return Review.open(Repository.open(project.root), "main", "integrated", folder=kept), fixes


def by_trying_all(review: Review, reverted: frozenset[str]) -> set[frozenset[str]]:
    others = [fix.id for fix in review.fixes if fix.id not in reverted]
    for size in range(len(others) + 1):
        sets = (frozenset(more) for more in itertools.combinations(others, size))
        found = {more for more in sets if review.preview_of(reverted | more).is_clean}
        if found:
            return found
    return set()


edited_lines = st.lists(st.sampled_from([5, 6, 20, 21]), min_size=1, max_size=2)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.lists(st.sampled_from([5, 6, 20, 21]), min_size=1, max_size=2), min_size=2, max_size=5),
    st.integers(0, 3),
)
@example([[5], [5], [20], [5]], 0)
@example([[5, 20], [5], [20]], 0)
def test_smallest_sets_equal_exhaustive_search(edits: list[list[int]], first: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        review, fixes = open_fixes(Path(folder), edits)
        with review:
            reverted = frozenset({fixes[first % len(fixes)]})
            found = find_resolutions(review, reverted)
            assert found.is_exact
            sets = {frozenset(fix.id for fix in fixes) for fixes in found.sets}
            assert sets == by_trying_all(review, reverted)


def test_chain_of_twelve_is_searched_completely(tmp_path: Path) -> None:
    review, fixes = open_fixes(tmp_path, [[5]] * 12)
    with review:
        found = find_resolutions(review, {fixes[0]}, seconds=600)
        assert [[fix.id for fix in each] for each in found.sets] == [fixes[1:]]
        assert found.is_exact
        assert manual_resolution(review, fixes[0], {fixes[0]}) == (ManualResolution("lines.txt", 1, 2),)


def test_timed_out_search_is_marked_as_inexact(tmp_path: Path) -> None:
    review, fixes = open_fixes(tmp_path, [[5], [20], [5], [5], [21]])
    with review:
        found = find_resolutions(review, {fixes[0]}, seconds=0)
        assert [[fix.rank for fix in each] for each in found.sets] == [[3, 4]]
        assert not found.is_exact


@pytest.mark.parametrize("reverted", [set(), {1}])
def test_plan_without_conflicts_needs_no_more_reverts(tmp_path: Path, reverted: set[int]) -> None:
    review, fixes = open_fixes(tmp_path, [[5], [20]])
    with review:
        assert find_resolutions(review, {fixes[each] for each in reverted}).sets == ((),)
