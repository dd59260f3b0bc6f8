"""Every test that is shown has one place in the grid, in every zoom and on every size."""

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import Result, State
from swarm_tui.room.draw.arrange import (
    GROUPINGS,
    SORTINGS,
    GridOptions,
    Group,
    Zoom,
    arrange,
    fits_words,
    natural,
    short_file_names,
)
from swarm_tui.room.draw.layout import lay_out

sizes = st.lists(st.integers(0, 40), max_size=12)


def groups_of(sizes: list[int]) -> list[Group]:
    return [
        Group(f"file_{n}", tuple(f"f{n}::t{place}" for place in range(size))) for n, size in enumerate(sizes) if size
    ]


@given(sizes, st.sampled_from(Zoom), st.integers(1, 200), st.integers(1, 60))
def test_every_test_has_one_place(sizes: list[int], zoom: Zoom, width: int, height: int) -> None:
    groups = groups_of(sizes)
    layout = lay_out(groups, zoom, width, height)
    assert layout.order() == [test for group in groups for test in group.tests]
    for test, (row, x) in layout.places.items():
        assert layout.test_at(row, x) == test
        (run,) = [run for run in layout.rows[row] if test in run.tests]
        assert x == run.x + run.tests.index(test) * run.step


@given(sizes, st.integers(20, 200), st.integers(1, 60))
def test_dots_stay_within_the_panel_and_columns_do_not_overlap(sizes: list[int], width: int, height: int) -> None:
    for row in lay_out(groups_of(sizes), Zoom.DOTS, width, height).rows:
        end = 0
        for run in row:
            assert run.label_x >= end
            assert run.x >= run.label_x + run.label_width
            end = run.x + len(run.tests) * run.step
        assert end <= width


def test_groups_that_are_too_many_for_the_height_stand_in_columns() -> None:
    groups = groups_of([10] * 40)
    assert len(lay_out(groups, Zoom.DOTS, 120, 50).rows) == 40
    assert len(lay_out(groups, Zoom.DOTS, 120, 20).rows) <= 14


def sweep() -> dict[str, TestRecord]:
    def record(name: str, **fields: object) -> TestRecord:
        file = f"tests/{name[0]}/test_{name}.py"
        return TestRecord(f"{file}::test_it", file=file)._replace(**fields)  # type: ignore[arg-type]

    records = [
        record("b2", state=State.WAITING, since=5.0, host="two"),
        record("b10", state=State.DONE, result=Result.CLEAN, dollars=2.0, launched_at=1.0, ended_at=3.0),
        record(
            "a1", state=State.DONE, result=Result.FAILED, dollars=1.0, launched_at=1.0, ended_at=9.0, reason="broke 7"
        ),
        record("a2"),
    ]
    return {record.test: record for record in records}


def labels(choice: GridOptions) -> list[str]:
    return [group.label for group in arrange(sweep(), choice, 10.0)]


def shown(choice: GridOptions) -> list[str]:
    tests = [test for group in arrange(sweep(), choice, 10.0) for test in group.tests]
    return [test.split("test_")[1].split(".py")[0] for test in tests]


def test_groups() -> None:
    assert labels(GridOptions()) == ["a1", "a2", "b2", "b10"]
    assert labels(GridOptions(group="state")) == ["waiting", "queued", "done"]
    assert labels(GridOptions(group="result")) == ["clean", "failed", "no result yet"]
    assert labels(GridOptions(group="cause")) == ["broke N", "waits for an answer", "nothing failed"]
    assert labels(GridOptions(group="host")) == ["no host yet", "two"]
    assert labels(GridOptions(group="none")) == [""]


def test_orders() -> None:
    assert shown(GridOptions(group="none", sort="need"))[:2] == ["b2", "a1"]
    assert shown(GridOptions(group="none", sort="duration"))[0] == "a1"
    assert shown(GridOptions(group="none", sort="cost"))[:2] == ["b10", "a1"]
    assert shown(GridOptions(group="none", sort="state"))[0] == "b10"


def test_filters() -> None:
    assert shown(GridOptions(words="a1")) == ["a1"]
    assert shown(GridOptions(words="!a1 WAIT")) == ["b2"]
    assert shown(GridOptions(pills=frozenset({"failed", "waiting"}))) == ["a1", "b2"]
    assert shown(GridOptions(only=frozenset(list(sweep())[:1]))) == ["b2"]
    assert shown(GridOptions(words="nothing like this")) == []


@given(st.sampled_from(GROUPINGS), st.sampled_from(SORTINGS))
def test_every_grouping_and_order_shows_all(group: str, sort: str) -> None:
    assert sorted(shown(GridOptions(group=group, sort=sort))) == ["a1", "a2", "b10", "b2"]


def test_words() -> None:
    assert fits_words("one TWO", "two and one")
    assert not fits_words("one !two", "two and one")
    assert fits_words("one !", "one")


def test_natural_order() -> None:
    assert sorted(["x10", "x9", "x"], key=natural) == ["x", "x9", "x10"]


def test_files_are_named_as_shortly_as_they_can_be_told_apart() -> None:
    assert list(short_file_names(["t/e2e/test_a.py", "t/unit/test_b.py"]).values()) == ["a", "b"]
    assert list(short_file_names(["t/e2e/test_a.py", "t/unit/test_a.py"]).values()) == ["e2e/a", "unit/a"]
    assert list(short_file_names(["a.py", "a/b.py", "test_a.py"]).values()) == ["a.py", "a/b.py", "test_a.py"]
    assert short_file_names([]) == {}
