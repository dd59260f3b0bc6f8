"""Test changes in row 0, the commit of test and doc fixes, and the invariant of a plan that leaves out some of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from swarm_tui.adapters.git import Repository
from swarm_tui.model.report import IntegratorReport
from swarm_tui.review.apply import apply_plan, plan_apply
from swarm_tui.review.changes import AgentBranch, Change, Conflict
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder, Verdict
from tests.git_project import GitProject, file_contents
from tests.review.conftest import number_lines
from tests.review.histories import Edit, changes, directory_renames
from tests.review.picking import Picked, pick_rest_for_real, write_integrated

works = st.lists(st.lists(changes, min_size=1, max_size=2), min_size=1, max_size=5)


def open_picked(folder: Path, picked: Picked) -> Review:
    squashed = [{"branch": f"agents/{number}", "commit": commit} for number, commit in enumerate(picked.parts)]
    outcome = IntegratorReport(squashed_commits=squashed)  # type: ignore[call-arg]  # as the integrator writes it
    review = ReviewFolder(folder / "review/verdicts.jsonl", folder / "review")
    return Review.open(Repository.open(picked.project.root), picked.base, "main", folder=review, outcome=outcome)


def check_law(parts: list[list[Edit]], fixes: list[list[Edit]], numbers: set[int], renames: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        picked = write_integrated(folder, parts, fixes, renames)
        if picked.project.git("rev-parse", f"{picked.squashed}^{{tree}}", f"{picked.base}^{{tree}}").count("\n") != 1:
            return
        before = file_contents(picked.project.root)
        with open_picked(folder, picked) as review:
            found = review.load_parts()
            assert not found.are_hunks or not picked.parts
            owners = [commit.id for commit in found.picks]
            # Users select test changes. Identical work of several agents is one test change.
            chosen = {owners[number] for number in numbers if number < len(owners)}
            reverted = {picked.fixes[number] for number in numbers if number < len(picked.fixes)}
            left_out = {commit for commit, owner in zip(picked.parts, owners, strict=True) if owner in chosen}
            preview = review.preview_of(chosen | reverted)
        if not chosen:
            return
        tree, stopped = pick_rest_for_real(folder / "scratch", picked, left_out | reverted, renames)
        assert preview.tree == (None if stopped else tree)
        assert bool(preview.conflicts) == bool(stopped)
        blocked = {other for conflict in preview.conflicts for other in conflict.opponents}
        owner_of = dict(zip(picked.parts, owners, strict=True))
        assert blocked == {owner_of.get(commit, commit) for commit in stopped}
        assert {conflict.commit for conflict in preview.conflicts} <= chosen | reverted
        assert set(preview.left_out) == chosen
        assert set(preview.reverted) == reverted
        assert file_contents(picked.project.root) == before


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(works, works, st.sets(st.integers(0, 4), min_size=1, max_size=3), directory_renames)
@example([[("edit", 0, 3, 0)], [("edit", 0, 3, 0)], [("edit", 0, 9, 1)]], [[("edit", 1, 3, 0)]], {0}, "conflict")
@example([[("rename folder", 0, 0, 0)], [("add", 2, 0, 0)]], [[("edit", 2, 3, 0)]], {0}, "conflict")
@example([[("rename folder", 0, 0, 0)], [("add", 2, 0, 0)]], [[("edit", 2, 3, 0)]], {0}, "true")
@example([[("attributes", 0, 0, 0)], [("edit", 1, 3, 1)], [("edit", 1, 3, 2)]], [[("mode", 0, 0, 0)]], {0}, "false")
def test_plan_equals_cherry_pick_of_remaining_commits(
    parts: list[list[Edit]], fixes: list[list[Edit]], numbers: set[int], renames: str
) -> None:
    check_law(parts, fixes, numbers, renames)


class Swept:
    """A project with the tests of three agents in one commit, where two are identical, and one fix."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = GitProject(folder / "project")
        self.base = self.project.commit("base", {"lines.txt": number_lines({}), "tests/test_a.py": number_lines({})})
        self.first = self._agent("one", {3: "first"}, "[IMPROVE_TEST] Look at three")
        self.second = self._agent("two", {30: "second"}, "[FIX_TEST] Look at thirty")
        self.third = self._agent("three", {30: "second"}, "[FIX_TEST] Look at thirty too")
        self.project.git("switch", "--quiet", "--create", "integrated", "main")
        both = number_lines({3: "first", 30: "second"})
        message = "[TEST/DOC] 1 better test, 2 test fixes\n\nAgent: agent one\nAgent: agent two\nSweep: s1\n"
        self.squashed = self.project.commit(message, {"tests/test_a.py": both})
        self.fix = self.project.commit("[FIX_IMPL] Fix it", {"lines.txt": number_lines({5: "fixed"})})

    def _agent(self, name: str, changed: dict[int, str], message: str) -> str:
        self.project.git("switch", "--quiet", "--create", name, "main")
        return self.project.commit(message, {"tests/test_a.py": number_lines(changed)})

    def open(self, *, is_reported: bool = True) -> Review:
        names = (("one", self.first), ("two", self.second), ("three", self.third))
        squashed = [{"branch": branch, "commit": commit} for branch, commit in names] if is_reported else []
        outcome = IntegratorReport(  # the integrator writes more fields than the contract requires
            squashed_branches=("one", "two", "three"),
            squashed_commits=squashed,  # type: ignore[call-arg]
        )
        sources = [AgentBranch(branch, f"agent {branch}", f"tests/test_a.py::{branch}", tip) for branch, tip in names]
        review = ReviewFolder(self.folder / "review/verdicts.jsonl", self.folder / "review")
        repository = Repository.open(self.project.root)
        return Review.open(repository, "main", "integrated", folder=review, outcome=outcome, sources=sources, by="ada")


