"""Measuring test strength with real pytest in real copies of a branch."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import pytest

from swarm_tui.cli.fixes_actions import strength_as_list
from swarm_tui.model.formatting import Progress
from swarm_tui.model.run_limits import Confinement, RunLimits
from swarm_tui.model.test_strength import StrengthChange, StrengthChangeKind, TestStrength, weakest_first
from swarm_tui.review.review import Review
from swarm_tui.strength.review import ReviewStrength
from swarm_tui.testing.settings import TestSettings
from tests.git_project import GitProject, file_contents
from tests.strength.conftest import open_review

FILE = "tests/test_stock.py"


def strength_of(found: list[TestStrength], name: str) -> TestStrength:
    return next(strength for strength in found if strength.test == f"{FILE}::test_{name}")


@pytest.mark.slow
@pytest.mark.needs("bwrap")
@pytest.mark.usefixtures("namespaces")
async def test_covered_lines_of_confined_test_are_recorded(review: Review) -> None:
    settings = TestSettings(sys.executable, limits=RunLimits(confinement=Confinement()))
    found = await ReviewStrength(review, settings, budget=math.inf).measure(lambda _: None)
    assert strength_of(found, "other_input").kills_before


@pytest.mark.slow
async def test_mutants_beyond_time_limit_are_skipped(review: Review) -> None:
    ticks = itertools.count()
    # With this clock, every run takes at least as long as the first one, so the speed of the machine is irrelevant.
    strength = ReviewStrength(review, TestSettings(sys.executable), budget=12.0, clock=lambda: float(next(ticks)))
    found = await strength.measure(lambda _: None)
    notes = [test.note for test in found if test.is_measured]
    assert any("skipped: the time limit of 12 runs was reached" in note for note in notes)
    # Runs that were in progress at the limit are finished.
    assert 5 <= strength.cost <= 2 * 12


@pytest.mark.slow
async def test_weaker_tests_are_measured_stored_and_first(project: GitProject, review: Review, tmp_path: Path) -> None:
    before = file_contents(project.root)
    settings = TestSettings(sys.executable)
    strength = ReviewStrength(review, settings, budget=math.inf)
    assert [found.is_weaker for found in strength.known()] == [False, False, False]
    assert strength.unmeasured == 3
    seen: list[Progress] = []
    found = await strength.measure(seen.append)
    # The source of the one shows nothing, but it detects less. The other no longer detects the bug.
    weaker, without_fix = strength_of(found, "other_input"), strength_of(found, "passes_without_the_fix")
    assert weaker.signs == ()
    assert weaker.is_weaker
    assert weaker.kills_before is not None
    assert weaker.kills_after is not None
    assert weaker.kills_after < weaker.kills_before <= weaker.faults
    assert all(fault.startswith("stock.py:") for fault in weaker.missed)
    assert without_fix.misses_bug
    assert "passes without the fix" in without_fix.words
    # The measurement refutes the suspicion from the source of this one.
    honest = strength_of(found, "two_in_one")
    assert [sign.kind for sign in honest.signs] == [StrengthChangeKind.LOST]
    assert not honest.is_weaker
    assert found == weakest_first(found)
    assert found[-1] == honest
    assert strength.cost > 0
    assert seen[0].words == "tracing the changed tests"
    assert (seen[-1].done, seen[-1].total) == (seen[-1].total, seen[-1].total)
    assert file_contents(project.root) == before
    # Nothing is run twice, even in a review that is opened later.
    with open_review(project, tmp_path / "review") as again:
        kept = ReviewStrength(again, settings)
        assert kept.unmeasured == 0
        assert kept.known() == found
        assert ReviewStrength(again, TestSettings(sys.executable, options=("-q",))).unmeasured == 3

    # A stopped measurement resumes after the finished mutants.
    (tmp_path / "review/strength.jsonl").unlink()
    results = {path: path.read_bytes() for path in (tmp_path / "review/tests").iterdir()}
    assert results
    assert await ReviewStrength(review, settings, budget=math.inf).measure(lambda _: None) == found
    assert {path: path.read_bytes() for path in (tmp_path / "review/tests").iterdir()} == results

    rows = strength_as_list(found, {weaker.test: "It is simpler now."})
    assert rows[-1] == "3 changed or new tests, 2 weaker"
    assert "    agent: It is simpler now." in rows
    assert f"  {honest.test}  a check is gone, {honest.kill_words}" in rows


def test_description_of_measured_test() -> None:
    test = TestStrength(
        test="t", file="t.py", is_measured=True, faults=20, kills_before=14, kills_after=6, missed=("a", "b")
    )
    assert test.words == "kills 14 to 6 of 20 ▼"
    assert test.is_weaker
    stronger = test.model_copy(update={"kills_before": 6, "kills_after": 14, "missed": ()})
    assert stronger.words == "kills 6 to 14 of 20 ▲"
    assert not stronger.is_weaker
    one = test.model_copy(update={"kills_before": 7, "missed": ("a",)})
    assert not one.is_weaker
    lost = (StrengthChange(kind=StrengthChangeKind.LOST),)
    assert one.model_copy(update={"signs": lost, "is_measured": True}).is_weaker
    assert not TestStrength(test="t", file="t.py", signs=lost).is_weaker
    assert TestStrength(test="t", file="t.py", signs=(StrengthChange(kind=StrengthChangeKind.LOOSENED),)).is_weaker
    assert not stronger.model_copy(update={"signs": (StrengthChange(kind=StrengthChangeKind.LOOSENED),)}).is_weaker
    assert stronger.model_copy(update={"signs": (StrengthChange(kind=StrengthChangeKind.SKIPPED),)}).is_weaker
    assert test.model_copy(update={"is_new": True, "kills_before": None, "kills_after": 0}).detects_nothing
