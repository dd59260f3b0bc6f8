"""Applying a plan: commits on one new branch, as the user's git would make them, and nothing else touched."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from swarm_tui.adapters.git import RefMoved, Repository
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.verdicts import Verdict, VerdictLine
from swarm_tui.triage.apply import (
    applied_branch,
    apply_proposal,
    checkout_hint,
    propose,
    revert_message,
    reviewed_branch,
)
from swarm_tui.triage.pull_request import pull_request
from swarm_tui.triage.review import Review
from tests.git_project import file_contents
from tests.triage.conftest import Integrated, number_lines, ranked

BRANCH = "swarm/20261118-061200/reviewed"


def test_reverts_go_on_top_with_messages_that_say_which_why_and_by_whom(integrated: Integrated, review: Review) -> None:
    review.set_verdict(ranked(review, 2), Verdict.REVERT, "too broad\nby far")
    review.set_verdict(ranked(review, 5), Verdict.REVERT)
    proposal = propose(review, BRANCH)
    assert proposal.subjects == ('Revert "[FIX_IMPL] Fix number 5"', 'Revert "[FIX_IMPL] Fix number 2"')
    applied = apply_proposal(review, proposal, sweep="20261118-061200")
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


def test_a_clean_branch_leaves_the_reverted_fixes_out(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    review.set_verdict(ranked(review, 5), Verdict.REVERT)
    proposal = propose(review, BRANCH, is_drop=True)
    assert proposal.subjects == ("[FIX_IMPL] Fix number 3", "[FIX_IMPL] Fix number 4")
    applied = apply_proposal(review, proposal)
    subjects = project.git("log", "--reverse", "--format=%s", f"main..{BRANCH}").split("\n")
    assert subjects == ["[TEST/DOC] tests and docs", *(f"[FIX_IMPL] Fix number {number}" for number in (1, 3, 4))]
    assert project.git("rev-parse", f"{BRANCH}~2") == integrated.fixes[0]
    assert applied.commits == 2
    assert project.git("rev-parse", f"{BRANCH}^{{tree}}") == review.preview().tree
    assert project.git("log", "-1", "--format=%an <%ae>", BRANCH) == "Ada Lovelace <ada@example.org>"
    dates = [project.git("log", "-1", "--format=%ad", commit) for commit in (integrated.fixes[3], BRANCH)]
    assert dates[0] == dates[1]


def test_a_clean_branch_that_would_not_fit_is_refused(integrated: Integrated) -> None:
    project = integrated.project
    both = project.commit("[FIX_IMPL] builds on number 5", {"other.txt": "fixed\nmore\n"})
    back = project.commit("[FIX_IMPL] and back", {"other.txt": "other\n"})
    with integrated.open() as review:
        with pytest.raises(SwarmError, match="builds on a reverted fix"):
            propose(review, BRANCH, reverted=[integrated.fixes[4]], is_drop=True)
        assert propose(review, BRANCH, reverted=[both, back]).subjects


def test_a_revert_that_changes_nothing_makes_no_commit(integrated: Integrated) -> None:
    project = integrated.project
    project.commit("[FIX_IMPL] takes number 5 back", {"other.txt": "other\n"})
    with integrated.open() as review:
        proposal = propose(review, BRANCH, reverted=[integrated.fixes[4], integrated.fixes[1]])
        assert proposal.subjects == ('Revert "[FIX_IMPL] Fix number 2"',)
        applied = apply_proposal(review, proposal)
    assert (applied.branch, applied.commits) == (BRANCH, 1)
    assert project.git("log", "--format=%s", f"integrated..{BRANCH}") == 'Revert "[FIX_IMPL] Fix number 2"'
    assert project.git("rev-parse", f"{BRANCH}^{{tree}}") == proposal.preview.tree


def test_a_clean_branch_that_would_hold_something_else_than_the_preview_is_refused(integrated: Integrated) -> None:
    project = integrated.project
    added = project.commit("[FIX_IMPL] adds a file", {"extra.txt": "extra\n"})
    project.commit("[FIX_IMPL] removes it", {"extra.txt": None})
    project.commit("[FIX_IMPL] adds it again", {"extra.txt": "extra\n"})
    with integrated.open() as review:
        with pytest.raises(SwarmError, match="would not hold the previewed content"):
            propose(review, BRANCH, reverted=[added], is_drop=True)
        assert propose(review, BRANCH, reverted=[added]).subjects == ('Revert "[FIX_IMPL] adds a file"',)


def test_a_revert_says_whose_fix_it_was_and_that_a_person_resolved_it(review: Review) -> None:
    fix = replace(ranked(review, 2), agents=tuple(f"agent-{number}" for number in range(6)))
    line = VerdictLine(at=1_763_445_120, by="ada", commit=fix.id, verdict=Verdict.REVERT, why=" too broad ")
    message = revert_message(fix.commit, fix, line, by="eve", sweep="s1", total=5, is_resolved=True)
    assert message.decode() == (
        'Revert "[FIX_IMPL] Fix number 2"\n\n'
        f"This reverts commit {fix.id}.\n\n"
        "Fix 2 of 5 of sweep s1, reverted by ada on 2025-11-18.\n\n"
        "It was made by agent-0, agent-1, agent-2, agent-3, agent-4 and others.\n\n"
        "Why: too broad\n\n"
        "A conflict with a later commit was resolved by hand.\n"
    )
    bare = revert_message(fix.commit, None, None, by="", sweep="", total=5, is_resolved=False)
    assert bare.decode() == (
        f'Revert "[FIX_IMPL] Fix number 2"\n\nThis reverts commit {fix.id}.\n\nA commit, reverted by a reviewer.\n'
    )


def test_everything_but_one_ref_and_new_objects_stays_as_it_was(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    (project.root / "lines.txt").write_text("dirty\n")
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    proposal = propose(review, BRANCH)
    before = file_contents(project.root)
    apply_proposal(review, proposal)
    after = file_contents(project.root)
    new = {name for name in after.keys() - before.keys() if after[name] != b"folder"}
    assert {name for name in before if before[name] != after.get(name)} == set()
    assert {name for name in new if not name.startswith(".git/objects/")} == {
        f".git/refs/heads/{BRANCH}",
        f".git/logs/refs/heads/{BRANCH}",
    }
    assert "commit or stash 1 changed file, then" in checkout_hint(review.repository, apply_again(review))


def apply_again(review: Review):  # type: ignore[no-untyped-def]
    return apply_proposal(review, propose(review, "another"))


def test_applying_again_after_another_verdict_replaces_its_own_result(integrated: Integrated, review: Review) -> None:
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    first = apply_proposal(review, propose(review, BRANCH))
    review.set_verdict(ranked(review, 3), Verdict.REVERT)
    proposal = propose(review, BRANCH)
    assert proposal.replaces == first.commit
    second = apply_proposal(review, proposal)
    assert integrated.project.git("rev-parse", BRANCH) == second.commit


def test_the_branch_that_has_the_tree_of_a_plan_already_is_found(integrated: Integrated, review: Review) -> None:
    branch = reviewed_branch(review)
    integrated.project.git("branch", branch, review.branch.tip)
    assert applied_branch(review, review.preview()) == ""
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    assert applied_branch(review, review.preview()) == ""
    integrated.project.git("branch", "--delete", branch)
    apply_proposal(review, propose(review, branch))
    assert applied_branch(review, review.preview()) == branch
    assert applied_branch(review, review.preview(), "another-sweep") == ""


def test_a_branch_with_other_work_is_never_lost(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    project.git("switch", "--quiet", "--create", BRANCH, "main")
    theirs = project.commit("my own work", {"own.txt": "mine\n"})
    with pytest.raises(UsageError, match="is checked out in"):
        propose(review, BRANCH)
    project.git("switch", "--quiet", "integrated")
    with pytest.raises(UsageError, match="did not make"):
        propose(review, BRANCH)
    assert project.git("rev-parse", BRANCH) == theirs


def test_a_branch_that_is_another_name_of_one_is_refused(integrated: Integrated, review: Review) -> None:
    project = integrated.project
    project.git("switch", "--quiet", "main")
    project.git("symbolic-ref", "refs/heads/trunk", "refs/heads/main")
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    with pytest.raises(UsageError, match="another name"):
        propose(review, "trunk")
    assert project.git("rev-parse", "main") == integrated.base


def test_a_clean_branch_never_takes_the_place_of_commits_that_it_leaves_out(
    integrated: Integrated, review: Review
) -> None:
    project = integrated.project
    project.git("switch", "--quiet", "main")
    project.git("branch", "as-far-as-2", integrated.fixes[1])
    project.git("branch", "as-far-as-1", integrated.fixes[0])
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    for branch in ("integrated", "as-far-as-2", "as-far-as-1"):
        with pytest.raises(UsageError, match="did not make"):
            propose(review, branch, is_drop=True)


def test_only_the_branch_that_was_applied_to_is_moved_and_never_one_that_merely_stands_there(
    integrated: Integrated, review: Review
) -> None:
    project = integrated.project
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    made = apply_proposal(review, propose(review, BRANCH)).commit
    project.git("branch", "release", made)
    project.git("branch", "stable", integrated.base)
    project.git("switch", "--quiet", "main")
    review.set_verdict(ranked(review, 3), Verdict.REVERT)
    for branch in ("release", "stable", "integrated"):
        before = project.git("rev-parse", branch)
        for is_drop in (False, True):
            with pytest.raises(UsageError, match="did not make"):
                propose(review, branch, is_drop=is_drop)
        assert project.git("rev-parse", branch) == before
    assert propose(review, BRANCH).replaces == made


def test_a_branch_that_is_checked_out_or_rebased_in_any_worktree_is_never_moved(
    integrated: Integrated, review: Review, tmp_path: Path
) -> None:
    project = integrated.project
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    made = apply_proposal(review, propose(review, BRANCH)).commit
    review.set_verdict(ranked(review, 3), Verdict.REVERT)
    proposal = propose(review, BRANCH)
    other = tmp_path / "other"
    project.git("worktree", "add", "--quiet", str(other), BRANCH)
    # It was free when it was proposed, and is not when it is applied.
    with pytest.raises(UsageError, match="is checked out in"):
        apply_proposal(review, proposal)
    project.git("-C", str(other), "-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "--quiet", "-i", "HEAD~1")
    assert project.git("-C", str(other), "symbolic-ref", "-q", "HEAD", codes=(1,)) == ""
    with pytest.raises(UsageError, match="is checked out in"):
        propose(review, BRANCH)
    project.git("-C", str(other), "rebase", "--abort")
    project.git("-C", str(other), "bisect", "start")
    project.git("-C", str(other), "checkout", "--quiet", "--detach")
    with pytest.raises(UsageError, match="is checked out in"):
        propose(review, BRANCH)
    assert project.git("rev-parse", BRANCH) == made


def test_somebody_who_was_quicker_wins(integrated: Integrated, review: Review) -> None:
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    proposal = propose(review, BRANCH)
    integrated.project.git("branch", BRANCH, "main")
    with pytest.raises(RefMoved):
        apply_proposal(review, proposal)
    assert integrated.project.git("rev-parse", BRANCH) == integrated.base


def test_what_cannot_be_applied_says_why(integrated: Integrated, review: Review) -> None:
    with pytest.raises(UsageError, match="nothing is reverted"):
        propose(review, BRANCH)
    review.set_verdict(ranked(review, 1), Verdict.REVERT)
    with pytest.raises(SwarmError, match=r"reverting #1 Fix number 1 conflicts with #4 Fix number 4 in lines\.txt"):
        propose(review, BRANCH)
    review.set_verdict(ranked(review, 4), Verdict.REVERT)
    with pytest.raises(UsageError, match="no name for a branch"):
        propose(review, "-D main")
    proposal = propose(review, BRANCH)
    integrated.project.commit("[FIX_IMPL] meanwhile", {"lines.txt": number_lines({1: "x"})})
    with pytest.raises(SwarmError, match="has been rewritten"):
        apply_proposal(review, proposal)
    assert reviewed_branch(review) == f"swarm/{review.branch.tip[:12]}/reviewed"
    assert BRANCH not in integrated.project.git("branch")


def test_nobody_is_asked_for_before_anything_is_made(
    integrated: Integrated, review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("EMAIL", raising=False)
    integrated.project.git("config", "--unset", "user.email")
    integrated.project.git("config", "user.useConfigOnly", "true")
    review.set_verdict(ranked(review, 2), Verdict.REVERT)
    with pytest.raises(UsageError, match=r"user\.email"):
        propose(review, BRANCH)


def test_commits_are_signed_when_the_user_signs(integrated: Integrated, review: Review, tmp_path: Path) -> None:
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
    proposal = propose(review, BRANCH)
    assert proposal.is_signed
    apply_proposal(review, proposal)
    assert "gpgsig -----BEGIN PGP SIGNATURE-----" in project.git("cat-file", "commit", BRANCH)
    signer.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(SwarmError, match="sign one commit by hand"):
        apply_proposal(review, propose(review, "unsigned"))
    assert "unsigned" not in project.git("branch")


def test_the_text_of_a_pull_request_keeps_agents_words_inert(integrated: Integrated) -> None:
    commits = {"a": integrated.fixes[0]}
    outcome = IntegratorOutcome.model_validate(
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
    assert "Nobody has looked at 3 of the fixes yet." in text
    assert "`see #12 ’x’ @all`" in text
    assert "- `swarm/x/y`: `conflicts [x](http://evil)`" in text
    assert text.index("Fix number 1") < text.index("## Reverted") < text.index("Fix number 5")
    assert "- `@team look`\n  `see #1`" in text
    assert "`<img src=x>`" in text
