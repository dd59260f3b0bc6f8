"""Verdicts on hunks: splitting a fix, and the invariant of a plan that reverts some hunks."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from swarm_tui.adapters.git import Repository
from swarm_tui.review.apply import apply_plan, plan_apply
from swarm_tui.review.changes import Change, Conflict
from swarm_tui.review.conflicts import apply_resolution, open_conflict
from swarm_tui.review.hand_over import write_patches
from swarm_tui.review.hunks import HUNKS_LIMIT
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder, Verdict
from tests.git_project import GitProject, file_contents
from tests.review.conftest import Integrated, number_lines, ranked
from tests.review.histories import Edit, directory_renames, histories, play, revert_for_real, write_history

HunkRows = dict[str, tuple[Change, ...]]
"""All hunks of each commit."""


def split(clone: GitProject, commits: list[str], rows: HunkRows, reverted: set[str]) -> dict[str, str]:
    """Replace each fix with two commits using only git: first the kept hunks, then the others.

    Return the last commit for each fix.
    """
    parent = clone.git("rev-parse", f"{commits[0]}^")
    last = {}
    for commit in commits:
        if any(row.id in reverted for row in rows[commit]):
            rest = tree_without(clone, commit, rows[commit], reverted)
            parent = clone.git("commit-tree", "-p", parent, "-m", "the hunks that stay", rest)
        parent = last[commit] = clone.git("commit-tree", "-p", parent, "-m", "the rest", f"{commit}^{{tree}}")
    clone.git("update-ref", "refs/heads/main", parent)
    return last


def tree_without(clone: GitProject, commit: str, rows: tuple[Change, ...], reverted: set[str]) -> str:
    """Remove hunks from a commit: text hunks with `git apply -R`, whole files by restoring them."""
    clone.git("read-tree", commit)
    by_file: dict[str, list[Change]] = {}
    for row in rows:
        by_file.setdefault(row.commit.changes[0].path, []).append(row)
    for path, hunks in by_file.items():
        out = [number for number, row in enumerate(hunks) if row.id in reverted]
        if len(hunks) > 1 and out:
            words = ("diff", "-U3", "--no-indent-heuristic", "--no-renames", f"{commit}^", commit, "--", path)
            head, *parts = re.split(rb"(?m)^(?=@@ -)", clone.run(*words).stdout)
            assert len(parts) == len(hunks)
            patch = head + b"".join(parts[number] for number in out)
            clone.git("apply", "-R", "--cached", "--whitespace=nowarn", "-", stdin=patch)
            continue
        for change in (change for number in out for change in hunks[number].commit.changes if change.status == "A"):
            clone.git("update-index", "--force-remove", "--", change.path)
        for change in (change for number in out for change in hunks[number].commit.changes if change.status != "A"):
            entry = f"{change.old_mode},{change.old_id},{change.path}"
            clone.git("update-index", "--add", "--replace", "--cacheinfo", entry)
    return clone.git("write-tree")


def check_law(history: list[list[Edit]], reverted: set[int], hunks: set[tuple[int, int]], renames: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = GitProject(folder / "project")
        project.git("config", "merge.directoryRenames", renames)
        base, *commits = write_history(project, play(history))
        project.git("reset", "--quiet", "--hard")
        before = file_contents(project.root)
        store = ReviewFolder(folder / "review/verdicts.jsonl", folder / "review")
        with Review.open(Repository.open(project.root), base, "main", folder=store, is_all=True) as review:
            rows = {fix.id: review.load_hunks(fix) for fix in review.fixes}
            whole = {commit for number, commit in enumerate(commits) if number in reverted}
            of_each = [rows[commit] for commit in commits]
            named = {of_each[fix][place].id for fix, place in hunks if fix < len(of_each) and place < len(of_each[fix])}
            preview = review.preview_of(whole | named)
            steps = review.stack.without(whole | named)
        assert file_contents(project.root) == before
        project.git("clone", "--quiet", "--shared", ".", str(folder / "split"))
        clone = GitProject(folder / "split")
        last = split(clone, commits, rows, named - {row.id for commit in whole for row in rows[commit]})
        newest_first = [last[step.commit.id] for step in steps]
        tree, conflicts = revert_for_real(folder / "scratch", clone, newest_first, renames)
        assert preview.tree == (None if conflicts else tree)
        assert (steps[-1].tree if steps else preview.tree) == tree
        assert {last[conflict.commit] for conflict in preview.conflicts} == conflicts.keys()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    histories,
    st.sets(st.integers(0, 6), max_size=1),
    st.sets(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=5),
    directory_renames,
)
@example([[("edit", 0, 0, 0), ("edit", 0, 11, 1)], [("edit", 0, 0, 1)]], set(), {(0, 0)}, "conflict")
@example([[("edit", 0, 0, 0), ("edit", 0, 11, 1)], [("edit", 0, 0, 1)]], set(), {(0, 1)}, "conflict")
@example([[("edit", 0, 0, 0), ("edit", 1, 11, 1)], [("rename folder", 0, 0, 0)]], set(), {(0, 0)}, "true")
@example([[("rename", 0, 1, 0), ("edit", 2, 11, 1)], [("edit", 2, 3, 0)]], set(), {(0, 0), (0, 1)}, "conflict")
@example([[("submodule", 0, 0, 1)], [("edit", 0, 0, 0)]], set(), {(0, 0)}, "conflict")
def test_reverted_hunks_equal_git_revert_of_split_commit(
    history: list[list[Edit]], reverted: set[int], hunks: set[tuple[int, int]], renames: str
) -> None:
    check_law(history, reverted, hunks, renames)


PATHS = "def one():\n    return 1\n\n\n" + "# apart\n" * 9 + "def two():\n    return 2\n\n\n" + "# apart\n" * 9


class Split:
    """A project whose first fix has two hunks and a new file. The second fix changes one of the hunks again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = GitProject(folder / "project")
        self.base = self.project.commit("base", {"paths.py": PATHS, "picture.bin": bytes(range(256))})
        both = PATHS.replace("return 1", "return 10").replace("return 2", "return 20")
        self.first = self.project.commit("[FIX_IMPL] Fix both", {"paths.py": both, "new.py": "NEW = 1\n"})
        self.second = self.project.commit(
            "[FIX_IMPL] Fix one more", {"paths.py": both.replace("return 20", "return 21")}
        )

    def open(self) -> Review:
        store = ReviewFolder(self.folder / "review/verdicts.jsonl", self.folder / "review")
        return Review.open(Repository.open(self.project.root), self.base, "main", folder=store, by="ada")

    def text_in(self, tree: str | None) -> str:
        return self.project.git("show", f"{tree}:paths.py") + "\n"


