"""Reviews: persistent verdicts, undo and redo, concurrent rooms, and previews."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.user_files import state_folder
from swarm_tui.review.conflicts import Resolutions, find_resolutions
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import Verdict, review_without_sweep
from tests.git_project import GitProject, file_contents
from tests.review.conftest import Integrated, number_lines, ranked

KEEP, REVERT, LATER, CLEAR = Verdict.KEEP, Verdict.REVERT, Verdict.LATER, Verdict.CLEAR


def test_verdict_is_read_after_reopening(integrated: Integrated, review: Review) -> None:
    review.set_verdict(ranked(review, 1), KEEP)
    review.set_verdict(ranked(review, 2), REVERT, "too broad")
    review.set_verdict(ranked(review, 3), LATER)
    with integrated.open(by="someone else") as again:
        assert [again.verdict(fix) for fix in again.fixes] == [KEEP, REVERT, LATER, None, None]
        line = again.verdict_line(ranked(again, 2))
        assert line is not None
        assert (line.by, line.why) == ("ada", "too broad")
        assert again.reverted == {ranked(again, 2).id}
        assert again.open_fixes == again.fixes[2:]
        assert again.closing_line() == "reviewed 2 of 5, 1 reverted, 3 open"


def test_concurrent_rooms_share_verdicts(integrated: Integrated, review: Review) -> None:
    with integrated.open(by="grace") as other:
        review.set_verdict(ranked(review, 1), KEEP)
        assert other.verdict(ranked(other, 1)) is None
        assert other.refresh()
        assert other.verdict(ranked(other, 1)) is KEEP
        assert not other.refresh()
        other.set_verdict(ranked(other, 1), REVERT)
        review.refresh()
        assert review.verdict(ranked(review, 1)) is REVERT


def test_verdicts_of_two_rooms_are_in_order_of_file(integrated: Integrated, review: Review) -> None:
    first, second = ranked(review, 1), ranked(review, 2)
    with integrated.open(by="grace") as other:
        for verdict in (KEEP, LATER):
            review.set_verdict(first, verdict)
            other.set_verdicts([(first, REVERT), (second, verdict)])
        review.set_verdict(second, REVERT)
        assert (review.verdict(first), other.verdict(first)) == (LATER, REVERT)
        assert (review.refresh(), other.refresh()) == (True, True)
        assert (review.refresh(), other.refresh()) == (False, False)
        with integrated.open() as third:
            assert review.store.lines == other.store.lines == third.store.lines
            for each in (review, other, third):
                assert [each.verdict(fix) for fix in each.fixes[:2]] == [REVERT, REVERT]


def test_undo_and_redo_restore_verdicts(review: Review) -> None:
    review.set_verdict(ranked(review, 1), KEEP)
    review.set_verdict(ranked(review, 1), REVERT)
    review.set_verdict(ranked(review, 2), KEEP)
    assert review.undo() == (ranked(review, 2),)
    assert review.verdict(ranked(review, 2)) is None
    assert review.undo() == (ranked(review, 1),)
    assert review.verdict(ranked(review, 1)) is KEEP
    assert review.redo() == (ranked(review, 1),)
    assert review.verdict(ranked(review, 1)) is REVERT
    assert review.undo() == (ranked(review, 1),)
    assert review.undo() == (ranked(review, 1),)
    assert review.verdict(ranked(review, 1)) is None
    assert review.undo() == ()
    review.set_verdict(ranked(review, 3), KEEP)
    assert review.redo() == ()


def test_clearing_missing_verdict_is_not_an_action(review: Review) -> None:
    review.set_verdict(ranked(review, 1), KEEP)
    review.set_verdict(ranked(review, 2), CLEAR)
    assert review.undo() == (ranked(review, 1),)
    assert review.verdict(ranked(review, 1)) is None


def test_undo_ignores_verdicts_of_other_users(integrated: Integrated, review: Review) -> None:
    review.set_verdict(ranked(review, 1), KEEP)
    review.set_verdict(ranked(review, 2), KEEP)
    with integrated.open(by="grace") as other:
        other.set_verdict(ranked(other, 2), REVERT)
    review.refresh()
    assert review.undo() == (ranked(review, 1),)
    assert review.verdict(ranked(review, 2)) is REVERT


def test_verdicts_of_one_action_are_undone_together(integrated: Integrated, review: Review) -> None:
    first, second, third = review.fixes[:3]
    review.set_verdict(second, KEEP)
    review.set_verdicts([(first, REVERT), (second, REVERT), (third, KEEP)], "the third stands for both")
    with integrated.open() as again:
        assert set(again.undo()) == {first, second, third}
        assert [again.verdict(fix) for fix in again.fixes[:3]] == [None, KEEP, None]
        assert set(again.redo()) == {first, second, third}
        assert [again.verdict(fix) for fix in again.fixes[:3]] == [REVERT, REVERT, KEEP]
        with integrated.open(by="grace") as other:
            other.set_verdict(first, KEEP)
        again.refresh()
        assert set(again.undo()) == {second, third}
        assert [again.verdict(fix) for fix in again.fixes[:3]] == [KEEP, KEEP, None]
        assert again.undo() == (second,)


def test_invalid_lines_do_not_affect_other_verdicts(integrated: Integrated, review: Review) -> None:
    review.set_verdict(ranked(review, 1), KEEP)
    with integrated.folder.verdicts.open("ab") as file:
        file.write(b'{"no": "verdict"}\n\x00\xff garbage\n{"at": 1e300, "commit": "a", "verdict": "keep"}\n')
        file.write(b'{"at": 1, "commit": "torn')
    with integrated.open() as again:
        again.set_verdict(ranked(again, 2), REVERT)
        assert [again.verdict(fix) for fix in again.fixes[:2]] == [KEEP, REVERT]
    with integrated.open() as third:
        assert [third.verdict(fix) for fix in third.fixes[:2]] == [KEEP, REVERT]
        assert third.store.damaged == 4


def test_verdicts_on_unchanged_fixes_survive_new_integration(integrated: Integrated, review: Review) -> None:
    for rank, verdict in ((1, KEEP), (2, REVERT), (3, KEEP), (5, LATER)):
        review.set_verdict(ranked(review, rank), verdict)
    project = integrated.project
    project.git("switch", "--quiet", "--create", "again", integrated.base)
    project.commit("[TEST/DOC] other tests", {"tests/test_other.py": "def test_it(): pass\n"})
    project.git("cherry-pick", integrated.fixes[4], integrated.fixes[1])
    project.commit("[FIX_IMPL] Fix number 3", {"lines.txt": number_lines({15: "fix 2", 25: "another fix 3"})})
    with integrated.open(tip="again") as again:
        assert [fix.title for fix in again.fixes] == ["Fix number 5", "Fix number 2", "Fix number 3"]
        assert [again.verdict(fix) for fix in again.fixes] == [LATER, REVERT, None]
        again.set_verdict(ranked(again, 2), KEEP)
        assert again.undo() == (ranked(again, 2),)
        assert again.verdict(ranked(again, 2)) is REVERT
        # Earlier lines are verdicts on older versions of the same fixes; verdicts on other fixes are ignored.
        assert again.undo() == (ranked(again, 1),)
        assert again.undo() == (ranked(again, 2),)
        assert [again.verdict(fix) for fix in again.fixes] == [None, None, None]
        assert again.undo() == ()
        assert again.redo() == (ranked(again, 2),)
        assert again.verdict(ranked(again, 2)) is REVERT


def test_identical_fixes_have_separate_verdicts(integrated: Integrated) -> None:
    project = integrated.project
    project.commit("[FIX_IMPL] back", {"other.txt": "other\n"})
    project.commit("[FIX_IMPL] and again", {"other.txt": "fixed\n"})
    with integrated.open() as review:
        first, _, second = review.fixes[4:]
        assert review.content(first) == review.content(second)
        review.set_verdict(first, KEEP)
        review.set_verdict(second, REVERT)
        assert review.undo() == (second,)
        assert (review.verdict(first), review.verdict(second)) == (KEEP, None)
        assert review.redo() == (second,)
        assert (review.verdict(first), review.verdict(second)) == (KEEP, REVERT)
    with integrated.open() as review:
        assert review.undo() == (second,)
        assert review.undo() == (first,)
        assert (review.verdict(first), review.verdict(second)) == (None, None)


def test_white_space_change_is_new_content(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    one = project.commit("[FIX_IMPL] one", {"code.py": "if x:\n    a()\n    b()\n"})
    project.git("reset", "--quiet", "--hard", "HEAD~1")
    two = project.commit("[FIX_IMPL] two", {"code.py": "if x:\n    a()\nb()\n"})
    with integrated.open(tip=one) as first, integrated.open(tip=two) as second:
        assert first.content(first.fixes[-1]) != second.content(second.fixes[-1])


def test_verdicts_without_sweep_are_in_state_folder(integrated: Integrated, tmp_path: Path) -> None:
    project = integrated.project
    tip = project.git("rev-parse", "HEAD")
    state = state_folder({"XDG_STATE_HOME": str(tmp_path / "state")})
    first = review_without_sweep(integrated.base, tip, state)
    assert first.verdicts == tmp_path / "state/swarm-tui/reviews" / f"{integrated.base}-{tip}" / "verdicts.jsonl"
    repository = Repository.open(project.root)
    with Review.open(repository, "main", tip, folder=first) as review:
        review.set_verdict(ranked(review, 2), REVERT)
    new_tip = project.commit("[FIX_IMPL] one more", {"more.txt": "more\n"})
    with Review.open(
        repository, "main", new_tip, folder=review_without_sweep(integrated.base, new_tip, state)
    ) as review:
        assert review.verdict(ranked(review, 2)) is REVERT
        assert review.undo() == ()


def test_preview_follows_verdicts_and_names_conflicts(review: Review) -> None:
    first, second, fourth = (ranked(review, rank) for rank in (1, 2, 4))
    assert review.preview().tree == review.branch.tip_tree
    review.set_verdict(second, REVERT)
    assert review.preview().is_clean
    assert review.preview().tree != review.branch.tip_tree
    review.set_verdict(first, REVERT)
    preview = review.preview()
    assert preview.tree is None
    assert [(c.commit, c.opponents, c.paths) for c in preview.conflicts] == [(first.id, (fourth.id,), ("lines.txt",))]
    assert find_resolutions(review, review.reverted).sets == ((fourth,),)
    review.set_verdict(fourth, REVERT)
    assert review.preview().is_clean
    assert review.conflict_when_reverted_alone(first) is not None
    assert review.conflict_when_reverted_alone(fourth) is None


def test_conflict_without_fix_is_reported(integrated: Integrated) -> None:
    project = integrated.project
    project.commit("chore: touches the same line", {"other.txt": "touched\n"})
    with integrated.open() as review:
        assert find_resolutions(review, {integrated.fixes[4]}) == Resolutions(previews=1)


def test_net_diff_has_only_kept_changes(review: Review) -> None:
    for fix in review.fixes:
        review.set_verdict(fix, REVERT)
    assert [file.path for file in review.net_diff().files] == ["tests/test_lines.py"]


def test_review_does_not_change_repository(integrated: Integrated) -> None:
    project = integrated.project
    (project.root / "lines.txt").write_text("dirty\n")
    (project.root / "untracked").write_text("mine\n")
    before = file_contents(project.root)
    with integrated.open() as review:
        review.warm_up()
        for fix in review.fixes:
            review.set_verdict(fix, REVERT)
            review.preview()
            review.conflict_when_reverted_alone(fix)
            review.diff(fix)
        review.net_diff()
        review.is_rewritten()
    assert file_contents(project.root) == before


def test_attributes_of_branch_are_used(integrated: Integrated) -> None:
    # merge=union in the checkout would merge every conflict, so previews must ignore it.
    project = integrated.project
    (project.root / ".gitattributes").write_text("* merge=union\n")
    with integrated.open() as review:
        assert not review.preview_of([integrated.fixes[0]]).is_clean


def test_rewritten_branch_is_detected(integrated: Integrated, review: Review) -> None:
    assert not review.is_rewritten()
    integrated.project.git("commit", "--quiet", "--amend", "-m", "[FIX_IMPL] reworded")
    assert review.is_rewritten()


@pytest.mark.parametrize(
    ("base", "tip", "words"),
    [
        ("integrated", "main", "is not an ancestor of"),
        ("main", "merged", "is a merge"),
        ("main", "main", "no commits between"),
        ("main", "gone", "unknown commit in "),
        ("--upload-pack=x", "main", "invalid revision"),
    ],
)
def test_nonlinear_branch_is_rejected(integrated: Integrated, base: str, tip: str, words: str) -> None:
    project = integrated.project
    project.git("switch", "--quiet", "--create", "merged", "main")
    project.commit("aside", {"aside.txt": "aside\n"})
    project.git("merge", "--quiet", "--no-edit", "integrated")
    before = file_contents(project.root)
    with pytest.raises(UsageError, match=words):
        Review.open(Repository.open(project.root), base, tip, folder=integrated.folder)
    assert file_contents(project.root) == before


def test_shallow_clone_error_has_hint(integrated: Integrated, tmp_path: Path) -> None:
    source = integrated.project.root.as_uri()
    integrated.project.git("clone", "--quiet", "--depth=2", "--branch=integrated", source, str(tmp_path / "shallow"))
    with pytest.raises(UsageError, match="--unshallow"):
        Review.open(Repository.open(tmp_path / "shallow"), integrated.base, "integrated", folder=integrated.folder)


def test_partial_clone_is_rejected_without_fetching(integrated: Integrated, tmp_path: Path) -> None:
    source = integrated.project
    source.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    source.git("clone", "--quiet", "--filter=blob:none", "--no-checkout", source.root.as_uri(), str(partial))
    clone = GitProject(partial)
    clone.git("branch", "--quiet", "main", "origin/main", codes=None)
    clone.git("config", "remote.origin.url", "https://127.0.0.1:9/nowhere")
    before = file_contents(partial)
    with pytest.raises(SwarmError, match="objects are missing"):
        Review.open(Repository.open(partial), "main", "origin/integrated", folder=integrated.folder)
    assert file_contents(partial) == before


def test_hint_for_partial_clone_works(integrated: Integrated, tmp_path: Path) -> None:
    source = integrated.project
    source.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    source.git("clone", "--quiet", "--filter=blob:none", "--no-checkout", source.root.as_uri(), str(partial))
    clone = GitProject(partial)
    repository = Repository.open(partial)
    with pytest.raises(SwarmError) as caught:
        Review.open(repository, "origin/main", "origin/integrated", folder=integrated.folder)
    assert "`git fetch --refetch --no-filter`" in str(caught.value)
    clone.git("fetch", "--quiet", "--refetch", "--no-filter")
    with Review.open(repository, "origin/main", "origin/integrated", folder=integrated.folder) as review:
        assert review.preview_of([review.fixes[1].id]).is_clean


def test_hostile_names_and_messages_are_sanitized(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project")
    project.commit("base", {"a": "a\n"})
    project.git("switch", "--quiet", "--create", "integrated")
    name = "-rf\n\x1b[31mred\x1b[0m\t\u202e.py"
    message = "[FIX_IMPL] \x1b]0;owned\x07--exec=rm \u202eevil\n\nbody \x1b[2J\x00\n".replace("\x00", "")
    project.commit(message, {name: "\x1b]8;;http://evil\x07 hidden \x1b[8m\rover\n@@ -1 +1 @@\n"})
    with Review.open(
        Repository.open(project.root), "main", "integrated", folder=review_without_sweep("b", "t", tmp_path)
    ) as review:
        fix = review.fixes[0]
        shown = [fix.title, *review.diff(fix).lines, *(file.path for file in review.diff(fix).files)]
        assert not [text for text in shown if any(ord(character) < 32 for character in text) or "\u202e" in text]
        assert "\u241b]8;;http://evil" in "\n".join(review.diff(fix).lines)
        assert len(review.diff(fix).files[0].hunks) == 1
        assert fix.commit.paths == {name}
        assert review.preview_of([fix.id]).tree == review.branch.base_tree


def test_list_counts_changes_like_the_diff(integrated: Integrated) -> None:
    project = integrated.project
    project.git("mv", "other.txt", "renamed.txt")
    project.commit("[FIX_IMPL] moves", {})
    text = (project.root / "lines.txt").read_text()
    (project.root / "lines.txt").unlink()
    project.commit("[FIX_IMPL] moves and edits", {"moved.txt": text.replace("30\n", "thirty\n")})
    (project.root / "moved.txt").chmod(0o755)
    project.commit("[FIX_IMPL] mode", {})
    project.commit("[FIX_IMPL] binary", {"a.bin": bytes(range(256))})
    with integrated.open() as review:
        found = review.fixes[-4:]
        for fix in review.fixes:
            files = review.diff(fix).files
            assert (fix.added, fix.removed) == (sum(file.added for file in files), sum(file.removed for file in files))
    assert [fix.change_without_lines for fix in found] == ["moved", "", "mode", "binary"]
    assert (found[1].added, found[1].removed) == (1, 1)
