"""Pure decisions of the integrator: kinds of commits, duplicate fixes, and ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.adapters.pytest import TestRun
from swarm_tui.integrator.branches import AgentCommit, Classification, classify_commit
from swarm_tui.integrator.build import FixTree
from swarm_tui.integrator.duplicates import DistinctFix, are_nearly_equal, changes_of, distinct_fixes
from swarm_tui.integrator.inputs import BranchInput
from swarm_tui.integrator.measure import FixRuns, compare_runs, unexpected_changes
from swarm_tui.integrator.report import rank_fixes, reason_for_rank, reported_effect
from swarm_tui.model.commits import FileChange, is_test_or_doc
from swarm_tui.model.pulled import ChangeKind, kinds_of, without_marks
from swarm_tui.review.ranking import Effect


def patch(*lines: str, path: str = "src/copy.py") -> str:
    head = f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1,9 +1,9 @@\n"
    return head + "\n".join(lines) + "\n"


def commit(
    agent: str, text: str, *, lines: int = 2, patch_id: str = "", test: str = "", subject: str = "x"
) -> AgentCommit:
    source = BranchInput(
        agent=agent, test=test or f"t.py::{agent}", branch=f"swarm/1/{agent}", tip="", is_passing_after=True
    )
    return AgentCommit(
        source=source,
        id=f"{agent}-{subject}",
        parent="p",
        tree="t",
        parent_tree="p",
        author_name="A",
        author_email="a@example.org",
        authored="",
        message=f"[FIX_IMPL] {subject}",
        changes=(change(f"src/{agent}.py", lines),),
        classification=Classification(True),
        patch_id=patch_id or text,
        patch=text,
    )


def change(path: str, lines: int) -> FileChange:
    return FileChange(path, "M", "100644", "100644", "1", "2", added=lines, removed=0)


# Kinds


@pytest.mark.parametrize(
    ("message", "kinds"),
    [
        ("[FIX_IMPL] Keep the code", ["FIX_IMPL"]),
        ("  [fix_test] lower case", ["FIX_TEST"]),
        ("[FIX_TEST][FIX_IMPL] Both", ["FIX_TEST", "FIX_IMPL"]),
        ("[FIX_TEST] [FIX_TEST] twice", ["FIX_TEST"]),
        ("[WIP] not a known kind", []),
        ("Keep [FIX_IMPL] inside", []),
        ("", []),
    ],
)
def test_kinds_are_read_from_start_of_message(message: str, kinds: Sequence[str]) -> None:
    assert kinds_of(message) == tuple(ChangeKind(kind) for kind in kinds)


def test_kinds_are_removed_from_subject() -> None:
    assert without_marks("[FIX_TEST] [FIX_IMPL] Both at once") == "Both at once"
    assert without_marks("No marks [at all]") == "No marks [at all]"


@pytest.mark.parametrize(
    ("path", "is_other"),
    [
        ("tests/e2e/test_copy.py", True),
        ("src/pkg/test_copy.py", True),
        ("pkg/copy_test.go", True),
        ("conftest.py", True),
        ("tests/data/big.bin", True),
        ("docs/index.html", True),
        ("README.md", True),
        ("tutorial.sh", True),
        ("src/pkg/copy.py", False),
        ("src/latest.py", False),
        ("src/attest/copy.py", False),
        ("checks/copying.py", False),
    ],
)
def test_tests_and_docs_are_recognized_by_path(path: str, is_other: bool) -> None:
    assert is_test_or_doc(path) is is_other


def test_files_of_swept_tests_are_tests() -> None:
    assert is_test_or_doc("checks/copying.py", test_files={"checks/copying.py"})
    assert is_test_or_doc("guide/steps", tutorial="guide/steps")


@pytest.mark.parametrize(
    ("message", "paths", "is_fix", "is_noted"),
    [
        ("[FIX_IMPL] x", ["src/a.py"], True, False),
        ("[FIX_IMPL] x", ["src/a.py", "tests/test_a.py"], True, False),
        ("[FIX_TEST] x", ["tests/test_a.py"], False, False),
        ("[FIX_TEST] x", ["tests/test_a.py", "src/a.py"], True, True),
        ("[FIX_TEST][FIX_IMPL] x", ["tests/test_a.py"], True, True),
        ("[FIX_TEST][FIX_TUTORIAL] x", ["tests/test_a.py", "README.md"], False, True),
        ("x", ["src/a.py"], True, True),
        ("x", ["README.md"], False, True),
    ],
)
def test_ambiguous_commit_is_a_separate_fix(message: str, paths: list[str], is_fix: bool, is_noted: bool) -> None:
    sorting = classify_commit(message, paths)
    assert (sorting.is_fix, bool(sorting.note)) == (is_fix, is_noted)


# Duplicate fixes

BASE = patch("-    run(command)", "+    return run(command)")


@pytest.mark.parametrize(
    "other",
    [
        patch("-    run(command)", "+    return  run( command )"),
        patch("-    run(command)", "+    # the code counts", "+    return run(command)"),
        patch("-    run(command)", "+", "+    return run(command)  # the code counts"),
    ],
)
def test_comments_and_layout_do_not_distinguish_fixes(other: str) -> None:
    assert are_nearly_equal(changes_of(BASE), changes_of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("+    wait(30)", "+    wait(300)"),
        ("+    if first < second:", "+    if first <= second:"),
        ("+    if first and second:", "+    if first or second:"),
        ("+    return None", "+    return True"),
        ("+    return run(command)", "+    run(command, check=True)"),
    ],
)
def test_numbers_and_operators_distinguish_fixes(one: str, other: str) -> None:
    assert not are_nearly_equal(changes_of(patch("-    old()", one)), changes_of(patch("-    old()", other)))


def test_same_change_in_another_file_is_another_fix() -> None:
    moved = patch("-    run(command)", "+    return run(command)", path="src/other.py")
    assert not are_nearly_equal(changes_of(BASE), changes_of(moved))
    removed = patch("-    run(commands)", "+    return run(command)")
    assert not are_nearly_equal(changes_of(BASE), changes_of(removed))


def test_same_change_elsewhere_in_file_is_another_fix() -> None:
    assert not are_nearly_equal(changes_of(BASE), changes_of(BASE.replace("@@ -1,9 +1,9 @@", "@@ -41,9 +41,9 @@")))
    added = patch("+    return 1")
    assert are_nearly_equal(changes_of(added), changes_of(added.replace("@@ -1,9 +1,9 @@", "@@ -2,9 +2,9 @@")))
    assert not are_nearly_equal(changes_of(added), changes_of(added.replace("@@ -1,9 +1,9 @@", "@@ -41,9 +41,9 @@")))


def test_other_indentation_is_another_fix() -> None:
    moved = patch("-    run(command)", "+return run(command)")
    assert not are_nearly_equal(changes_of(BASE), changes_of(moved))
    # The patch id ignores white space, so git gives both the same id.
    fixes = distinct_fixes([commit("a", BASE, patch_id="same"), commit("b", moved, patch_id="same")])
    assert [fix.agents for fix in fixes] == [("a",), ("b",)]
    wrapped = patch("-    run(command)", "+    return run(", "+        command", "+    )")
    assert are_nearly_equal(changes_of(BASE), changes_of(wrapped))


def test_binary_files_and_modes_are_compared() -> None:
    one = "diff --git a/x.bin b/x.bin\nindex 1..2 100644\nBinary files a/x.bin and b/x.bin differ\n"
    assert not are_nearly_equal(changes_of(one), changes_of("diff --git a/x.bin b/x.bin\nold mode 1\nnew mode 2\n"))


def test_most_frequent_patch_is_chosen() -> None:
    odd = patch("-    run(command)", "+    # why", "+    return run(command)")
    fixes = distinct_fixes([commit("a", odd, lines=3), commit("b", BASE), commit("c", BASE), commit("d", patch("+x"))])
    assert [fix.agents for fix in fixes] == [("b", "c", "a"), ("d",)]
    assert fixes[0].why_same == "nearly the same hunks"
    assert fixes[1].why_same == ""


lines_of_code = st.lists(
    st.sampled_from(["+    a = 1", "+    b = a", "+    # why", "+    run(a, b)", "-    run()"]), max_size=6
)


@given(first=lines_of_code, second=lines_of_code)
def test_nearly_equal_is_symmetric(first: list[str], second: list[str]) -> None:
    one, other = changes_of(patch(*first)), changes_of(patch(*second))
    assert are_nearly_equal(one, one)
    assert are_nearly_equal(one, other) == are_nearly_equal(other, one)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([BASE, patch("+x"), patch("+y = 2")])), max_size=8)
)
def test_folding_keeps_every_commit_exactly_once(made: list[tuple[str, str]]) -> None:
    commits = [commit(f"{agent}{number}", text) for number, (agent, text) in enumerate(made)]
    fixes = distinct_fixes(commits)
    assert sorted(agent for fix in fixes for agent in fix.agents) == sorted(entry.source.agent for entry in commits)
    assert len(fixes) == len({text for _, text in made})


# Ranking


def fix(agent: str, *, agents: int = 1, lines: int = 2) -> DistinctFix:
    return DistinctFix(
        tuple(commit(f"{agent}{n}", "", lines=lines, patch_id=agent) for n in range(agents)), "the same patch"
    )


def turns_green(*tests: str, broken: tuple[str, ...] = (), flaky: tuple[str, ...] = ()) -> Effect:
    return Effect(turned_green=tests, broken=broken, flaky=flaky, is_measured=True)


def order(*effects: tuple[DistinctFix, Effect]) -> list[str]:
    ranked = rank_fixes([fix for fix, _ in effects], {fix.chosen.id: effect for fix, effect in effects})
    return [each.chosen.source.agent for each in ranked]


def test_rank_is_by_effect_then_agents_then_size() -> None:
    assert order(
        (fix("small", lines=1), turns_green("t")),
        (fix("agreed", agents=3, lines=90), turns_green("t")),
        (fix("strong", lines=500), turns_green("t", "u")),
        (fix("useless", agents=9), turns_green()),
    ) == ["strong0", "agreed0", "small0", "useless0"]


def test_broken_tests_are_subtracted_from_fixed_tests() -> None:
    assert order((fix("breaks"), turns_green("t", "u", broken=("v", "w"))), (fix("fixes"), turns_green("t"))) == [
        "fixes0",
        "breaks0",
    ]


def test_unmeasured_fix_ranks_after_measured_one() -> None:
    reported = fix("reported", agents=2)
    effects = {reported.chosen.id: reported_effect(reported, "no time"), "m0-x": turns_green("t", "u")}
    ranked = rank_fixes([reported, fix("m")], effects)
    assert [reason_for_rank(each, effects[each.chosen.id]) for each in ranked] == [
        "turns 2 tests green, 2 lines",
        "not measured: no time, 2 tests green as its agents report, 2 agents submitted it (the same patch), 2 lines",
    ]


# Measured runs


def run(**outcomes: str) -> TestRun:
    return TestRun(outcomes)


def test_fixed_and_broken_tests_are_counted() -> None:
    before = run(a="failed", b="passed", c="failed", d="passed", e="passed")
    effect = compare_runs(before, run(a="passed", b="failed", c="failed", d="skipped"))
    assert effect.turned_green == ("a",)
    assert effect.broken == ("b", "e")


def test_flaky_tests_count_only_for_stabilizing_fix() -> None:
    before, after = run(a="passed", b="failed"), run(a="failed", b="passed")
    assert compare_runs(before, after, flaky={"a", "b"}) == turns_green()
    assert compare_runs(before, after, flaky={"a", "b"}, steadied={"b"}) == turns_green("b", flaky=("b",))


def test_result_changes_of_unrelated_fixes_are_unexpected() -> None:
    own, rival = fix("mine"), fix("rival")
    (test,) = own.tests
    red, green = run(**{test: "failed"}), run(**{test: "passed"})
    assert unexpected(red, (own, green)) == {}
    assert unexpected(green, (own, green)) == {test: 0}
    assert unexpected(red, (own, green), (rival, green), (fix("other"), green)) == {test: 1}
    assert unexpected(red, (beside(own), green), (beside(rival), green)) == {}
    assert unexpected(run(x="failed"), (own, run(x="passed"))) == {"x": 0}


def test_passing_test_before_dependent_fix_is_expected() -> None:
    own = fix("mine")
    green = run(**dict.fromkeys(own.tests, "passed"))
    assert unexpected_changes([FixRuns(FixTree(own, "with", "before", builds_on="another"), green, green)]) == {}


def unexpected(before: TestRun, *made: tuple[DistinctFix, TestRun]) -> dict[str, int]:
    return unexpected_changes([FixRuns(FixTree(entry, "with it"), before, after) for entry, after in made])


def beside(made: DistinctFix) -> DistinctFix:
    """Return the fix with a change to the file that all such fixes change."""
    return DistinctFix(tuple(replace(entry, changes=(change("src/same.py", 2),)) for entry in made.commits))