@pytest.fixture
def project(tmp_path: Path) -> Split:
    return Split(tmp_path)


def test_fix_is_split_into_hunks_and_files(project: Split) -> None:
    with project.open() as review:
        made, one, two = review.load_hunks(ranked(review, 1))
        diff = review.diff(two)
    assert [made.title, one.title, two.title] == ["new file new.py", "paths.py::one", "paths.py::two"]
    assert [(row.added, row.removed) for row in (made, one, two)] == [(1, 0), (1, 1), (1, 1)]
    assert [line for line in diff.lines if line[:1] in "+-"][2:] == ["-    return 2", "+    return 20"]


def test_unsplittable_change_is_one_hunk_with_title(project: Split) -> None:
    project.project.git("mv", "new.py", "moved.py")
    project.project.git("update-index", "--chmod=+x", "paths.py")
    project.project.git("config", "core.fileMode", "false")
    project.project.commit("[FIX_IMPL] Others", {"picture.bin": bytes(range(255))})
    with project.open() as review:
        titles = [hunk.title for hunk in review.load_hunks(ranked(review, 3))]
    assert titles == ["new.py → moved.py", "paths.py, including its mode", "picture.bin, binary"]


def test_reverted_hunk_leaves_rest_of_fix(project: Split) -> None:
    with project.open() as review:
        fix = ranked(review, 1)
        made, one, two = review.load_hunks(fix)
        review.set_verdict(one, Verdict.REVERT, "ten is too many")
        assert review.verdict(fix) is None
        assert review.open_fixes[0] is fix
        for hunk in (made, two):
            review.set_verdict(hunk, Verdict.KEEP)
        assert review.verdict(fix) is Verdict.PARTLY
        assert review.closing_line() == "reviewed 1 of 2, 0 reverted, 1 partly, 1 open"
        preview = review.preview()
        assert (preview.reverted, preview.hunks) == ((), (one.id,))
        assert preview.tree is not None
        blob = review.space.entry(preview.tree, "paths.py")
        assert blob is not None
        text = review.space.read(blob.id)[1].decode()
    assert "return 1\n" in text
    assert "return 21\n" in text
    with project.open() as again:
        assert again.preview() == preview
        assert again.verdict(ranked(again, 1)) is Verdict.PARTLY


