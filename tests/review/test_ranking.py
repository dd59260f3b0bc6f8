"""Finding and ranking fixes: by the integrator's report, else in branch order, with warnings about inconsistencies."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.model.commits import Commit
from swarm_tui.model.report import IntegratorReport
from swarm_tui.review.changes import IntegratedBranch
from swarm_tui.review.ranking import branch_with_fixes


def commit(letter: str, subject: str) -> Commit:
    name = letter * 40
    return Commit(name, "0" * 40, name, "0" * 40, "Ada", "ada@example.org", "0 +0000", f"{subject}\n\nbody\n")


COMMITS = (
    commit("a", "[TEST/DOC] all of them"),
    commit("b", "[FIX_IMPL] b"),
    commit("c", "[FIX_IMPL] c"),
    commit("d", "chore: d"),
    commit("e", "[FIX_IMPL]"),
)


def rank(
    outcome: dict[str, object] | None = None, *, is_all: bool = False, commits: Sequence[Commit] = COMMITS
) -> IntegratedBranch:
    report = IntegratorReport.model_validate(outcome) if outcome is not None else None
    return branch_with_fixes(
        commits, base="0" * 40, base_tree="0" * 40, outcome=report, agents={"x/c": "agent-c"}, is_all=is_all
    )


def letters(branch: IntegratedBranch) -> str:
    return "".join(fix.id[0] for fix in branch.fixes)


def test_without_report_fixes_are_in_branch_order() -> None:
    branch = rank()
    assert letters(branch) == "bce"
    assert branch.squashed == COMMITS[0].id
    assert [fix.position for fix in branch.fixes] == [1, 2, 4]
    assert branch.fixes[2].title == "(no title)"
    assert branch.doubts == ()


def test_several_test_commits_are_rows() -> None:
    commits = (
        commit("a", "[FIX_TEST] one"),
        commit("b", "[FIX_IMPL] b"),
        commit("c", "[IMPROVE_TEST] two"),
        commit("d", "[FIX_TUTORIAL] three"),
    )
    branch = rank(commits=commits)
    assert (branch.squashed, branch.tests, letters(branch), branch.unlisted) == (None, None, "abcd", 0)
    marked = rank(commits=(commit("e", "[TEST/DOC] all"), *commits))
    assert (marked.squashed, letters(marked)) == ("e" * 40, "abcd")
    alone = rank(commits=commits[:2])
    assert (alone.squashed, letters(alone)) == ("a" * 40, "b")


def test_all_commits_can_be_fixes() -> None:
    assert letters(rank(is_all=True)) == "abcde"


def test_integrator_priority_comes_first() -> None:
    hashes = {"x/d": "d" * 40, "x/c": "C" * 12, "x/c2": "c" * 40}
    branch = rank({"impl_priority": ["x/d", "x/c"], "impl_commit_hashes": hashes, "squashed_commit_hash": "a" * 40})
    assert letters(branch) == "dcbe"
    assert branch.fixes[1].branches == ("x/c", "x/c2")
    assert branch.fixes[1].agents == ("agent-c", "c2")
    assert branch.squashed == COMMITS[0].id


def test_inconsistent_report_gives_warnings() -> None:
    branch = rank(
        {
            "impl_priority": ["x/gone", "x/unnamed", "\x1b[31mx"],
            "impl_commit_hashes": {"x/gone": "f" * 40, "x/short": "b", "\x1b[31mx": "-rf"},
            "squashed_commit_hash": "9" * 40,
        }
    )
    assert letters(branch) == "bce"
    assert len(branch.doubts) == 5
    assert not any("\x1b" in doubt for doubt in branch.doubts)
