"""The view of a sweep without a terminal: order, marks, folders, and reasons why an action is unavailable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.room.grid.draw_layout import CellRun, GridOptions, Zoom
from swarm_tui.room.grid.session import UNSOLVED, SweepView
from swarm_tui.room.store import EVERYTHING_CHANGED, VIEW_CHANGED, SweepChanged
from swarm_tui.simulate.feeder import main as feed
from tests.room.scenes import NOW, open_store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    folder = SweepFolder(tmp_path_factory.mktemp("sweep") / "s")
    feed([str(folder.root), "--tests", "60", "--ahead", "0.5", "--seconds", "0", "--at", str(NOW)])
    return folder


@pytest.fixture
def changes() -> list[SweepChanged]:
    return []


@pytest.fixture
def view(folder: SweepFolder, changes: list[SweepChanged]) -> SweepView:
    store = open_store(folder)
    store.check_engine()
    view = SweepView(store, changed=changes.append)
    assert not view.is_arranged
    view.update(EVERYTHING_CHANGED, 80, 20, 0.0)
    return view


def test_order_changes_only_if_needed(view: SweepView, changes: list[SweepChanged]) -> None:
    assert view.is_arranged
    assert sorted(view.order) == sorted(view.store.state.records)
    assert view.update(SweepChanged(), 80, 20, 0.0) is None
    assert view.update(SweepChanged(tests=frozenset(view.order[:1])), 80, 20, 0.0) is None
    assert view.update(SweepChanged(), 70, 20, 0.0) is not None
    view.change(words="config")
    assert changes == [VIEW_CHANGED]
    assert view.update(VIEW_CHANGED, 70, 20, 0.0) is not None
    assert view.order
    assert all("config" in test for test in view.order)
    assert "match /config" in view.title()


def test_zoom_stops_at_both_ends(view: SweepView) -> None:
    for _ in range(5):
        view.change_zoom(-1)
    assert (view.options.zoom, view.is_zoom_chosen) == (Zoom.FOLDERS, True)
    for _ in range(5):
        view.change_zoom(1)
    assert view.options.zoom is Zoom.ROWS


def test_escape_closes_one_thing_at_a_time(view: SweepView) -> None:
    view.change(words="test", zoom=Zoom.FOLDERS)
    before = view.options
    run = CellRun("file", 0, 80, 0, 1, tuple(view.order[:3]), 3)
    assert view.open_folder(run)
    assert view.options.only == frozenset(view.order[:3])
    view.switch_range(view.order[0])
    view.extend_range(view.order[2])
    assert view.marks.tests == frozenset(view.order[:3])
    states = []
    while view.close_innermost():
        states.append((view.options, bool(view.marks.tests)))
    opened = replace(before, only=frozenset(run.tests), only_name="file", zoom=states[0][0].zoom)
    all_tests = GridOptions(zoom=Zoom.FOLDERS)
    assert states == [(opened, True), (opened, False), (before, False), (all_tests, False)]


def test_marks_are_switched_and_undone(view: SweepView, changes: list[SweepChanged]) -> None:
    first, second = view.order[:2]
    assert view.marked_or(first) == (first,)
    view.switch_marks((first, second))
    assert changes == [SweepChanged(tests=frozenset((first, second)))]
    assert view.marked_or(None) == (first, second)
    view.switch_marks((first,))
    assert view.marks.tests == {second}
    view.mark_shown()
    assert view.marks.tests == set(view.order)
    view.change_marks(view.marks.undone())
    assert view.marks.tests == {second}
    view.switch_unsolved_only()
    assert view.options.pills == UNSOLVED


def test_next_needing_user_visits_each_test_once(view: SweepView) -> None:
    needing = {record.test for record in view.store.insights.tests_needing_person()}
    assert len(needing) > 1
    visited = [view.next_needing_user()[0] for _ in needing]
    assert set(visited) == needing
    assert view.next_needing_user()[0] == visited[0]
    view.change(words="no such test")
    view.update(VIEW_CHANGED, 80, 20, 0.0)
    assert view.next_needing_user() == (None, f"no test needs you here; {len(needing)} hidden by the filter do")


def test_reasons_depend_on_engine(view: SweepView, folder: SweepFolder) -> None:
    gone = "the engine of this sweep is not running: press R to resume it"
    assert [view.why_not_fewer_slots(), view.why_not_hold(), view.why_not_release()] == [gone] * 3
    assert view.why_not_resume() == ""
    lock = EngineLock(folder.lock)
    lock.acquire()
    try:
        view.store.check_engine()
        assert [view.why_not_fewer_slots(), view.why_not_hold()] == ["", ""]
        assert view.why_not_release() == "the queue is not held"
        assert view.why_not_resume() == "its engine is running"
    finally:
        lock.release()
