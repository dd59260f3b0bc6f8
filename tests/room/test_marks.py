from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.room.grid.session import Marks

steps = st.lists(st.frozensets(st.sampled_from("abc")), max_size=8)


@given(steps)
def test_undo_and_redo_of_everything_restores_marks(steps: list[frozenset[str]]) -> None:
    marks = Marks()
    for step in steps:
        marks = marks.changed_to(step)
    last = marks.tests
    count = 0
    while marks.can_undo:
        marks, count = marks.undone(), count + 1
    assert marks.tests == frozenset()
    for _ in range(count):
        marks = marks.redone()
    assert marks.tests == last
    assert not marks.can_redo


def test_new_mark_clears_redo() -> None:
    marks = Marks().changed_to("a").changed_to("ab").undone().changed_to("ac")
    assert marks.tests == {"a", "c"}
    assert not marks.can_redo
    assert marks.redone() == marks


def test_unchanged_marks_add_no_undo_step() -> None:
    assert not Marks().changed_to([]).can_undo
    assert Marks().undone() == Marks()
