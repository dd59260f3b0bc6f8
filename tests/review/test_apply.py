"""Applying a plan: commits on one new branch, with the user's git settings, and no other changes."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from swarm_tui.adapters.git import RefMoved, Repository
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.append import append_line
from swarm_tui.model.report import IntegratorReport
from swarm_tui.review.apply import (
    applied_branch,
    apply_plan,
    checkout_hint,
    plan_apply,
    revert_message,
    reviewed_branch,
)
from swarm_tui.review.hand_over import pull_request
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import APPLIED_FILE, Verdict, VerdictLine
from tests.git_project import file_contents
from tests.review.conftest import Integrated, number_lines, ranked

BRANCH = "swarm/20261118-061200/reviewed"


def test_reverts_are_on_top_with_reason_and_reviewer(integrated: Integrated, review: Review) -> None:
    review.set_verdict(ranked(review, 2), Verdict.REVERT, "too broad\nby far")
    review.set_verdict(ranked(review, 5), Verdict.REVERT)
    proposal = plan_apply(review, BRANCH)
    assert proposal.subjects == ('Revert "[FIX_IMPL] Fix number 5"', 'Revert "[FIX_IMPL] Fix number 2"')
    applied = apply_plan(review, proposal, sweep="20261118-061200")
    project = integrated.project
    assert project.git("rev-parse", BRANCH) == applied.commit
    assert project.git("log", "--format=%s", f"integrated..{BRANCH}").split("\n") == list(reversed(proposal.subjects))
    assert project.git("rev-parse", f"{BRANCH}^{{tree}}") == review.preview().tree
    assert project.git("log", "-1", "--format=%an <%ae> %cn", BRANCH) == "Ada Lovelace <ada@example.org> Ada Lovelace"
    body = project.git("log", "-1", "--format=%b", BRANCH)
    assert f"This reverts commit {integrated.fixes[1]}." in body
    assert "Fix 2 of 5 of sweep 20261118-061200, reverted by ada on 20" in body
    assert "Why: too broad\nby far" in body
    assert project.git("fsck", "--strict") == ""


def test_clean_branch_omits_reverted_fixes(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    review.set_verdict(ranked(review, 5), Verdict.REVERT)
    proposal = plan_apply(review, BRANCH, is_drop=True)
    assert proposal.subjects == ("[FIX_IMPL] Fix number 3", "[FIX_IMPL] Fix number 4")
    applied = apply_plan(review, proposal)
    subjects = project.git("log", "--reverse", "--format=%s", f"main..{BRANCH}").split("\n")
    assert subjects == ["[TEST/DOC] tests and docs", *(f"[FIX_IMPL] Fix number {number}" for number in (1, 3, 4))]
    assert project.git("rev-parse", f"{BRANCH}~2") == integrated.fixes[0]
    assert applied.commits == 2
    assert project.git("rev-parse", f"{BRANCH}^{{tree}}") == review.preview().tree
    assert project.git("log", "-1", "--format=%an <%ae>", BRANCH) == "Ada Lovelace <ada@example.org>"
    dates = [project.git("log", "-1", "--format=%ad", commit) for commit in (integrated.fixes[3], BRANCH)]
    assert dates[0] == dates[1]


def test_conflicting_clean_branch_is_rejected(integrated: Integrated) -> None:
    project = integrated.project
    both = project.commit("[FIX_IMPL] builds on number 5", {"other.txt": "fixed\nmore\n"})
    back = project.commit("[FIX_IMPL] and back", {"other.txt": "other\n"})
    with integrated.open() as review:
        with pytest.raises(SwarmError, match="builds on a reverted fix"):
            plan_apply(review, BRANCH, reverted=[integrated.fixes[4]], is_drop=True)
        assert plan_apply(review, BRANCH, reverted=[both, back]).subjects


def test_empty_revert_makes_no_commit(integrated: Integrated) -> None:
    project = integrated.project
    project.commit("[FIX_IMPL] takes number 5 back", {"other.txt": "other\n"})
    with integrated.open() as review:
        proposal = plan_apply(review, BRANCH, reverted=[integrated.fixes[4], integrated.fixes[1]])
        assert proposal.subjects == ('Revert "[FIX_IMPL] Fix number 2"',)
        applied = apply_plan(review, proposal)
    assert (applied.branch, applied.commits) == (BRANCH, 1)
    assert project.git("log", "--format=%s", f"integrated..{BRANCH}") == 'Revert "[FIX_IMPL] Fix number 2"'
    assert project.git("rev-parse", f"{BRANCH}^{{tree}}") == proposal.preview.tree


def test_clean_branch_other_than_preview_is_rejected(integrated: Integrated) -> None:
    project = integrated.project
    added = project.commit("[FIX_IMPL] adds a file", {"extra.txt": "extra\n"})
    project.commit("[FIX_IMPL] removes it", {"extra.txt": None})
    project.commit("[FIX_IMPL] adds it again", {"extra.txt": "extra\n"})
    with integrated.open() as review:
        with pytest.raises(SwarmError, match="would not match the preview"):
            plan_apply(review, BRANCH, reverted=[added], is_drop=True)
        assert plan_apply(review, BRANCH, reverted=[added]).subjects == ('Revert "[FIX_IMPL] adds a file"',)


def test_revert_names_agents_and_manual_resolution(review: Review) -> None:
    fix = replace(ranked(review, 2), agents=tuple(f"agent-{number}" for number in range(6)))
    line = VerdictLine(at=1_763_445_120, by="ada", commit=fix.id, verdict=Verdict.REVERT, why=" too broad ")
    message = revert_message(fix.commit, fix, line, by="eve", sweep="s1", total=5, is_resolved=True)
    assert message == (
        'Revert "[FIX_IMPL] Fix number 2"\n\n'
        f"This reverts commit {fix.id}.\n\n"
        "Fix 2 of 5 of sweep s1, reverted by ada on 2025-11-18.\n\n"
        "Created by agent-0, agent-1, agent-2, agent-3, agent-4 and others.\n\n"
        "Why: too broad\n\n"
        "A conflict with a later commit was resolved by hand.\n"
    )
    bare = revert_message(fix.commit, None, None, by="", sweep="", total=5, is_resolved=False)
    assert bare == (
        f'Revert "[FIX_IMPL] Fix number 2"\n\nThis reverts commit {fix.id}.\n\nA commit, reverted by a reviewer.\n'
    )


def test_apply_changes_one_ref_and_adds_objects(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    (project.root / "lines.txt").write_text("dirty\n")
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    proposal = plan_apply(review, BRANCH)
    before = file_contents(project.root)
    apply_plan(review, proposal)
    after = file_contents(project.root)
    new = {name for name in after.keys() - before.keys() if after[name] != b"folder"}
    assert {name for name in before if before[name] != after.get(name)} == set()
    assert {name for name in new if not name.startswith(".git/objects/")} == {
        f".git/refs/heads/{BRANCH}",
        f".git/logs/refs/heads/{BRANCH}",
    }
    assert "commit or stash 1 changed file, then" in checkout_hint(review.repository, apply_again(review))


def apply_again(review: Review):  # type: ignore[no-untyped-def]
    return apply_plan(review, plan_apply(review, "another"))


def test_second_apply_replaces_its_own_branch(integrated: Integrated, review: Review) -> None:
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    first = apply_plan(review, plan_apply(review, BRANCH))
    review.set_verdict(ranked(review, 3), Verdict.REVERT)
    proposal = plan_apply(review, BRANCH)
    assert proposal.replaces == first.commit
    second = apply_plan(review, proposal)
    assert integrated.project.git("rev-parse", BRANCH) == second.commit


def test_branch_with_tree_of_plan_is_found(integrated: Integrated, review: Review) -> None:
    branch = reviewed_branch(review)
    integrated.project.git("branch", branch, review.branch.tip)
    assert applied_branch(review, review.preview()) == ""
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    assert applied_branch(review, review.preview()) == ""
    integrated.project.git("branch", "--delete", branch)
    apply_plan(review, plan_apply(review, branch))
    assert applied_branch(review, review.preview()) == branch
    assert applied_branch(review, review.preview(), "another-sweep") == ""


def test_branch_with_other_work_is_kept(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    project.git("switch", "--quiet", "--create", BRANCH, "main")
    theirs = project.commit("my own work", {"own.txt": "mine\n"})
    with pytest.raises(UsageError, match="is checked out in"):
        plan_apply(review, BRANCH)
    project.git("switch", "--quiet", "integrated")
    with pytest.raises(UsageError, match="did not create"):
        plan_apply(review, BRANCH)
    assert project.git("rev-parse", BRANCH) == theirs


def test_alias_of_a_branch_is_rejected(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    project.git("switch", "--quiet", "main")
    project.git("symbolic-ref", "refs/heads/trunk", "refs/heads/main")
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    with pytest.raises(UsageError, match="alias of another branch"):
        plan_apply(review, "trunk")
    assert project.git("rev-parse", "main") == integrated.base


def test_clean_branch_never_replaces_dropped_commits(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    project.git("switch", "--quiet", "main")
    project.git("branch", "as-far-as-2", integrated.fixes[1])
    project.git("branch", "as-far-as-1", integrated.fixes[0])
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    for branch in ("integrated", "as-far-as-2", "as-far-as-1"):
        with pytest.raises(UsageError, match="did not create"):
            plan_apply(review, branch, is_drop=True)


def test_only_applied_branch_is_moved(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    made = apply_plan(review, plan_apply(review, BRANCH)).commit
    project.git("branch", "release", made)
    project.git("branch", "stable", integrated.base)
    project.git("switch", "--quiet", "main")
    review.set_verdict(ranked(review, 3), Verdict.REVERT)
    for branch in ("release", "stable", "integrated"):
        before = project.git("rev-parse", branch)
        for is_drop in (False, True):
            with pytest.raises(UsageError, match="did not create"):
                plan_apply(review, branch, is_drop=is_drop)
        assert project.git("rev-parse", branch) == before
    assert plan_apply(review, BRANCH).replaces == made


def test_forged_applied_line_moves_no_branch(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    made = apply_plan(review, plan_apply(review, BRANCH)).commit
    project.git("branch", "release", integrated.base)
    project.git("branch", "renamed", made)
    for branch in ("release", "renamed"):
        entry = {"at": 1.0, "by": "agent", "branch": branch, "commit": project.git("rev-parse", branch)}
        append_line(review.store.folder.root / APPLIED_FILE, json.dumps(entry))
        with pytest.raises(UsageError, match="did not create"):
            plan_apply(review, branch)
    project.git("branch", "--move", BRANCH, "shipped")
    with pytest.raises(UsageError, match="did not create"):
        plan_apply(review, "shipped")


def test_second_apply_replaces_result_without_reflogs(integrated: Integrated, review: Review) -> None:
    integrated.project.git("config", "core.logAllRefUpdates", "false")
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    first = apply_plan(review, plan_apply(review, BRANCH)).commit
    (review.store.folder.root / APPLIED_FILE).unlink()
    assert plan_apply(review, BRANCH).replaces == first


def test_branch_in_use_by_worktree_is_never_moved(integrated: Integrated, review: Review, tmp_path: Path) -> None:
    project = integrated.project
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    made = apply_plan(review, plan_apply(review, BRANCH)).commit
    review.set_verdict(ranked(review, 3), Verdict.REVERT)
    proposal = plan_apply(review, BRANCH)
    other = tmp_path / "other"
    project.git("worktree", "add", "--quiet", str(other), BRANCH)
    # The branch was not checked out at the time of the proposal.
    with pytest.raises(UsageError, match="is checked out in"):
        apply_plan(review, proposal)
    project.git("-C", str(other), "-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "--quiet", "-i", "HEAD~1")
    assert project.git("-C", str(other), "symbolic-ref", "-q", "HEAD", codes=(1,)) == ""
    with pytest.raises(UsageError, match="is checked out in"):
        plan_apply(review, BRANCH)
    project.git("-C", str(other), "rebase", "--abort")
    project.git("-C", str(other), "bisect", "start")
    project.git("-C", str(other), "checkout", "--quiet", "--detach")
    with pytest.raises(UsageError, match="is checked out in"):
        plan_apply(review, BRANCH)
    assert project.git("rev-parse", BRANCH) == made


def test_concurrent_change_of_branch_wins(integrated: Integrated, review: Review) -> None:
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    proposal = plan_apply(review, BRANCH)
    integrated.project.git("branch", BRANCH, "main")
    with pytest.raises(RefMoved):
        apply_plan(review, proposal)
    assert integrated.project.git("rev-parse", BRANCH) == integrated.base


def test_impossible_apply_has_reason(integrated: Integrated, review: Review) -> None:
    with pytest.raises(UsageError, match="nothing is reverted"):
        plan_apply(review, BRANCH)
    review.set_verdict(ranked(review, 1), Verdict.REVERT)
    with pytest.raises(SwarmError, match=r"reverting #1 Fix number 1 conflicts with #4 Fix number 4 in lines\.txt"):
        plan_apply(review, BRANCH)
    review.set_verdict(ranked(review, 4), Verdict.REVERT)
    with pytest.raises(UsageError, match="invalid branch name"):
        plan_apply(review, "-D main")
    proposal = plan_apply(review, BRANCH)
    integrated.project.commit("[FIX_IMPL] meanwhile", {"lines.txt": number_lines({1: "x"})})
    with pytest.raises(SwarmError, match="was rewritten"):
        apply_plan(review, proposal)
    assert reviewed_branch(review) == f"swarm/{review.branch.tip[:12]}/reviewed"
    assert BRANCH not in integrated.project.git("branch")


def test_missing_identity_is_reported_before_any_commit(
    integrated: Integrated, review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("EMAIL", raising=False)
    integrated.project.git("config", "--unset", "user.email")
    integrated.project.git("config", "user.useConfigOnly", "true")
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    with pytest.raises(UsageError, match=r"user\.email"):
        plan_apply(review, BRANCH)


def test_commits_are_signed_if_configured(integrated: Integrated, review: Review, tmp_path: Path) -> None:
    project = integrated.project
    signer = tmp_path / "signer"
    signer.write_text(
        "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nsigned\\n-----END PGP SIGNATURE-----\\n'\n"
    )
    signer.chmod(signer.stat().st_mode | stat.S_IXUSR)
    project.git("config", "commit.gpgsign", "true")
    project.git("config", "gpg.program", str(signer))
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    proposal = plan_apply(review, BRANCH)
    assert proposal.is_signed
    apply_plan(review, proposal)
    assert "gpgsig -----BEGIN PGP SIGNATURE-----" in project.git("cat-file", "commit", BRANCH)
    signer.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(SwarmError, match="sign one commit by hand"):
        apply_plan(review, plan_apply(review, "unsigned"))
    assert "unsigned" not in project.git("branch")


def test_pull_request_quotes_text_of_agents(integrated: Integrated) -> None:
    commits = {"a": integrated.fixes[0]}
    outcome = IntegratorReport.model_validate(
        {
            "failed": [{"branch": "swarm/x/y", "reason": "conflicts [x](http://evil)"}],
            "impl_commit_hashes": commits,
            "ranking": [
                {
                    "commit": integrated.fixes[0],
                    "turned_green": ["t::a", "t::b"],
                    "broken": ["t::c"],
                    "is_measured": True,
                }
            ],
            "escalations": [{"kind": "BLOCKER", "title": "@team look", "detail_markdown": "see #1\n<img src=x>"}],
        }
    )
    repository = Repository.open(integrated.project.root)
    with Review.open(repository, "main", "integrated", folder=integrated.folder, outcome=outcome, by="ada") as review:
        review.load_parts()
        review.set_verdict(review.fixes[0], Verdict.KEEP)
        review.set_verdict(review.fixes[4], Verdict.REVERT, "see #12 `x` @all")
        verdicts = {fix.id: verdict for fix in review.fixes if (verdict := review.verdict(fix)) is not None}
        request = pull_request(review, review.preview(), verdicts, "20261118-061200")
    text = request.body
    assert request.title == "4 fixes and 1 better test"
    assert "turns 2 tests green (measured), **breaks 1 test**, kept by ada)" in text
    assert "- ▼ `t::c`" in text
    assert "No reviewer has looked at 3 of the fixes yet." in text
    assert "`see #12 ’x’ @all`" in text
    assert "- `swarm/x/y`: `conflicts [x](http://evil)`" in text
    assert text.index("Fix number 1") < text.index("## Reverted") < text.index("Fix number 5")
    assert "- `@team look`\n  `see #1`" in text
    assert "`<img src=x>`" in text