@pytest.fixture
def swept(tmp_path: Path) -> Swept:
    return Swept(tmp_path)


def row_0(review: Review) -> Change:
    assert review.branch.tests is not None
    return review.branch.tests


@pytest.mark.parametrize("is_reported", [True, False])
def test_identical_work_is_one_test_change(swept: Swept, is_reported: bool) -> None:
    with swept.open(is_reported=is_reported) as review:
        first, second = review.load_parts().parts
        diff = review.diff(second)
    assert (first.title, first.agents, first.tests) == ("Look at three", ("agent one",), ("tests/test_a.py::one",))
    assert (second.title, second.agents) == ("Look at thirty", ("agent two", "agent three"))
    assert [line for line in diff.lines if line[:1] in "+-"][2:] == ["-30", "+second"]


def test_left_out_test_change_is_absent(swept: Swept) -> None:
    with swept.open() as review:
        second = review.load_parts().parts[1]
        review.set_verdict(second, Verdict.REVERT)
        preview = review.preview()
        assert preview.left_out == (second.id,)
        assert preview.tree is not None
        entry = review.space.entry(preview.tree, "tests/test_a.py")
        assert entry is not None
        assert review.space.read(entry.id)[1].decode() == number_lines({3: "first"})
    with swept.open() as again:
        assert again.preview() == preview


def test_verdict_on_row_0_is_inherited(swept: Swept) -> None:
    with swept.open() as review:
        first, second = review.load_parts().parts
        review.set_verdict(first, Verdict.KEEP)
        review.set_verdict(row_0(review), Verdict.REVERT)
        assert review.reverted == {second.id}
        assert review.undo() == (row_0(review),)
        assert review.open_parts == (second,)
        review.set_verdict(row_0(review), Verdict.KEEP)
        assert not review.open_parts
        # The closing line counts only fixes.
        assert review.closing_line() == "reviewed 0 of 1, 0 reverted, 1 open"


