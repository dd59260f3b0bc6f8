"""Fixes that the integrator left out: found, and taken in as `git cherry-pick` would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.model.outcome import IntegratorOutcome, LeftOut
from swarm_tui.model.verdicts import Verdict
from swarm_tui.triage.apply import apply_proposal, propose
from swarm_tui.triage.parts import PartSource
from swarm_tui.triage.review import Review
from swarm_tui.triage.review_text import conflict_summary
from swarm_tui.triage.ways_out import ways_out
from tests.git_project import GitProject
from tests.triage.conftest import Integrated, number_lines


@pytest.fixture
def better(integrated: Integrated) -> str:
    """Return a commit that does better what the first and the fourth fix do, on a branch of its own."""
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
        outcome=IntegratorOutcome(failed=failed),
        sources=[PartSource("swarm/x/better", "better", "test_x", tip)],
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


def test_a_left_out_fix_is_swapped_in_for_those_that_it_fights_with(
    integrated: Integrated, review: Review, better: str, tmp_path: Path
) -> None:
    review.preview()
    fix, other = review.left_out
    assert (fix.id, fix.rank, fix.title, fix.tests, fix.agents) == (better, 6, "Do it better", ("test_x",), ("better",))
    first, fourth = review.fixes[0], review.fixes[3]
    conflict = review.preview_of({better}).conflicts[0]
    assert (conflict.commit, conflict.opponents, conflict.paths) == (better, (first.id, fourth.id), ("lines.txt",))
    assert "taking in the left-out fix" in conflict_summary(review.branch, review.preview_of({better}))
    assert ways_out(review, {better}).sets == ((first, fourth),)
    for each in (first, fourth):
        review.set_verdict(each, Verdict.REVERT)
    for each in (fix, other):
        review.set_verdict(each, Verdict.KEEP)
    preview = review.preview()
    picked = [fix.id, other.id]
    assert preview.tree == by_git(integrated.project, tmp_path / "scratch", [fourth.id, first.id], picked)
    for is_drop in (False, True):
        proposal = propose(review, f"reviewed-{is_drop}", is_drop=is_drop)
        assert proposal.subjects[-2:] == ("[FIX_IMPL] Do it better", "[FIX_IMPL] And something else")
        applied = apply_proposal(review, proposal)
        assert integrated.project.git("rev-parse", f"{applied.commit}^{{tree}}") == preview.tree
        assert f"cherry picked from commit {other.id}" in integrated.project.git("log", "-1", applied.commit)
    with integrated.open() as again:
        assert again.left_out == ()


def test_a_hunk_of_what_is_taken_in_is_left_out_as_if_its_commit_never_had_it(
    integrated: Integrated, review: Review, tmp_path: Path
) -> None:
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
        applied = apply_proposal(review, propose(review, f"reviewed-{is_drop}", is_drop=is_drop))
        assert project.git("rev-parse", f"{applied.commit}^{{tree}}") == preview.tree
        message = project.git("log", "-1", "--format=%b", applied.commit).strip()
        assert message == f"Without lines.txt:36.\n\n(cherry picked in part from commit {fix.id})"
    # One that loses all its hunks is out, and what is said of the whole overrules what was said of them.
    review.set_verdict(stays, Verdict.REVERT)
    assert not review.taken
    assert review.undo() == (stays,)
    assert review.preview() == preview
    review.set_verdict(fix, Verdict.KEEP)
    assert review.preview().tree == whole.tree


def test_what_is_taken_in_alone_can_be_applied(integrated: Integrated, review: Review) -> None:
    review.preview()
    review.set_verdict(review.left_out[1], Verdict.KEEP)
    applied = apply_proposal(review, propose(review, "reviewed"))
    assert applied.commits == 1
    assert integrated.project.git("show", f"{applied.commit}:new.txt") == "new"
    assert review.undo() == (review.left_out[1],)
    assert not review.preview().changes_something
