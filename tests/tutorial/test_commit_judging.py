"""Judging an agent's commits on its batch: completed blocks and rejected commits."""

from __future__ import annotations

import itertools

import pytest

from swarm_tui.tutorial.citations import BrokenFile, find_tests
from swarm_tui.tutorial.judging import CommitEffect, CommitVerdict, judge_commits, tutorial_state, unfinished_items
from swarm_tui.tutorial.open_work import Action, OpenBlock, find_open_work
from swarm_tui.tutorial.read import CommittedTutorial
from tests.tutorial.test_open_work import cite

TUTORIAL = "# one\nrun one\n\n# two\nrun two\n\n## LATER\n\n# three is to come\n\n# four is to come\n"
ONE, TWO = cite("test_one", "# one", "run one"), cite("test_two", "# two", "run two")
TESTS = "tests/test_it.py"


def at(tutorial: str | None = TUTORIAL, source: str = "") -> CommittedTutorial:
    return CommittedTutorial(tutorial, (find_tests(source.encode(), TESTS),), (TESTS,))


def judged(
    action: Action, *tutorials: CommittedTutorial, paths: tuple[str, ...] | None = None, failing: str = ""
) -> tuple[tuple[OpenBlock, ...], list[CommitVerdict]]:
    items = find_open_work(action, tutorials[0]).items
    states = [tutorial_state(action, items, tutorial) for tutorial in tutorials]
    touched = paths or ((TESTS,) if action == "sync" else ("tutorial.sh",))
    made = [
        CommitEffect(str(number), touched, before, after)
        for number, (before, after) in enumerate(itertools.pairwise(states))
    ]
    bad = {items[0].key: failing} if failing else {}
    return items, judge_commits(action, items, made, "tests" if action == "sync" else "tutorial.sh", bad)


def test_commit_belongs_to_block_it_tests() -> None:
    _, verdicts = judged("sync", at(), at(source=ONE), at(source=ONE + TWO))
    assert [[item.title for item in verdict.items] for verdict in verdicts] == [["one"], ["two"]]
    assert not any(verdict.problem for verdict in verdicts)


def test_commit_with_failing_test_is_rejected() -> None:
    items, verdicts = judged("sync", at(), at(source=ONE), at(source=ONE + TWO), failing="its test fails")
    assert [verdict.problem for verdict in verdicts] == ["its test fails", ""]
    assert unfinished_items(items, verdicts, (), "nothing") == [(items[0], "its test fails")]


@pytest.mark.parametrize(
    ("states", "paths", "problem"),
    [
        ([at(), at(source=ONE)], (TESTS, "src/run.py"), "it changes src/run.py; only tests may change"),
        ([at(), at(source=ONE)], ("tests_of_mine/a.py",), "it changes tests_of_mine/a.py"),
        ([at(), at(TUTORIAL + "\n# more\n", ONE)], None, "it changes the tutorial itself"),
        ([at(), at(None, ONE)], None, "unreadable"),
        ([at(), CommittedTutorial(TUTORIAL, (BrokenFile(TESTS, 1, "bad"),), (TESTS,))], None, "unreadable"),
        ([at(source=ONE), at(source=TWO)], None, "it removes the test of '# one run one'"),
        ([at(), at(source=ONE + cite("test_odd", "# odd", "x"))], None, "test_odd cites no block"),
        ([at(), at(source="import os\n")], None, "it completes no block"),
    ],
)
def test_forbidden_changes_of_test_commits_are_rejected(
    states: list[CommittedTutorial], paths: tuple[str, ...] | None, problem: str
) -> None:
    _, (verdict,) = judged("sync", *states, paths=paths)
    assert problem in verdict.problem


def test_preparing_commit_is_kept_with_block() -> None:
    _, verdicts = judged("sync", at(), at(source="import os\n"), at(source="import os\n" + ONE))
    assert [verdict.problem for verdict in verdicts] == ["", ""]


def test_edited_block_needs_updated_or_removed_test() -> None:
    old = cite("test_one", "# one", "run one --old")
    mended, beside = at(source=ONE + TWO), at(source=old + cite("test_new", "# one", "run one") + TWO)
    for after, is_done in (
        (mended, True),
        (at(source=cite("test_new", "# one", "run one") + TWO), True),
        (beside, False),
    ):
        items, verdicts = judged("sync", at(source=old + TWO), after)
        assert bool(verdicts[0].items) is is_done
        assert is_done != bool(unfinished_items(items, verdicts, (), "not mended"))


def test_comment_is_filled_by_commands_below() -> None:
    filled = TUTORIAL.replace("# three is to come\n", "# three is to come\nrun three\n")
    items, (verdict,) = judged("fill", at(), at(filled))
    assert [item.title for item in verdict.items] == ["three is to come"]
    assert unfinished_items(items, [verdict], (), "none") == [(items[1], "none")]
    assert unfinished_items(items, [verdict], ["Four is to come "], "none") == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("run two", "run two --changed"),
        ("## LATER\n", ""),
        ("# one\nrun one\n\n", ""),
        ("# four is to come\n", "# four will come\nrun four\n"),
        ("# three is to come\n", "# three is to come\n\nrun three\n"),
    ],
)
def test_commit_with_other_changes_is_rejected(old: str, new: str) -> None:
    assert old in TUTORIAL
    _, (verdict,) = judged("fill", at(), at(TUTORIAL.replace(old, new)))
    assert verdict.problem == "it changes other parts of the tutorial"
