"""Each shown test has one position in the grid, in every zoom and at every size."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.results import Result, State
from swarm_tui.room.grid.draw_layout import (
    GROUPINGS,
    SORTINGS,
    CellRun,
    GridOptions,
    Group,
    Layout,
    Zoom,
    arrange,
    fits_words,
    lay_out,
    natural,
    short_file_names,
)

sizes = st.lists(st.integers(0, 40), max_size=12)


def groups_of(sizes: list[int]) -> list[Group]:
    return [
        Group(f"file_{n}", tuple(f"f{n}::t{place}" for place in range(size))) for n, size in enumerate(sizes) if size
    ]


@given(sizes, st.sampled_from(Zoom), st.integers(1, 200), st.integers(1, 60))
def test_layout_has_every_test_once(sizes: list[int], zoom: Zoom, width: int, height: int) -> None:
    groups = groups_of(sizes)
    layout = lay_out(groups, zoom, width, height)
    assert layout.order() == [test for group in groups for test in group.tests]
    for test, (row, x) in layout.places.items():
        assert layout.test_at(row, x) == test
        (run,) = [run for run in layout.rows[row] if test in run.tests]
        assert x == run.x + run.tests.index(test) * run.step


@given(sizes, st.integers(20, 200), st.integers(1, 60))
def test_dots_fit_and_columns_do_not_overlap(sizes: list[int], width: int, height: int) -> None:
    for row in lay_out(groups_of(sizes), Zoom.DOTS, width, height).rows:
        end = 0
        for run in row:
            assert run.label_x >= end
            assert run.x >= run.label_x + run.label_width
            end = run.x + len(run.tests) * run.step
        assert end <= width


A = Group("aa", ("a0", "a1", "a2", "a3", "a4"))
B = Group("b", ("b0", "b1"))


def test_dots_of_few_groups_are_in_one_column() -> None:
    assert lay_out([A, B], Zoom.DOTS, 6, 3) == Layout(
        [
            (CellRun("aa", 0, 2, 3, 1, ("a0", "a1", "a2"), 5),),
            (CellRun("", 0, 2, 3, 1, ("a3", "a4"), 5),),
            (CellRun("b", 0, 2, 3, 1, ("b0", "b1"), 2),),
        ],
        {"a0": (0, 3), "a1": (0, 4), "a2": (0, 5), "a3": (1, 3), "a4": (1, 4), "b0": (2, 3), "b1": (2, 4)},
        Zoom.DOTS,
    )


def test_dot_columns_are_filled_top_to_bottom() -> None:
    groups = [A, B, Group("c", ("c0",))]
    assert lay_out(groups, Zoom.DOTS, 18, 2) == Layout(
        [
            (CellRun("aa", 0, 2, 3, 1, ("a0", "a1", "a2", "a3", "a4"), 5), CellRun("c", 10, 2, 13, 1, ("c0",), 1)),
            (CellRun("b", 0, 2, 3, 1, ("b0", "b1"), 2),),
        ],
        {"a0": (0, 3), "a1": (0, 4), "a2": (0, 5), "a3": (0, 6), "a4": (0, 7), "b0": (1, 3), "b1": (1, 4)}
        | {"c0": (0, 13)},
        Zoom.DOTS,
    )
    assert lay_out(groups, Zoom.DOTS, 18, 2).order() == [*A.tests, *B.tests, "c0"]
    # Each column has space for a label, the cells of the largest group, and a gap.
    assert len(lay_out(groups, Zoom.DOTS, 17, 2).rows) == 3
    assert len(lay_out(groups, Zoom.DOTS, 18, 3).rows) == 3
    assert len(lay_out(groups, Zoom.DOTS, 100, 1).rows) == 1


def test_group_wider_than_column_continues_below() -> None:
    layout = lay_out([Group("a", tuple(f"a{n}" for n in range(30))), B], Zoom.DOTS, 54, 1)
    assert [[(run.label, run.x, len(run.tests)) for run in row] for row in layout.rows] == [
        [("a", 2, 24), ("b", 30, 2)],
        [("", 2, 6)],
    ]


def test_single_group_is_not_in_columns() -> None:
    wide = lay_out([Group("aa", tuple(f"a{n}" for n in range(200)))], Zoom.DOTS, 100, 1)
    assert [[(run.x, len(run.tests)) for run in row] for row in wide.rows] == [[(3, 97)], [(3, 97)], [(3, 6)]]
    assert lay_out([], Zoom.DOTS, 80, 24) == Layout([], {}, Zoom.DOTS)


def test_chips_are_below_group_heading() -> None:
    assert lay_out([A, Group("", ("z",))], Zoom.CHIPS, 56, 9) == Layout(
        [
            (CellRun("aa", 0, 56, 0, 1, (), 5),),
            (CellRun("", 0, 0, 0, 28, ("a0", "a1"), 5),),
            (CellRun("", 0, 0, 0, 28, ("a2", "a3"), 5),),
            (CellRun("", 0, 0, 0, 28, ("a4",), 5),),
            (CellRun("", 0, 0, 0, 28, ("z",), 1),),
        ],
        {"a0": (1, 0), "a1": (1, 28), "a2": (2, 0), "a3": (2, 28), "a4": (3, 0), "z": (4, 0)},
        Zoom.CHIPS,
    )


def test_chip_has_27_cells() -> None:
    steps = {width: lay_out([A], Zoom.CHIPS, width, 9).rows[1][0] for width in (20, 53, 54, 81)}
    assert {width: (run.step, len(run.tests)) for width, run in steps.items()} == {
        20: (20, 1), 53: (53, 1), 54: (27, 2), 81: (27, 3),
    }  # fmt: skip


def test_table_has_one_test_per_row() -> None:
    assert lay_out([B], Zoom.ROWS, 40, 9) == Layout(
        [
            (CellRun("b", 0, 40, 0, 1, (), 2),),
            (CellRun("", 0, 0, 0, 40, ("b0",), 2),),
            (CellRun("", 0, 0, 0, 40, ("b1",), 2),),
        ],
        {"b0": (1, 0), "b1": (2, 0)},
        Zoom.ROWS,
    )


def members(file: int, start: int, stop: int) -> tuple[str, ...]:
    return tuple(f"f{file}::t{place}" for place in range(start, stop))


def test_label_in_narrow_panel_leaves_a_cell() -> None:
    def first_of(width: int) -> CellRun:
        return lay_out(groups_of([9]), Zoom.DOTS, width, 99).rows[0][0]

    assert first_of(200)._replace(tests=()) == CellRun("file_0", 0, 6, 7, 1, (), 9)
    assert first_of(10) == CellRun("file_0", 0, 3, 4, 1, members(0, 0, 6), 9)
    assert first_of(3) == CellRun("file_0", 0, 1, 2, 1, members(0, 0, 1), 9)
    assert first_of(2) == CellRun("file_0", 0, 0, 0, 1, members(0, 0, 2), 9)
    assert first_of(1) == CellRun("file_0", 0, 0, 0, 1, members(0, 0, 1), 9)
    (long,) = lay_out([Group("x" * 90, ("a::t",))], Zoom.DOTS, 200, 9).rows[0]
    assert (long.label_width, long.x) == (26, 27)


def test_columns_have_at_most_24_cells() -> None:
    rows = lay_out(groups_of([30] * 4), Zoom.DOTS, 70, 3).rows
    assert rows[0] == (
        CellRun("file_0", 0, 6, 7, 1, members(0, 0, 27), 30),
        CellRun("file_2", 36, 6, 43, 1, members(2, 0, 27), 30),
    )
    assert rows[1] == (
        CellRun("", 0, 6, 7, 1, members(0, 27, 30), 30),
        CellRun("", 36, 6, 43, 1, members(2, 27, 30), 30),
    )
    assert len(rows) == 4


def test_columns_are_used_only_if_shorter() -> None:
    assert len(lay_out(groups_of([2] * 5), Zoom.DOTS, 120, 5).rows) == 5
    assert len(lay_out(groups_of([2] * 5), Zoom.DOTS, 120, 4).rows) < 5
    one = lay_out(groups_of([500]), Zoom.DOTS, 120, 2)
    assert [len(row) for row in one.rows] == [1] * 5
    too_narrow = lay_out(groups_of([24] * 3), Zoom.DOTS, 10, 1)
    assert [len(row) for row in too_narrow.rows] == [1] * 12
    assert lay_out([], Zoom.DOTS, 80, 0) == Layout([], {}, Zoom.DOTS)


def test_nearest_test_in_row_is_found() -> None:
    rows = [
        (CellRun("a", 0, 4, 5, 3, ("a0", "a1"), 2), CellRun("b", 20, 4, 25, 3, ("b0", "b1"), 2)),
        (CellRun("heading", 0, 40, 0, 1, (), 2),),
    ]
    layout = Layout(rows, {}, Zoom.DOTS)
    found = {x: layout.test_at(0, x) for x in (0, 5, 7, 8, 10, 11, 17, 18, 24, 25, 27, 28, 90)}
    assert found == {
        0: "a0", 5: "a0", 7: "a0", 8: "a1", 10: "a1", 11: "a1", 17: "a1", 18: "b0", 24: "b0", 25: "b0", 27: "b0",
        28: "b1", 90: "b1",
    }  # fmt: skip
    assert [layout.test_at(row, 5) for row in (-1, 1, 2)] == [None, None, None]
    halfway = Layout([(CellRun("", 0, 0, 0, 2, ("a0",), 1), CellRun("", 0, 0, 9, 2, ("b0",), 1))], {}, Zoom.DOTS)
    assert halfway.test_at(0, 5) == "a0", "the first of two that are equally near"


def sweep() -> dict[str, TestRecord]:
    def record(name: str, **fields: object) -> TestRecord:
        file = f"tests/{name[0]}/test_{name}.py"
        return structs.replace(TestRecord(f"{file}::test_it", file=file), **fields)

    records = [
        record("b2", state=State.WAITING, since=5.0, host="two"),
        record("b10", state=State.DONE, result=Result.CLEAN, dollars=2.0, launched_at=1.0, ended_at=3.0),
        record(
            "a1", state=State.DONE, result=Result.ERROR, dollars=1.0, launched_at=1.0, ended_at=9.0, reason="broke 7"
        ),
        record("a2"),
    ]
    return {record.test: record for record in records}


def labels(choice: GridOptions) -> list[str]:
    return [group.label for group in arrange(sweep(), choice, 10.0)]


def shown(choice: GridOptions) -> list[str]:
    tests = [test for group in arrange(sweep(), choice, 10.0) for test in group.tests]
    return [test.split("test_")[1].split(".py")[0] for test in tests]


def test_tests_are_grouped_by_each_criterion() -> None:
    assert labels(GridOptions()) == ["a1", "a2", "b2", "b10"]
    assert labels(GridOptions(group="state")) == ["waiting", "queued", "done"]
    assert labels(GridOptions(group="result")) == ["clean", "error", "no result yet"]
    assert labels(GridOptions(group="cause")) == ["broke N", "waits for an answer", "nothing failed"]
    assert labels(GridOptions(group="host")) == ["no host yet", "two"]
    assert labels(GridOptions(group="none")) == [""]


def test_tests_are_sorted_by_each_criterion() -> None:
    assert shown(GridOptions(group="none", sort="need"))[:2] == ["b2", "a1"]
    assert shown(GridOptions(group="none", sort="duration"))[0] == "a1"
    assert shown(GridOptions(group="none", sort="cost"))[:2] == ["b10", "a1"]
    assert shown(GridOptions(group="none", sort="state"))[0] == "b10"


def test_tests_are_filtered() -> None:
    assert shown(GridOptions(words="a1")) == ["a1"]
    assert shown(GridOptions(words="!a1 WAIT")) == ["b2"]
    assert shown(GridOptions(pills=frozenset({"error", "waiting"}))) == ["a1", "b2"]
    assert shown(GridOptions(only=frozenset(list(sweep())[:1]))) == ["b2"]
    assert shown(GridOptions(words="nothing like this")) == []


@given(st.sampled_from(GROUPINGS), st.sampled_from(SORTINGS))
def test_every_grouping_and_order_has_all_tests(group: str, sort: str) -> None:
    assert sorted(shown(GridOptions(group=group, sort=sort))) == ["a1", "a2", "b10", "b2"]


def test_filter_words_match_and_exclude() -> None:
    assert fits_words("one TWO", "two and one")
    assert not fits_words("one !two", "two and one")
    assert fits_words("one !", "one")


def test_names_are_in_natural_order() -> None:
    assert sorted(["x10", "x9", "x"], key=natural) == ["x", "x9", "x10"]


def test_short_file_names_are_unique() -> None:
    assert list(short_file_names(["t/e2e/test_a.py", "t/unit/test_b.py"]).values()) == ["a", "b"]
    assert list(short_file_names(["t/e2e/test_a.py", "t/unit/test_a.py"]).values()) == ["e2e/a", "unit/a"]
    assert list(short_file_names(["a.py", "a/b.py", "test_a.py"]).values()) == ["a.py", "a/b.py", "test_a.py"]
    assert short_file_names([]) == {}
