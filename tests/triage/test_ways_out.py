"""The smallest sets of further reverts are found, for chains too, and none smaller is missed."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from swarm_tui.adapters.git import Repository
from swarm_tui.triage.review import Review
from swarm_tui.triage.store import ReviewFolder
from swarm_tui.triage.ways_out import HandWork, hand_work, ways_out
from tests.git_project import GitProject
from tests.triage.conftest import number_lines


def open_fixes(folder: Path, edits: list[list[int]]) -> tuple[Review, list[str]]:
    """Open a review of one fix for each entry, which changes these lines of one file; return it and the fixes."""
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
def test_the_smallest_sets_are_those_that_trying_all_would_find(edits: list[list[int]], first: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        review, fixes = open_fixes(Path(folder), edits)
        with review:
            reverted = frozenset({fixes[first % len(fixes)]})
            found = ways_out(review, reverted)
            assert found.is_exact
            sets = {frozenset(fix.id for fix in fixes) for fixes in found.sets}
            assert sets == by_trying_all(review, reverted)


def test_a_chain_of_twelve_is_searched_to_its_end(tmp_path: Path) -> None:
    review, fixes = open_fixes(tmp_path, [[5]] * 12)
    with review:
        found = ways_out(review, {fixes[0]}, seconds=600)
        assert [[fix.id for fix in each] for each in found.sets] == [fixes[1:]]
        assert found.is_exact
        assert hand_work(review, fixes[0], {fixes[0]}) == (HandWork("lines.txt", 1, 2),)


def test_a_search_that_is_given_up_says_so(tmp_path: Path) -> None:
    review, fixes = open_fixes(tmp_path, [[5], [20], [5], [5], [21]])
    with review:
        found = ways_out(review, {fixes[0]}, seconds=0)
        assert [[fix.rank for fix in each] for each in found.sets] == [[3, 4]]
        assert not found.is_exact


@pytest.mark.parametrize("reverted", [set(), {1}])
def test_where_nothing_conflicts_nothing_more_is_needed(tmp_path: Path, reverted: set[int]) -> None:
    review, fixes = open_fixes(tmp_path, [[5], [20]])
    with review:
        assert ways_out(review, {fixes[each] for each in reverted}).sets == ((),)
