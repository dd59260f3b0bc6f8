"""Lines of the Fixes screen have the required contents at every width."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import find_lexer_class_for_filename

from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import Try
from swarm_tui.model.commits import parse_diff
from swarm_tui.model.formatting import Progress
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.test_strength import StrengthChange, StrengthChangeKind, TestStrength
from swarm_tui.room.draw.code import draw_bare_line, draw_hunk, lexer_class_for
from swarm_tui.room.draw.spans import text_of, width_of
from swarm_tui.room.draw.transcript import draw_progress
from swarm_tui.room.fixes.draw import (
    EffectView,
    FixEvidence,
    FixView,
    PlanView,
    draw_diff_summary,
    draw_effect,
    draw_evidence,
    draw_fix,
    draw_plan,
    draw_strength,
)

FIX = FixView(3, "Keep the exit code on copy", "", 9, 2, 3, 0, 1, False, False)
PLAN = PlanView(11, 7, 2, True, (), 9)
HUNK = [
    "@@ -88,5 +88,6 @@ def copy(",
    " def copy(source):",
    '     """Copy a thing,',
    "-    if not for now.",
    "+    while we can.",
    "+    Twice.",
    '     """',
]


@pytest.mark.parametrize(
    "name",
    ["a.py", ".py", "py", "Makefile", "Makefile.am", "CMakeLists.txt", "a.h", "a.m", "a.1", "x.php5", ".bash_x", "a.b"],
)
def test_lexer_is_the_one_pygments_finds(name: str) -> None:
    assert lexer_class_for(name) is find_lexer_class_for_filename(name)


def test_fix_row_has_rank_verdict_title_impact_size() -> None:
    assert " ".join(text_of(draw_fix(FIX, 60)).split()) == "3 · Keep the exit code on copy 3▲ +9-2"


def test_fix_origin_is_in_row_and_evidence() -> None:
    own = replace(FIX, origin="by the integrator")
    assert "by the integrator" in text_of(draw_fix(own, 60))
    assert "§" in text_of(draw_fix(own, 40))
    evidence = FixEvidence("", "Ada <a@b>", origin="by the integrator: not a commit of an agent")
    assert text_of(draw_evidence(evidence, 60)[0]) == "by the integrator: not a commit of an agent"


def test_branch_problem_is_in_plan_line_at_every_width() -> None:
    broken = replace(PLAN, problem="2 tests fail")
    applied = replace(broken, applied="swarm/20261118-061200/reviewed")
    for width in (80, 120):
        assert "branch: 2 tests fail" in text_of(draw_plan(broken, width))
        assert "branch: 2 tests fail" in text_of(draw_plan(applied, width))


@pytest.mark.parametrize(("verdict", "word"), [("keep", "keep"), ("revert", "REVERT"), ("later", "later"), ("", "·")])
def test_fix_row_shows_verdict_as_word(verdict: str, word: str) -> None:
    facts = FixView(1, "x", verdict, 1, 0, None, 0, 1, False, False)
    assert text_of(draw_fix(facts, 40)).split()[1] == word


@given(st.integers(1, 200), st.text(max_size=60), st.integers(0, 999), st.integers(1, 9))
def test_fix_row_fits_width(width: int, title: str, lines: int, agents: int) -> None:
    row = draw_fix(FixView(1, "t" + title.replace("\n", " "), "keep", lines, lines, 3, 1, agents, False, True), width)
    assert width_of(row) <= width


@pytest.mark.parametrize("width", [80, 100, 140])
def test_test_run_is_in_plan_line_at_every_width(width: int) -> None:
    running = Progress("without #3", 4, 9, "tests", 12.0)
    shown = text_of(draw_plan(replace(PLAN, running=running), width))
    assert running.numbers in shown
    assert ("━━━━──────" in shown) == (width >= 100)
    assert "4 went red" in text_of(draw_plan(replace(PLAN, tests="300 tests, 4 went red"), width))


