"""What an agent made of its batch: blocks that got their tests or commands, and commits that may not be taken."""

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


def test_each_commit_stands_for_the_block_that_got_its_test_by_it() -> None:
    _, verdicts = judged("sync", at(), at(source=ONE), at(source=ONE + TWO))
    assert [[item.title for item in verdict.items] for verdict in verdicts] == [["one"], ["two"]]
    assert not any(verdict.problem for verdict in verdicts)


def test_a_commit_whose_test_does_not_pass_is_not_taken() -> None:
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
def test_what_a_commit_for_tests_may_not_do(
    states: list[CommittedTutorial], paths: tuple[str, ...] | None, problem: str
) -> None:
    _, (verdict,) = judged("sync", *states, paths=paths)
    assert problem in verdict.problem


def test_what_prepares_for_a_block_is_taken_with_it() -> None:
    _, verdicts = judged("sync", at(), at(source="import os\n"), at(source="import os\n" + ONE))
    assert [verdict.problem for verdict in verdicts] == ["", ""]


def test_an_edited_block_is_done_when_its_old_test_is_mended_or_gone() -> None:
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


def test_a_comment_is_filled_when_commands_stand_right_below_it() -> None:
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
def test_a_commit_that_changes_more_than_its_comments_is_not_taken(old: str, new: str) -> None:
    assert old in TUTORIAL
    _, (verdict,) = judged("fill", at(), at(TUTORIAL.replace(old, new)))
    assert verdict.problem == "it changes other parts of the tutorial"
