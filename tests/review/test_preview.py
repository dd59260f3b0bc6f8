"""The invariant of previews: they equal `git revert` id for id, and leave no trace."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.history import read_commits
from swarm_tui.adapters.git.merging import MergeResult, MergeWay, best_merge_way
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.review.changes import Conflict, Preview
from swarm_tui.review.ranking import branch_with_fixes
from swarm_tui.review.stack import Stack
from tests.git_project import GitProject, file_contents
from tests.review.conftest import Integrated, number_lines
from tests.review.found import FoundHistory, read_found_histories
from tests.review.histories import Edit, directory_renames, histories, play, revert_for_real, write_history

WAYS = list(MergeWay)


@contextmanager
def stack_of(project: GitProject, base: str, way: MergeWay | None = None) -> Iterator[Stack]:
    repository = Repository.open(project.root)
    commits = read_commits(repository, base, repository.resolve("main"))
    branch = branch_with_fixes(commits, base=base, base_tree=repository.tree_of(base), is_all=True)
    with ObjectSpace(repository, merge_way=way) as space:
        yield Stack(space, branch)


def ways_of_this_git() -> list[MergeWay]:
    with tempfile.TemporaryDirectory() as folder:
        best = best_merge_way(Repository.open(GitProject(Path(folder)).root).version)
    return WAYS[: WAYS.index(best) + 1]


def test_conflict_without_culprit_names_all_commits_of_file(integrated: Integrated) -> None:
    first, second, third, fourth, _ = integrated.fixes
    changed = {5: "fix 6", 15: "fix 2", 25: "fix 3"}
    sixth = integrated.project.commit("[FIX_IMPL] Fix number 6", {"lines.txt": number_lines(changed)})
    with integrated.open() as review:
        preview = review.preview_of([first, fourth])
    assert preview == Preview(
        reverted=(fourth, first),
        tree=None,
        conflicts=(
            Conflict(fourth, (sixth,), ("lines.txt",)),
            # The sixth commit requires the fourth, so it proves nothing alone.
            Conflict(first, (second, third, sixth), ("lines.txt",)),
        ),
    )


def test_conflict_names_commits_before_a_rename(integrated: Integrated) -> None:
    integrated.project.git("mv", "lines.txt", "moved.txt")
    integrated.project.commit("[FIX_IMPL] moves", {})
    with integrated.open() as review:
        preview = review.preview_of(integrated.fixes[:1])
    assert preview.conflicts == (Conflict(integrated.fixes[0], (integrated.fixes[3],), ("moved.txt",)),)


class CountingSpace(ObjectSpace):
    """Counts merges."""

    merges = 0

    def merge(self, *, base: str, ours: str, theirs: str) -> MergeResult:
        self.merges += 1
        return super().merge(base=base, ours=ours, theirs=theirs)


@pytest.mark.parametrize(("fix", "merges"), [(5, 0), (4, 0), (2, 1)])
def test_fix_with_untouched_files_is_reverted_without_merge(integrated: Integrated, fix: int, merges: int) -> None:
    repository = Repository.open(integrated.project.root)
    with integrated.open() as review, CountingSpace(repository) as space:
        assert Stack(space, review.branch).preview([integrated.fixes[fix - 1]]).is_clean
        assert space.merges == merges


def check_law(history: list[list[Edit]], reverted: Collection[int], directory_renames: str = "conflict") -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = GitProject(Path(folder) / "project")
        project.git("config", "merge.directoryRenames", directory_renames)
        base, *commits = write_history(project, play(history))
        project.git("reset", "--quiet", "--hard")
        chosen = [commit for number, commit in reversed(list(enumerate(commits))) if number in reverted]
        real_tree, real_conflicts = revert_for_real(Path(folder) / "scratch", project, chosen, directory_renames)
        before = file_contents(project.root)
        for way in ways_of_this_git():
            with stack_of(project, base, way) as stack:
                preview = stack.preview(chosen)
                steps = stack.without(chosen)
            conflicts = {conflict.commit: set(conflict.paths) for conflict in preview.conflicts}
            assert conflicts.keys() == real_conflicts.keys()
            for commit, paths in conflicts.items():
                assert paths
                assert paths == (real_conflicts[commit] or paths)
            assert (steps[-1].tree if steps else preview.tree) == real_tree
            assert preview.tree == (None if real_conflicts else real_tree)
        assert file_contents(project.root) == before


@pytest.mark.parametrize("found", read_found_histories(), ids=lambda found: found.name)
def test_preview_equals_git_revert_for_found_histories(found: FoundHistory) -> None:
    check_law(found.history, found.reverted, found.directory_renames)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, st.sets(st.integers(0, 6), max_size=4), directory_renames)
@example([[("edit", 0, 3, 0)], [("edit", 0, 3, 1)]], {0}, "conflict")
@example([[("rename folder", 0, 0, 0)], [("add", 5, 0, 0)], [("edit", 1, 2, 0)]], {0}, "conflict")
@example([[("delete", 0, 0, 0)], [("rename", 1, 0, 0)]], {0}, "conflict")
@example([[("edit", 0, 3, 0)], [("take back", 0, 0, 0)]], {0}, "conflict")
@example([[("folder to file", 2, 5, 0)], [("edit", 3, 2, 0)]], {0}, "conflict")
@example([[("attributes", 0, 0, 0)], [("edit", 1, 3, 1)], [("edit", 1, 3, 2)]], {1}, "conflict")
@example([[("mode", 0, 0, 0)], [("edit", 0, 0, 0)], [("link", 0, 0, 0)]], {0, 2}, "conflict")
def test_preview_equals_git_revert(history: list[list[Edit]], reverted: set[int], directory_renames: str) -> None:
    check_law(history, reverted, directory_renames)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories, st.sets(st.integers(0, 6), max_size=5), directory_renames)
def test_preview_equals_git_revert_for_long_histories(
    history: list[list[Edit]], reverted: set[int], directory_renames: str
) -> None:
    check_law(history, reverted, directory_renames)
