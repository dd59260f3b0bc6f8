"""Resolving a conflict by hand in a scratch copy: the resolution is stored and reused for the same conflict."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.errors import UsageError
from swarm_tui.review.apply import apply_plan, plan_apply
from swarm_tui.review.conflicts import apply_resolution, discard, open_conflict
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import ReviewFolder, Verdict, review_without_sweep
from tests.git_project import GitProject, file_contents
from tests.review.conftest import Integrated, number_lines, ranked


def test_resolution_is_stored_and_makes_plan_build(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    first = ranked(review, 1)
    review.set_verdict(first, Verdict.REVERT)
    assert not review.preview().is_clean
    before = file_contents(project.root)
    copy = open_conflict(review, first.id)
    assert "<<<<<<< " in (copy.folder / "lines.txt").read_text()
    assert copy.paths == ("lines.txt",)
    with pytest.raises(UsageError, match="still contains conflict markers"):
        apply_resolution(review, copy)
    by_hand = number_lines({5: "by hand", 15: "fix 2", 25: "fix 3"})
    (copy.folder / "lines.txt").write_text(by_hand)
    preview = apply_resolution(review, copy)
    assert preview.is_clean
    assert preview.resolved == (first.id,)
    assert not copy.folder.exists()
    assert file_contents(project.root) == before
    with integrated.open() as again:
        assert again.preview().tree == preview.tree
        again.set_verdict(ranked(again, 5), Verdict.REVERT)
        assert again.preview().is_clean
        assert again.preview().resolved == (first.id,)
        apply_plan(again, plan_apply(again, "reviewed"))
        assert project.git("show", "reviewed:lines.txt") + "\n" == by_hand
        assert "was resolved by hand" in project.git("log", "-1", "--format=%b", "reviewed")
        assert project.git("fsck", "--strict", "--connectivity-only") == ""
        again.set_verdict(ranked(again, 4), Verdict.REVERT)
        assert again.preview().is_clean
        assert again.preview().resolved == ()


def test_resolution_is_reused_on_later_tips(integrated: Integrated, tmp_path: Path) -> None:
    repository = Repository.open(integrated.project.root)

    def reopened() -> Review:
        folder = review_without_sweep(integrated.base, repository.resolve("integrated"), tmp_path / "state")
        return Review.open(repository, "main", "integrated", folder=folder, by="ada")

    with reopened() as review:
        review.set_verdict(ranked(review, 1), Verdict.REVERT)
        copy = open_conflict(review, ranked(review, 1).id)
        (copy.folder / "lines.txt").write_text("by hand\n")
        apply_resolution(review, copy)
        apply_plan(review, plan_apply(review, "reviewed"))
    integrated.project.commit("[FIX_IMPL] one more", {"more.txt": "more\n"})
    with reopened() as review:
        assert review.preview().resolved == (ranked(review, 1).id,)
        apply_plan(review, plan_apply(review, "reviewed"))
    assert integrated.project.git("show", "reviewed:lines.txt") == "by hand"
    assert integrated.project.git("show", "reviewed:more.txt") == "more"


def test_backup_files_of_editors_are_ignored(review: Review) -> None:
    review.set_verdict(ranked(review, 1), Verdict.REVERT)
    copy = open_conflict(review, ranked(review, 1).id)
    for name in ("lines.txt~", "lines.txt.orig", ".lines.txt.swp", "4913", "meant.txt"):
        (copy.folder / name).write_text("left behind\n")
    (copy.folder / "lines.txt").write_text("by hand\n")
    Repository.open(copy.folder).run("add", "meant.txt")
    preview = apply_resolution(review, copy)
    assert preview.tree is not None
    assert set(review.space.tree(preview.tree)) == {"lines.txt", "other.txt", "tests", "meant.txt"}


def test_conflict_copy_has_files_as_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = GitProject(tmp_path / "project")
    project.commit("base", {"a.txt": "1\r\n2\r\n3\r\n"})
    project.git("switch", "--quiet", "--create", "integrated")
    first = project.commit("[FIX_IMPL] one", {"a.txt": "1\r\ntwo\r\n3\r\n"})
    project.commit("[FIX_IMPL] two", {"a.txt": "1\r\nzwei\r\n3\r\n"})
    project.write({".gitattributes": "*.txt text filter=gone\n"})
    project.git("add", ".gitattributes")
    project.git("commit", "--quiet", "-m", "attributes")
    (tmp_path / "config").write_text('[filter "gone"]\n\tsmudge = false\n\tclean = false\n\trequired = true\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    folder = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    with Review.open(Repository.open(project.root), "main", "integrated", folder=folder) as review:
        copy = open_conflict(review, first, frozenset({first}))
        assert b"zwei\r\n=======" in (copy.folder / "a.txt").read_bytes()
        (copy.folder / "a.txt").write_bytes(b"by hand\r\n")
        preview = apply_resolution(review, copy)
        assert preview.tree is not None
        held = review.space.entry(preview.tree, "a.txt")
        assert held is not None
        assert review.space.read(held.id) == ("blob", b"by hand\r\n")


def test_conflict_markers_of_any_size_are_found(integrated: Integrated) -> None:
    integrated.project.commit("attributes", {".gitattributes": "*.txt conflict-marker-size=12\n"})
    with integrated.open() as review:
        review.set_verdict(ranked(review, 1), Verdict.REVERT)
        copy = open_conflict(review, ranked(review, 1).id)
        assert "<<<<<<<<<<<< " in (copy.folder / "lines.txt").read_text()
        with pytest.raises(UsageError, match="still contains conflict markers"):
            apply_resolution(review, copy)
        discard(copy)


def test_clean_revert_has_no_conflict(review: Review) -> None:
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    with pytest.raises(UsageError, match="no conflict"):
        open_conflict(review, ranked(review, 2).id)


def test_discarded_conflict_removes_copy(review: Review) -> None:
    review.set_verdict(ranked(review, 1), Verdict.REVERT)
    copy = open_conflict(review, ranked(review, 1).id)
    discard(copy)
    assert not copy.folder.parent.exists()
    assert not review.preview().is_clean
