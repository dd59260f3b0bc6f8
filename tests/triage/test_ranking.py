"""Finding and ranking fixes: the integrator's word first, the branch's own order otherwise, and doubts in words."""

from __future__ import annotations

from swarm_tui.model.fixes import Commit, IntegratedBranch
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.triage.ranking import rank_fixes


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


def rank(outcome: dict[str, object] | None = None, *, is_all: bool = False) -> IntegratedBranch:
    report = IntegratorOutcome.model_validate(outcome) if outcome is not None else None
    return rank_fixes(
        COMMITS, base="0" * 40, base_tree="0" * 40, outcome=report, agents={"x/c": "agent-c"}, is_all=is_all
    )


def letters(branch: IntegratedBranch) -> str:
    return "".join(fix.id[0] for fix in branch.fixes)


def test_without_a_report_the_branchs_own_order_counts() -> None:
    branch = rank()
    assert letters(branch) == "bce"
    assert branch.squashed == COMMITS[0].id
    assert [fix.position for fix in branch.fixes] == [1, 2, 4]
    assert branch.fixes[2].title == "(no title)"
    assert branch.doubts == ()


def test_every_commit_can_be_a_fix() -> None:
    assert letters(rank(is_all=True)) == "abcde"


def test_the_integrators_priority_comes_first_and_names_unmarked_commits_too() -> None:
    hashes = {"x/d": "d" * 40, "x/c": "C" * 12, "x/c2": "c" * 40}
    branch = rank({"impl_priority": ["x/d", "x/c"], "impl_commit_hashes": hashes, "squashed_commit_hash": "a" * 40})
    assert letters(branch) == "dcbe"
    assert branch.fixes[1].branches == ("x/c", "x/c2")
    assert branch.fixes[1].agents == ("agent-c", "c2")
    assert branch.squashed == COMMITS[0].id


def test_a_report_that_does_not_fit_the_branch_raises_doubts_and_no_exception() -> None:
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