def test_reverted_hunk_conflicts_with_dependent_fix(project: Split) -> None:
    with project.open() as review:
        _, one, two = review.load_hunks(ranked(review, 1))
        preview = review.preview_of({one.id, two.id})
        assert preview.conflicts == (Conflict(project.first, (project.second,), ("paths.py",)),)
        copy = open_conflict(review, project.first, frozenset({one.id, two.id}))
        assert "<<<<<<<" in (copy.folder / "paths.py").read_text()
        (copy.folder / "paths.py").write_text(PATHS)
        resolved = apply_resolution(review, copy)
        assert resolved.is_clean
        assert review.preview_of({one.id, two.id, project.second}).is_clean


def test_reverting_all_hunks_reverts_the_fix(project: Split) -> None:
    with project.open() as review:
        fix = ranked(review, 1)
        for hunk in review.load_hunks(fix):
            review.set_verdict(hunk, Verdict.REVERT)
        assert review.verdict(fix) is Verdict.REVERT
        assert review.reverted == {fix.id}
        assert review.preview_of({hunk.id for hunk in review.load_hunks(fix)}).reverted == (fix.id,)


def test_verdict_on_fix_overrides_verdicts_on_hunks(project: Split) -> None:
    with project.open() as review:
        fix = ranked(review, 1)
        _, one, two = review.load_hunks(fix)
        review.set_verdict(one, Verdict.REVERT)
        review.set_verdict(fix, Verdict.KEEP)
        assert (review.verdict(fix), review.verdict(one)) == (Verdict.KEEP, Verdict.KEEP)
        review.set_verdict(two, Verdict.REVERT)
        assert (review.verdict(fix), review.verdict(one)) == (Verdict.PARTLY, Verdict.KEEP)
        assert review.undo() == (two,)
        assert review.undo() == (fix,)
        assert (review.verdict(fix), review.verdict(one)) == (None, Verdict.REVERT)
        assert review.redo() == (fix,)
        assert review.verdict(one) is Verdict.KEEP


def test_verdicts_on_unchanged_hunks_survive_new_integration(project: Split) -> None:
    with project.open() as review:
        made, one, two = review.load_hunks(ranked(review, 1))
        for hunk, verdict in ((made, Verdict.KEEP), (one, Verdict.REVERT), (two, Verdict.REVERT)):
            review.set_verdict(hunk, verdict)
    project.project.git("reset", "--quiet", "--hard", project.base)
    moved = "# a line above\n" + PATHS.replace("return 1", "return 10").replace("return 2", "return 22")
    project.project.commit("[FIX_IMPL] Something else", {"paths.py": "# a line above\n" + PATHS})
    project.project.commit("[FIX_IMPL] Fix both again", {"paths.py": moved, "new.py": "NEW = 1\n"})
    with project.open() as again:
        again.load_judged_hunks()
        hunks = again.load_hunks(ranked(again, 2))
        assert [again.verdict(hunk) for hunk in hunks] == [Verdict.KEEP, Verdict.REVERT, None]
        assert again.reverted == {hunks[1].id}