@given(st.integers(1, 200), st.text(max_size=30), st.integers(0, 10**6), st.integers(0, 10**6))
def test_progress_line_fits_width(width: int, doing: str, done: int, total: int) -> None:
    progress = Progress("w" + doing.replace("\n", " "), done, total, "tests", 12.0)
    for line in (draw_progress(progress, width), draw_plan(replace(PLAN, running=progress), width)):
        assert width_of(line) <= width
        assert width < 120 or progress.numbers in text_of(line)


WEAKER = TestStrength(
    test="tests/test_a.py::test_x",
    file="tests/test_a.py",
    signs=(StrengthChange(kind=StrengthChangeKind.LOOSENED, line=3, before="f() == 3", after="f()"),),
    is_measured=True,
    faults=20,
    kills_before=14,
    kills_after=6,
    missed=tuple(f"a.py:{number} `<` became `<=`" for number in range(7)),
)


def test_weaker_test_lists_removed_checks() -> None:
    lines = [text_of(line).rstrip() for line in draw_strength([WEAKER], 80)]
    assert lines[:6] == [
        "test strength",
        "▼ tests/test_a.py::test_x",
        "  weaker · a check was loosened, kills 14 to 6 of 20 ▼",
        "    - f() == 3",
        "    + f()",
        "    no longer detected: a.py:0 `<` became `<=`",
    ]
    assert lines[-1] == "    and 2 more"
    strong = WEAKER.model_copy(update={"signs": (), "missed": (), "kills_after": 15})
    assert [text_of(line).rstrip() for line in draw_strength([strong], 80)][2] == "  as strong · kills 14 to 15 of 20 ▲"
    assert draw_strength([TestStrength(test="t", file="t")], 80) == []
    assert "2 weaker ▼" in text_of(draw_fix(replace(FIX, weaker=2), 60))


def test_strength_of_partly_kept_fix_names_whole_fix() -> None:
    whole = FixEvidence(message="", author="", strength=(WEAKER,))
    words = [
        [text_of(line) for line in draw_evidence(shown, 80)]
        for shown in (whole, replace(whole, hunks_reverted=("#1.2 a.py::f",)))
    ]
    assert ["measured with all hunks of this fix" in shown for shown in words] == [False, True]


@pytest.mark.parametrize(
    ("width", "end"),
    [(80, "plan clean  works 5 of 24 "), (100, "plan clean, 9 commits  works 5 of 24 "), (140, " 5 of 24 runs ")],
)
def test_run_of_other_process_hides_no_plan_details(width: int, end: str) -> None:
    facts = replace(PLAN, elsewhere=Progress("works", 5, 24, "runs"), parts="9 test changes open")
    line = text_of(draw_plan(facts, width))
    counts = " 11 fixes · 7 keep · 2 revert · 2 open"
    assert line.startswith(f"{counts} · 9 test changes open" if width > 80 else counts)
    assert line.endswith(end)
    assert "conflict #3 with #5" in text_of(draw_plan(replace(facts, conflicts=("#3 with #5",)), width))


def test_plan_line_counts_open_fixes() -> None:
    line = text_of(draw_plan(PLAN, 100))
    assert line.startswith(" 11 fixes · 7 keep · 2 revert · 2 open")
    assert line.rstrip().endswith("plan clean, 9 commits  not applied")
    explained = text_of(draw_plan(replace(PLAN, has_tests=True), 140))
    assert explained.rstrip().endswith("plan clean, 9 commits (one with tests and docs)  not applied")
    assert "docs" not in text_of(draw_plan(replace(PLAN, has_tests=True), 80))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("running", [None, Progress("without #3", 4, 9, "tests", 12.0)])
def test_plan_line_has_state_at_every_width(width: int, running: Progress | None) -> None:
    facts = replace(
        PLAN, partly=1, parts="1 test change out", cost="$4.13 a kept fix", running=running, tests="11 tests pass"
    )
    conflict = "plan conflict #9 with #10+#11"
    assert conflict in text_of(draw_plan(replace(facts, conflicts=("#9 with #10+#11",), tests=""), width))
    assert "plan clean" in text_of(draw_plan(facts, width))
    branch = "swarm/20261118-061200/reviewed"
    applied = text_of(draw_plan(replace(facts, applied=branch, tests=""), width))
    assert f"plan clean  applied on {branch}" in applied.replace(", 9 commits", "")


