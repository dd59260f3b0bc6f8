"""Thousands of tests are shown as counts by folder or file. Enter opens a folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.results import MARKS
from swarm_tui.room.draw.spans import text_of, width_of
from swarm_tui.room.grid.draw import FolderCounts, by_folder, draw_folder
from swarm_tui.room.grid.draw_layout import Group, Zoom, largest_zoom, lay_out
from tests.room.scenes import Scene, press, room_on, text_on_screen
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep

marks = st.sampled_from(sorted(MARKS))
files = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join), st.integers(1, 9), min_size=1, max_size=20
)


def groups_of(files: dict[str, int]) -> list[Group]:
    return [Group(name, tuple(f"{name}.py::t{place}" for place in range(size))) for name, size in files.items()]


@given(files, st.integers(1, 30))
def test_folders_have_every_test_and_fit(files: dict[str, int], height: int) -> None:
    groups = groups_of(files)
    found = by_folder(groups, height)
    assert Counter(test for group in found for test in group.tests) == Counter(
        test for group in groups for test in group.tests
    )
    if len(groups) <= height:
        assert found == groups
    top = {test.split("::")[0].rpartition("/")[0].split("/")[0] for group in groups for test in group.tests}
    assert len(found) <= max(height, len(top)) or len(top) == 1


@given(st.lists(marks, min_size=1, max_size=60), st.lists(st.tuples(st.integers(0, 59), marks)))
def test_folder_counts_match_its_tests(before: list[str], changes: list[tuple[int, str]]) -> None:
    now = {f"a.py::{number}": mark for number, mark in enumerate(before)}
    layout = lay_out([Group("a", tuple(now))], Zoom.FOLDERS, 80, 9)
    counts = FolderCounts(layout.rows, now.__getitem__)
    for number, mark in changes:
        test = f"a.py::{number}"
        if test in now:
            assert counts.change(test, layout.places[test][0], mark) is (now[test] != mark)
            now[test] = mark
    assert +Counter(counts.of(0)) == Counter(now.values())


@given(st.dictionaries(marks, st.integers(1, 10_000)), st.integers(10, 200))
def test_folder_row_fits_width(counts: dict[str, int], width: int) -> None:
    assert width_of(draw_folder("tests/a/folder/with/a/long/name", counts, width)) <= width


def test_folder_row_has_name_number_and_states() -> None:
    line = text_of(draw_folder("tests/unit", {"clean": 30, "error": 10}, 80))
    assert line.split() == ["tests/unit", "40", "█" * 23, "✓30", "!10"]


def test_thousands_become_folders_only_if_not_all_fit() -> None:
    many = groups_of({f"tests/{number}": 40 for number in range(50)})
    assert largest_zoom(many, 80, 20) is Zoom.FOLDERS
    assert largest_zoom(many, 200, 60) is Zoom.DOTS
    assert largest_zoom(groups_of({f"tests/{number}": 40 for number in range(25)}), 30, 5) is Zoom.DOTS
    assert largest_zoom(groups_of({"tests/one": 2000}), 80, 5) is Zoom.DOTS


async def test_folder_opens_and_closes(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 4_000, QuickMngr(tmp_path / "mngr"))
    async with room_on(context.folder, Scene("folders", (), 80, 24)) as (app, pilot):

        def title() -> str:
            return next(line for line in text_on_screen(app).splitlines() if "Tests 4,000" in line)

        assert app.view.options.zoom is Zoom.FOLDERS
        assert len(app.view.order) == 4_000
        await press(pilot, "down", "space")
        assert len(app.view.marks.tests) == 80, "what is marked is all of the file"
        await press(pilot, "escape", "up", "enter")
        assert app.view.options.zoom is not Zoom.FOLDERS
        assert len(app.view.order) == 80
        assert "match" in title()
        await press(pilot, "escape")
        assert app.view.options.zoom is Zoom.FOLDERS
        assert "match" not in title()
        await press(pilot, "escape")
        assert "press q to leave" in text_on_screen(app).splitlines()[-1]
