"""Left-out fixes: finding them, and including them like `git cherry-pick`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.model.report import IntegratorReport, LeftOut
from swarm_tui.review.apply import apply_plan, plan_apply
from swarm_tui.review.changes import AgentBranch
from swarm_tui.review.conflicts import find_resolutions
from swarm_tui.review.review import Review
from swarm_tui.review.shapes import conflict_summary
from swarm_tui.review.verdicts import Verdict
from tests.git_project import GitProject
from tests.review.conftest import Integrated, number_lines


@pytest.fixture
def better(integrated: Integrated) -> str:
    """Return a commit on a new branch that combines and improves the first and the fourth fix."""
    project = integrated.project
    project.git("switch", "--quiet", "--create", "swarm/x/better", "main")
    better = project.commit("[FIX_IMPL] Do it better", {"lines.txt": number_lines({5: "better", 36: "more"})})
    project.commit("[FIX_IMPL] And something else", {"new.txt": "new\n"})
    project.git("switch", "--quiet", "integrated")
    return better


@pytest.fixture
def review(integrated: Integrated, better: str) -> Iterator[Review]:
    failed = (
        LeftOut(branch="swarm/x/better", commit=better, reason="conflicts"),
        LeftOut(branch="swarm/x/better"),
        LeftOut(branch="swarm/x/gone", commit="f" * 40),
        LeftOut(branch="main", commit=integrated.base),
        LeftOut(branch="swarm/x/taken", commit=integrated.fixes[0]),
    )
    tip = integrated.project.git("rev-parse", "swarm/x/better")
    with Review.open(
        Repository.open(integrated.project.root),
        "main",
        "integrated",
        folder=integrated.folder,
        outcome=IntegratorReport(failed=failed),
        sources=[AgentBranch("swarm/x/better", "better", "test_x", tip)],
        by="ada",
    ) as opened:
        yield opened


def by_git(project: GitProject, scratch: Path, reverted: list[str], picked: list[str]) -> str:
    project.git("clone", "--quiet", "--shared", ".", str(scratch))
    clone = GitProject(scratch)
    for commit in reverted:
        clone.git("revert", "--no-edit", commit)
    for commit in picked:
        clone.git("fetch", "--quiet", str(project.root), commit)
        clone.git("cherry-pick", commit)
    return clone.git("rev-parse", "HEAD^{tree}")


def test_left_out_fix_replaces_conflicting_fixes(
    integrated: Integrated, review: Review, better: str, tmp_path: Path
) -> None:
    review.preview()
    fix, other = review.left_out
    assert (fix.id, fix.rank, fix.title, fix.tests, fix.agents) == (better, 6, "Do it better", ("test_x",), ("better",))
    first, fourth = review.fixes[0], review.fixes[3]
    conflict = review.preview_of({better}).conflicts[0]
    assert (conflict.commit, conflict.opponents, conflict.paths) == (better, (first.id, fourth.id), ("lines.txt",))
    assert "including the left-out fix" in conflict_summary(review.branch, review.preview_of({better}))
    assert find_resolutions(review, {better}).sets == ((first, fourth),)
    for each in (first, fourth):
        review.set_verdict(each, Verdict.REVERT)
    for each in (fix, other):
        review.set_verdict(each, Verdict.KEEP)
    preview = review.preview()
    picked = [fix.id, other.id]
    assert preview.tree == by_git(integrated.project, tmp_path / "scratch", [fourth.id, first.id], picked)
    for is_drop in (False, True):
        proposal = plan_apply(review, f"reviewed-{is_drop}", is_drop=is_drop)
        assert proposal.subjects[-2:] == ("[FIX_IMPL] Do it better", "[FIX_IMPL] And something else")
        applied = apply_plan(review, proposal)
        assert integrated.project.git("rev-parse", f"{applied.commit}^{{tree}}") == preview.tree
        trailers = integrated.project.git("log", "-1", "--format=%(trailers)", applied.commit)
        assert trailers.strip() == "Agent: better\nTest: test_x"
        # `swarm-tui clean` removes the ref to the agent's own commit.
        assert other.id not in integrated.project.git("log", "-1", applied.commit)
    with integrated.open() as again:
        assert again.left_out == ()


def test_hunk_of_included_fix_can_be_left_out(integrated: Integrated, review: Review, tmp_path: Path) -> None:
    review.preview()
    fix, project = review.left_out[0], integrated.project
    first, fourth = review.fixes[0], review.fixes[3]
    review.set_verdicts([(first, Verdict.REVERT), (fourth, Verdict.REVERT), (fix, Verdict.KEEP)])
    whole = review.preview()
    stays, goes = review.load_hunks(fix)
    review.set_verdict(goes, Verdict.REVERT)
    assert review.verdict(fix) is Verdict.PARTLY
    assert review.taken == (fix,)
    preview = review.preview()
    project.git("switch", "--quiet", "--detach", "main")
    alone = project.commit("[FIX_IMPL] Only in part", {"lines.txt": number_lines({5: "better"})})
    project.git("switch", "--quiet", "integrated")
    assert preview.tree == by_git(project, tmp_path / "scratch", [fourth.id, first.id], [alone])
    for is_drop in (False, True):
        applied = apply_plan(review, plan_apply(review, f"reviewed-{is_drop}", is_drop=is_drop))
        assert project.git("rev-parse", f"{applied.commit}^{{tree}}") == preview.tree
        message = project.git("log", "-1", "--format=%b", applied.commit).strip()
        assert message == "Without lines.txt:36.\n\nAgent: better\nTest: test_x"
    # A fix without any hunks is left out, and a verdict on the fix overrides verdicts on its hunks.
    review.set_verdict(stays, Verdict.REVERT)
    assert not review.taken
    assert review.undo() == (stays,)
    assert review.preview() == preview
    review.set_verdict(fix, Verdict.KEEP)
    assert review.preview().tree == whole.tree


def test_plan_with_only_an_included_fix_is_applied(integrated: Integrated, review: Review) -> None:
    review.preview()
    review.set_verdict(review.left_out[1], Verdict.KEEP)
    applied = apply_plan(review, plan_apply(review, "reviewed"))
    assert applied.commits == 1
    assert integrated.project.git("show", f"{applied.commit}:new.txt") == "new"
    assert review.undo() == (review.left_out[1],)
    assert not review.preview().changes_something