def test_dependents_of_left_out_test_change_are_named(swept: Swept) -> None:
    swept.project.git("switch", "--quiet", "integrated")
    both = number_lines({3: "first and more", 30: "second"})
    later = swept.project.commit("[FIX_IMPL] Builds on it", {"tests/test_a.py": both})
    with swept.open() as review:
        first, _ = review.load_parts().parts
        assert review.preview_of({first.id}).conflicts == (Conflict(first.id, (later,), ("tests/test_a.py",)),)
        assert review.preview_of({first.id, later}).is_clean


def test_combined_commit_is_split_by_hunks(swept: Swept) -> None:
    swept.project.git("switch", "--quiet", "--force-create", "integrated", "main")
    woven = number_lines({3: "first, woven", 30: "second"})
    swept.project.commit("[TEST/DOC] woven", {"tests/test_a.py": woven, "tests/new.py": "def test_it(): pass\n"})
    swept.project.commit("[FIX_IMPL] Fix it", {"lines.txt": number_lines({5: "fixed"})})
    with swept.open() as review:
        parts = review.load_parts()
        assert parts.are_hunks
        assert [part.title for part in parts.parts] == [
            "new file tests/new.py",
            "tests/test_a.py:3",
            "tests/test_a.py:30",
        ]
        assert parts.parts[1].agents == ("agent one", "agent two", "agent three")
        preview = review.preview_of({parts.parts[1].id})
        assert preview.tree is not None
        entry = review.space.entry(preview.tree, "tests/test_a.py")
        assert entry is not None
        assert review.space.read(entry.id)[1].decode() == number_lines({30: "second"})


def test_missing_commits_are_split_by_hunks(swept: Swept) -> None:
    swept.project.git("branch", "-D", "one", "two", "three")
    swept.project.git("reflog", "expire", "--expire=now", "--all")
    swept.project.git("gc", "--quiet", "--prune=now")
    with swept.open() as review:
        assert [part.agents for part in review.load_parts().parts] == [(), ()]
        assert review.load_parts().are_hunks


@pytest.mark.parametrize("is_drop", [False, True])
def test_apply_without_test_change_creates_previewed_tree(swept: Swept, is_drop: bool) -> None:
    with swept.open() as review:
        first, second = review.load_parts().parts
        review.set_verdict(second, Verdict.REVERT, "too strict")
        proposal = plan_apply(review, "reviewed", is_drop=is_drop)
        apply_plan(review, proposal)
        tree = review.preview().tree
    assert swept.project.git("rev-parse", "reviewed^{tree}") == tree
    subjects = swept.project.git("log", "--format=%s", "main..reviewed").split("\n")
    assert tuple(reversed(subjects))[-len(proposal.subjects) :] == proposal.subjects
    whole = "[TEST/DOC] 1 better test, 2 test fixes"
    said = swept.project.git("log", "--format=%b", "main..reviewed")
    if is_drop:
        assert subjects == ["[FIX_IMPL] Fix it", "[TEST/DOC] 1 better test"]
        listed = "* Look at three\n  tests/test_a.py::one\n\nWithout 1 test change, left out in review by ada.\n\n"
        assert said.strip() == f"{listed}Agent: agent one\nSweep: s1"
    else:
        assert subjects == [f'Leave out 1 test change of "{whole}"', "[FIX_IMPL] Fix it", whole]
        assert "* Look at thirty (agent two, agent three)\n  too strict" in said
        assert first.title not in said.partition("too strict")[0]


def test_apply_without_test_changes_and_a_fix(swept: Swept) -> None:
    with swept.open() as review:
        review.set_verdict(row_0(review), Verdict.REVERT)
        review.set_verdict(review.fixes[0], Verdict.REVERT)
        apply_plan(review, plan_apply(review, "reverted"))
        apply_plan(review, plan_apply(review, "dropped", is_drop=True))
        assert (
            swept.project.git("rev-parse", "reverted^{tree}", "dropped^{tree}").split() == [review.preview().tree] * 2
        )
    assert swept.project.git("rev-parse", "reverted^{tree}", "main^{tree}").split("\n")[0] == swept.project.git(
        "rev-parse", "main^{tree}"
    )
    assert swept.project.git("rev-parse", "dropped") == swept.base
