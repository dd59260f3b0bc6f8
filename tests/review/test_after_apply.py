"""After a plan is applied, the commits, the status and the report page describe the new branch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarm_tui.cli.status import _table, describe_sweep
from swarm_tui.journal.open import open_sweep
from swarm_tui.report.page import write_report
from swarm_tui.review.apply import apply_plan, plan_apply, reviewed_branch
from swarm_tui.review.conflicts import find_resolutions
from swarm_tui.review.hand_over import pull_request
from swarm_tui.review.open import review_sweep
from swarm_tui.review.tests import ReviewTests
from swarm_tui.review.verdicts import Verdict, applied_branch_of, count_decided
from swarm_tui.room.fixes.tests import ReviewTestRunner
from swarm_tui.testing.settings import TestSettings
from tests.report.test_page import summary_of
from tests.room.larder import ENDED, LEFT_OUT, LarderSweep, begin_larder


@pytest.fixture
def sweep(tmp_path: Path) -> LarderSweep:
    made = begin_larder(tmp_path / "larder")
    made.work()
    made.begin_integrating()
    made.integrate()
    return made


def apply_without_weak_part(sweep: LarderSweep) -> str:
    """Leave out the weaker test, include the left-out fix, and apply as a clean branch; return its name."""
    (weak,) = [sweep.tests[name].branch for name, words in sweep.weaker.items() if words]
    with review_sweep(sweep.folder, by="ada") as review:
        (part,) = [part for part in review.load_parts().parts if weak in part.branches]
        review.set_verdict(part, Verdict.REVERT, "checks nothing")
        (left_out,) = review.load_left_out()
        for fix in find_resolutions(review, review.reverted | {left_out.id}).sets[0]:
            review.set_verdict(fix, Verdict.REVERT)
        review.set_verdict(left_out, Verdict.KEEP)
        for fix in review.open_fixes:
            review.set_verdict(fix, Verdict.KEEP)
        branch = reviewed_branch(review, sweep.folder.name)
        apply_plan(review, plan_apply(review, branch, is_drop=True), sweep=sweep.folder.name)
        assert LEFT_OUT not in "".join(fix.id for fix in review.fixes)
    return branch


def test_clean_branch_messages_name_only_its_content(sweep: LarderSweep) -> None:
    branch = apply_without_weak_part(sweep)
    (weak,) = [sweep.tests[name] for name, words in sweep.weaker.items() if words]
    git = sweep.project.git
    squashed, *_ = git("log", "--reverse", "--format=%H", f"{sweep.base}..{branch}").split()
    message = git("log", "-1", "--format=%B", squashed)
    assert message.startswith("[TEST/DOC] 3 better tests, 3 test fixes, 2 tutorial fixes\n")
    assert weak.agent not in message
    assert weak.test not in message
    trailers = git("log", "-1", "--format=%(trailers:key=Agent,valueonly)", squashed).split()
    assert len(trailers) == len(set(trailers)) == 8
    assert git("log", "-1", "--format=%(trailers:key=Sweep,valueonly)", squashed).strip() == sweep.folder.name
    taken = git("log", "-1", "--format=%(trailers:only)", branch).strip().split("\n")
    test = sweep.tests[LEFT_OUT]
    assert taken == [f"Agent: {test.agent}", f"Test: {test.test}", f"Sweep: {sweep.folder.name}"]
    for commit in git("log", "--format=%H", f"{sweep.base}..{branch}").split():
        assert "cherry picked" not in git("log", "-1", "--format=%B", commit)


def test_status_and_page_agree_with_the_applied_plan(sweep: LarderSweep, tmp_path: Path) -> None:
    before = summary_of(write_report(tmp_path / "before", open_sweep(sweep.folder), ENDED).page)
    branch = apply_without_weak_part(sweep)
    opened = open_sweep(sweep.folder)
    assert describe_sweep(opened)["applied"] == branch
    assert f"plan applied on {branch}" in list(_table(opened, []))
    page = summary_of(write_report(tmp_path / "after", opened, ENDED).page)
    made = page["integration"]
    assert made["reviewed"] == branch
    assert [left["branch"] for left in before["integration"]["left_out"]] == [sweep.tests[LEFT_OUT].branch]
    assert made["left_out"] == []
    assert [fix["verdict"] for fix in made["fixes"]].count("revert") == 3
    assert made["fixes"][-1]["title"] == "Convert units before adding up, refuse litres of flour"
    assert "weaker" not in made["squashed"]["title"]
    summaries = {test["test"]: test["summary"] for test in page["tests"]}
    (weak,) = [sweep.tests[name].test for name, words in sweep.weaker.items() if words]
    assert summaries[weak].startswith("left out in review: ")
    dropped = [test for test, words in summaries.items() if words.startswith("reverted in review")]
    assert len(dropped) >= 1
    assert page["turned_green"] == before["turned_green"] - sum(
        record.pulled.passing_before is False and record.test in dropped for record in opened.state.tests()
    )
    with review_sweep(sweep.folder) as review:
        verdicts = {fix.id: verdict for fix in review.fixes if (verdict := review.verdict(fix))}
        body = pull_request(review, review.preview(), verdicts, sweep.folder.name).body
    fixes, _, rest = body.partition("## Reverted")
    assert "Convert units before adding up, refuse litres of flour" in fixes
    assert "## Not integrated" not in rest


def test_later_verdict_marks_plan_as_not_applied(sweep: LarderSweep) -> None:
    apply_without_weak_part(sweep)
    with review_sweep(sweep.folder, by="ada") as review:
        folder = review.store.folder
        assert applied_branch_of(folder)
        # Verdicts on test changes are not verdicts on fixes.
        assert count_decided(folder) == len(review.fixes) + len(review.load_left_out())
        review.set_verdict(review.fixes[0], Verdict.LATER)
        assert applied_branch_of(folder) == ""


@pytest.mark.slow
async def test_tests_of_replaced_fix_run_on_both_branches(sweep: LarderSweep) -> None:
    apply_without_weak_part(sweep)
    state = open_sweep(sweep.folder).state
    with review_sweep(sweep.folder) as review:
        (left_out,) = review.load_left_out()
        replaced = next(fix for fix in review.fixes if fix.title == "Add amounts up in grams and millilitres")
        plan = review.reverted
        assert left_out.id in plan
        # With the replaced fix, the plan does not build.
        assert not review.preview_of(plan - {replaced.id}).is_clean
        tests = ReviewTests(review, TestSettings(sys.executable), state.tests())
        runner = ReviewTestRunner(review, tests)
        run = await runner.run_without_fix(replaced, plan, lambda: None)
        await runner.close()
    assert run.complaint == ""
    assert run.tests
    assert set(run.before) == set(run.after) == set(run.tests)
