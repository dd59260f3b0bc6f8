"""Agents that edit the same lines are found while at least one is unfinished."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.failures.patterns import find_overlaps
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import FileEdit, parse_edits
from swarm_tui.model.results import State
from swarm_tui.room.store import SweepConclusions

DIFFERENCE = """\
diff --git a/src/copy.py b/src/copy.py
--- a/src/copy.py
+++ b/src/copy.py
@@ -88,3 +88,5 @@ def copy(
@@ -120 +122 @@
@@ -130,0 +133,4 @@
diff --git a/gone.py b/gone.py
--- a/gone.py
@@ -1,9 +0,0 @@
diff --git a/new.py b/new.py
+++ b/new.py
@@ -0,0 +1,7 @@
+++ b/no header
--- a/none either
?? notes.txt
"""


def editing(test: str, *edits: tuple[str, int, int], state: State = State.RUNNING) -> TestRecord:
    return TestRecord(test, state=state, edits=tuple(FileEdit(*edit) for edit in edits))


def test_parse_edits_returns_edited_lines_of_base() -> None:
    assert parse_edits(DIFFERENCE) == (
        ("src/copy.py", 88, 90),
        ("src/copy.py", 120, 120),
        ("src/copy.py", 130, 131),
        ("gone.py", 1, 9),
        ("new.py", 0, 0),
        ("notes.txt", 0, 0),
    )


@given(st.lists(st.sampled_from([*DIFFERENCE.split("\n"), "@@ -", "@@ -1,x +", "--- a/", "\x1b[31m"])).map("\n".join))
def test_parse_edits_accepts_any_text(difference: str) -> None:
    assert all(edit.first <= edit.last and edit.path.isprintable() for edit in parse_edits(difference))


def test_only_same_lines_of_same_file_overlap() -> None:
    assert find_overlaps([editing("a", ("x", 1, 5)), editing("b", ("x", 6, 9)), editing("c", ("y", 1, 5))]) == []
    (overlap,) = find_overlaps([editing("a", ("x", 1, 5), ("x", 40, 40)), editing("b", ("x", 5, 9), ("x", 40, 41))])
    assert overlap.tests == ("a", "b")
    assert overlap.words == "2 agents edit the same lines of x: 1-9, 40-41"


def test_file_added_by_several_agents_is_one_overlap() -> None:
    (overlap,) = find_overlaps([editing("a", ("new", 0, 0)), editing("b", ("new", 0, 0)), editing("c", ("new", 0, 0))])
    assert overlap.words == "3 agents add the same file new"


def test_finished_or_single_agents_do_not_overlap() -> None:
    ended = editing("a", ("x", 1, 5), state=State.DONE)
    assert find_overlaps([ended, editing("b", ("x", 1, 5), state=State.DONE)]) == []
    assert find_overlaps([editing("b", ("x", 1, 5), ("x", 3, 4))]) == []
    assert len(find_overlaps([ended, editing("b", ("x", 1, 5))])) == 1


def test_overlap_is_pattern() -> None:
    insights = SweepConclusions()
    insights.update([editing("a", ("x", 1, 5)), editing("b", ("x", 5, 9))])
    (pattern,) = insights.patterns()
    assert (pattern.kind, pattern.cause, pattern.tests) == ("editing", "the same lines of x", ("a", "b"))
    insights.update([editing("b")])
    assert insights.patterns() == []
