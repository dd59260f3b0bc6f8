"""Measured teeth: the real pytest on real copies of a branch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarm_tui.cli.fixes_teeth import teeth_as_list
from swarm_tui.model.limits import Confinement, RunLimits
from swarm_tui.model.progress import Progress
from swarm_tui.model.teeth import Sign, SignKind, TestTeeth, weakest_first
from swarm_tui.teeth.measure import BUDGET
from swarm_tui.teeth.review_teeth import ReviewTeeth
from swarm_tui.testing.settings import TestSettings
from swarm_tui.triage.review import Review
from tests.git_project import GitProject, file_contents
from tests.teeth.conftest import open_review

FILE = "tests/test_stock.py"


def teeth_of(found: list[TestTeeth], name: str) -> TestTeeth:
    return next(teeth for teeth in found if teeth.test == f"{FILE}::test_{name}")


@pytest.mark.slow
@pytest.mark.needs("bwrap")
@pytest.mark.usefixtures("namespaces")
async def test_what_a_confined_test_covers_is_seen(review: Review) -> None:
    settings = TestSettings(sys.executable, limits=RunLimits(confinement=Confinement()))
    found = await ReviewTeeth(review, settings).measure(lambda _: None)
    assert teeth_of(found, "other_input").kills_before


@pytest.mark.slow
async def test_weaker_tests_are_measured_kept_and_sorted_first(
    project: GitProject, review: Review, tmp_path: Path
) -> None:
    before = file_contents(project.root)
    settings = TestSettings(sys.executable)
    teeth = ReviewTeeth(review, settings)
    assert [found.is_weaker for found in teeth.known()] == [False, False, False]
    assert teeth.unmeasured == 3
    seen: list[Progress] = []
    found = await teeth.measure(seen.append)
    # Its source says nothing of the one: it notices less, and neither does the other notice the bug any more.
    weaker, without_fix = teeth_of(found, "other_input"), teeth_of(found, "passes_without_the_fix")
    assert weaker.signs == ()
    assert weaker.is_weaker
    assert weaker.kills_before is not None
    assert weaker.kills_after is not None
    assert weaker.kills_after < weaker.kills_before <= weaker.faults
    assert all(fault.startswith("stock.py:") for fault in weaker.missed)
    assert without_fix.misses_bug
    assert "passes without the fix" in without_fix.words
    # And what its source said of this one is not so.
    honest = teeth_of(found, "two_in_one")
    assert [sign.kind for sign in honest.signs] == [SignKind.LOST]
    assert not honest.is_weaker
    assert found == weakest_first(found)
    assert found[-1] == honest
    assert 0 < teeth.cost <= BUDGET
    assert seen[0].words == "teeth: looking what the tests cover"
    assert (seen[-1].done, seen[-1].total) == (seen[-1].total, seen[-1].total)
    assert file_contents(project.root) == before
    # Nothing is run twice, here or in a review that is opened later.
    with open_review(project, tmp_path / "review") as again:
        kept = ReviewTeeth(again, settings)
        assert kept.unmeasured == 0
        assert kept.known() == found
        assert ReviewTeeth(again, TestSettings(sys.executable, options=("-q",))).unmeasured == 3

    # What was stopped before its end goes on from the faults that were tried.
    (tmp_path / "review/teeth.jsonl").unlink()
    results = {path: path.read_bytes() for path in (tmp_path / "review/tests").iterdir()}
    assert results
    assert await ReviewTeeth(review, settings).measure(lambda _: None) == found
    assert {path: path.read_bytes() for path in (tmp_path / "review/tests").iterdir()} == results

    rows = teeth_as_list(found, {weaker.test: "It is simpler now."})
    assert rows[-1] == "3 tests changed or new, 2 weaker"
    assert "    its agent says: It is simpler now." in rows
    assert f"  {honest.test}  a check is gone, {honest.kill_words}" in rows


def test_what_is_said_of_a_test() -> None:
    test = TestTeeth(
        test="t", file="t.py", is_measured=True, faults=20, kills_before=14, kills_after=6, missed=("a", "b")
    )
    assert test.words == "kills 14 to 6 of 20 ▼"
    assert test.is_weaker
    stronger = test.model_copy(update={"kills_before": 6, "kills_after": 14, "missed": ()})
    assert stronger.words == "kills 6 to 14 of 20 ▲"
    assert not stronger.is_weaker
    one = test.model_copy(update={"kills_before": 7, "missed": ("a",)})
    assert not one.is_weaker
    lost = (Sign(kind=SignKind.LOST),)
    assert one.model_copy(update={"signs": lost, "is_measured": True}).is_weaker
    assert not TestTeeth(test="t", file="t.py", signs=lost).is_weaker
    assert TestTeeth(test="t", file="t.py", signs=(Sign(kind=SignKind.LOOSENED),)).is_weaker
    assert not stronger.model_copy(update={"signs": (Sign(kind=SignKind.LOOSENED),)}).is_weaker
    assert stronger.model_copy(update={"signs": (Sign(kind=SignKind.SKIPPED),)}).is_weaker
    assert test.model_copy(update={"is_new": True, "kills_before": None, "kills_after": 0}).is_toothless
