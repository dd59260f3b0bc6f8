"""The order of reverts, and the reverts that need no merge: decided without git."""

from __future__ import annotations

import pytest

from swarm_tui.model.commits import Commit, FileChange
from swarm_tui.review.changes import IntegratedBranch
from swarm_tui.review.picking import can_be_picked_by_path, inverse
from swarm_tui.review.stack import later_commits_that_stay
from swarm_tui.review.verdicts import closing_line


def change(status: str, old_mode: str = "100644", new_mode: str = "100644", path: str = "a.txt") -> FileChange:
    return FileChange(path=path, status=status, old_mode=old_mode, new_mode=new_mode, old_id="1", new_id="2")


def commit(name: str, *changes: FileChange) -> Commit:
    return Commit(
        id=name,
        tree=f"tree of {name}",
        parent="p",
        parent_tree="t",
        author_name="Ada",
        author_email="ada@example.org",
        authored="1 +0000",
        message=name,
        changes=changes,
    )


COMMITS = commit("1", change("M")), commit("2", change("M", path="b.txt")), commit("3", change("M")), commit("4")
BRANCH = IntegratedBranch("base", "base tree", "4", "tip tree", COMMITS, ())


@pytest.mark.parametrize(
    ("changes", "is_possible"),
    [
        ([change("M")], True),
        ([change("M", "100644", "100755")], True),
        ([change("A", "000000")], True),
        ([change("A", "000000", path="b"), change("M")], True),
        ([change("T", "100644", "120000")], False),
        ([change("D", "100644", "000000")], False),
        ([change("M"), change("D", "100644", "000000", path="b")], False),
        ([], False),
    ],
)
def test_only_additions_and_edits_are_reverted_by_path(changes: list[FileChange], is_possible: bool) -> None:
    assert can_be_picked_by_path(inverse(commit("x", *changes))) is is_possible


def test_later_commits_stay_unless_reverted() -> None:
    assert later_commits_that_stay(BRANCH, "1", {"3"}) == (COMMITS[1], COMMITS[3])
    assert later_commits_that_stay(BRANCH, "2", set()) == COMMITS[2:]
    assert later_commits_that_stay(BRANCH, "4", set()) == ()


def test_closing_line_counts_each_verdict_once() -> None:
    verdicts = {"1": "keep", "2": "revert", "3": "later", "x": "revert"}
    assert closing_line(verdicts, ["1", "2", "3", "4"]) == "reviewed 2 of 4, 1 reverted, 2 open"
    assert closing_line({"1": "partly"}, ["1", "2"]) == "reviewed 1 of 2, 0 reverted, 1 partly, 1 open"