def test_same_lines_at_two_places_are_two_hunks(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project")
    lines = ["x\n", *["apart\n"] * 20, "x\n"]
    base = project.commit("base", {"a.txt": "".join(lines)})
    project.commit("[FIX_IMPL] Both", {"a.txt": "".join(lines).replace("x", "y")})
    store = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    with Review.open(Repository.open(project.root), base, "main", folder=store) as review:
        first, second = review.load_hunks(ranked(review, 1))
        review.set_verdict(second, Verdict.REVERT)
        assert review.reverted == {second.id} != {first.id}


@pytest.mark.parametrize("is_drop", [False, True])
def test_apply_with_hunks_creates_previewed_tree(project: Split, is_drop: bool) -> None:
    with project.open() as review:
        _, one, _ = review.load_hunks(ranked(review, 1))
        review.set_verdict(one, Verdict.REVERT, "ten is too many")
        proposal = plan_apply(review, "reviewed", is_drop=is_drop)
        apply_plan(review, proposal)
        tree = review.preview().tree
    assert project.project.git("rev-parse", "reviewed^{tree}") == tree
    subjects = project.project.git("log", "--format=%s", f"{project.base}..reviewed").split("\n")
    text = project.project.git("log", "--format=%B", f"{project.base}..reviewed")
    assert "* paths.py::one\n  ten is too many" in text
    if is_drop:
        assert subjects == ["[FIX_IMPL] Fix one more", "[FIX_IMPL] Fix both"]
        assert "Without 1 of its 3 hunks, left out in review by ada:" in text
    else:
        assert subjects[0] == 'Revert 1 of 3 hunks of "[FIX_IMPL] Fix both"'
    assert tuple(reversed(subjects))[-len(proposal.subjects) :] == proposal.subjects


def test_patches_contain_only_kept_hunks(project: Split, tmp_path: Path) -> None:
    with project.open() as review:
        _, one, _ = review.load_hunks(ranked(review, 1))
        review.set_verdict(one, Verdict.REVERT)
        write_patches(review, review.preview(), tmp_path / "patches")
        tree = review.preview().tree
    project.project.git("switch", "--quiet", "--detach", project.base)
    project.project.git("am", "--quiet", *sorted(str(path) for path in (tmp_path / "patches").iterdir()))
    assert project.project.git("rev-parse", "HEAD^{tree}") == tree


def test_plan_combines_test_changes_and_hunks(integrated: Integrated) -> None:
    project = integrated.project
    text = number_lines({5: "fix 4", 15: "fix 2", 25: "fix 3", 35: "late", 40: "later"})
    project.commit("[FIX_IMPL] Two places", {"lines.txt": text, "other.txt": "and other\n"})
    with integrated.open() as review:
        (part,) = review.load_parts().parts
        first, second = review.load_hunks(ranked(review, 6))
        preview = review.preview_of({part.id, second.id})
        assert (preview.left_out, preview.hunks, preview.reverted) == ((part.id,), (second.id,), ())
        assert preview.tree is not None
        assert review.space.entry(preview.tree, "tests/test_lines.py") is None
        other = review.space.entry(preview.tree, "other.txt")
        assert other is not None
        assert review.space.read(other.id)[1] == b"fixed\n"
        assert first.title == "lines.txt:35"
        assert review.preview_of(preview.chosen) == preview


def test_file_with_too_many_changes_is_one_hunk(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project")
    lines = [f"{number}\n" for number in range(8 * (HUNKS_LIMIT + 1))]
    base = project.commit("base", {"a.txt": "".join(lines)})
    changed = [f"new {line}" if number % 8 == 0 else line for number, line in enumerate(lines)]
    project.commit("[FIX_IMPL] Everywhere", {"a.txt": "".join(changed), "b.txt": "b\n"})
    store = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    with Review.open(Repository.open(project.root), base, "main", folder=store) as review:
        assert [hunk.title for hunk in review.load_hunks(ranked(review, 1))] == ["a.txt", "new file b.txt"]