@given(st.integers(1, 200), st.booleans(), st.booleans(), st.text("x", max_size=60))
def test_plan_line_fits_every_width(width: int, has_conflict: bool, is_applied: bool, branch: str) -> None:
    conflicts = ("#9 with #10+#11",) * 3 if has_conflict else ()
    facts = replace(PLAN, conflicts=conflicts, applied=branch if is_applied else "", parts="9 test changes open")
    assert width_of(draw_plan(facts, width)) <= width


def test_effect_line_describes_revert() -> None:
    clean = EffectView(is_reverted=False, is_known=True, tests_red=3, why_rank="3 agents wrote this")
    line = text_of(draw_effect(clean, 100))
    assert line.startswith(" if reverted: clean · 3 tests go red")
    assert line.rstrip().endswith("3 agents wrote this")
    bad = EffectView(is_reverted=True, is_known=True, conflict_with=("#5",), conflict_paths=("a.py",))
    assert text_of(draw_effect(bad, 100)).startswith(" reverted: conflicts with #5 in a.py  c: resolve")
    crowded = replace(bad, why_rank="rank 2: turns 2 tests green, 2 agents submitted it")
    assert text_of(draw_effect(crowded, 80)) == text_of(draw_effect(bad, 80)).rstrip()


def test_evidence_is_plain_and_fits() -> None:
    record = TestRecord(
        "t.py::test[/red]",
        tries=(Try(1, False, 1.0, 1.0), Try(2, True, 1.0, 2.0)),
        pulled=PulledWork(summary="I \x1b]52;c;x\x07fixed it", passing_before=False, passing_after=True),
    )
    evidence = FixEvidence(
        message="[FIX_IMPL] \x1b[31mred\x1b[0m\n\n" + "word " * 60,
        author="A \x07 <a@x>",
        turned_green=("t.py::test[/red]", "t.py::" + "long_" * 20),
        broken=("t.py::other",),
        source="measured",
        agents=(record,),
        runs=(("t.py::test", False, "assert 1 == 2"),),
    )
    lines = [text_of(line) for line in draw_evidence(evidence, 40)]
    assert all(width_of(line) <= 40 for line in draw_evidence(evidence, 40))
    assert "\x1b" not in "".join(lines)
    assert "t.py::test[/red] ✗ ✓" in lines
    assert "✗ t.py::test  assert 1 == 2" in lines
    place = lines.index("turns green, measured")
    assert lines[place + 1] == "▲ t.py::test[/red]"
    assert lines[place + 3 : place + 5] == ["breaks, measured", "▼ t.py::other"]


def test_hunk_colours_string_over_several_lines() -> None:
    drawn = draw_hunk(tuple(HUNK), "copy.py")
    assert [text_of(line) for line in drawn[1:]] == HUNK[1:]
    assert all("string" in part.role for part in drawn[4][1:])
    assert any("keyword" in part.role for part in drawn[1])


@given(st.lists(st.sampled_from([" a = 1", "-b", "+'''", "+c'''", "\\ No newline at end of file", "+", " "])))
def test_hunk_keeps_every_character(body: list[str]) -> None:
    lines = ["@@ -1 +1 @@", *body]
    assert [text_of(line) for line in draw_hunk(tuple(lines), "x.py")][1:] == body


def test_hunk_of_unknown_language_is_coloured_by_marker() -> None:
    assert draw_hunk(tuple(HUNK), "file.unknown-language") == [draw_bare_line(line) for line in HUNK]


def test_diff_summary_names_every_file() -> None:
    diff = parse_diff(
        b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"
        b"diff --git a/x.png b/x.png\nBinary files a/x.png and b/x.png differ\n"
        b"diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
    )
    lines = [text_of(line).split() for line in draw_diff_summary(diff, 60)]
    assert lines == [["a.py", "3", "++-"], ["x.png", "binary"], ["run", "100644", "->", "100755"]]
