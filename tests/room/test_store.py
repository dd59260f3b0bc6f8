"""The store follows a sweep's folder and reports changes and answers to requests."""

import platform
import shutil
from pathlib import Path

import pytest

from swarm_tui.journal.append import EngineLock, JournalWriter, LineAppender
from swarm_tui.journal.events import (
    EngineEnded,
    EngineStarted,
    Launched,
    LogMessage,
    Pulled,
    Queued,
    RequestAnswered,
    Stopped,
)
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.requests import RequestFollower, RequestKind
from swarm_tui.model.event import Event
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.money.events import UsageReported
from swarm_tui.room.store import Answer, ChangeScope, EngineState, Store, SweepChanged


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    sweep = SweepFolder(tmp_path / "20261118-061200")
    sweep.write_spec(
        SweepSpec(sweep=sweep.name, repository="/r", base="abc", created_at=1.0, mngr=MngrSettings(path="mngr"))
    )
    return sweep


def write(folder: SweepFolder, *events: Event) -> None:
    written = len(folder.events.read_bytes().splitlines()) if folder.events.exists() else 0
    with JournalWriter(folder.events, last_seq=written) as journal:
        for event in events:
            journal.append(event)


def _engine(store: Store) -> EngineState:
    return store.engine


def test_store_reports_each_change_once(folder: SweepFolder) -> None:
    write(folder, Queued(test="a"), Queued(test="b"))
    store = Store(folder)
    assert not store.read_new_events()
    assert store.is_loaded
    first = store.drain()
    assert first == SweepChanged(frozenset({"a", "b"}), frozenset({ChangeScope.EVERYTHING, ChangeScope.JOURNAL}))
    write(folder, Launched(test="b"))
    store.read_new_events()
    assert store.drain() == SweepChanged(frozenset({"b"}), frozenset({ChangeScope.JOURNAL}))
    assert store.drain() == SweepChanged()


def test_store_without_journal_is_empty(folder: SweepFolder) -> None:
    store = Store(folder)
    assert not store.read_new_events()
    assert store.is_loaded
    assert store.problem == ""
    assert store.engine is EngineState.ENDED


def test_replaced_journal_is_read_again(folder: SweepFolder) -> None:
    write(folder, Queued(test="a"), Queued(test="b"))
    store = Store(folder)
    store.read_new_events()
    store.drain()
    folder.events.unlink()
    write(folder, Queued(test="c"))
    store.read_new_events()
    assert store.drain() == SweepChanged(frozenset({"c"}), frozenset({ChangeScope.EVERYTHING, ChangeScope.JOURNAL}))
    assert list(store.state.records) == ["c"]


def test_missing_folder_is_reported_and_state_kept(folder: SweepFolder) -> None:
    write(folder, Queued(test="a"))
    store = Store(folder)
    store.read_new_events()
    shutil.rmtree(folder.root)
    store.read_new_events()
    assert "folder not found" in store.problem
    assert list(store.state.records) == ["a"]
    assert store.log()[-1].level == "error"
    folder.root.mkdir()
    write(folder, Queued(test="a"), Queued(test="b"))
    store.read_new_events()
    assert store.problem == ""
    assert list(store.state.records) == ["a", "b"]


def test_events_of_newer_version_are_ignored_and_reported(folder: SweepFolder) -> None:
    LineAppender(folder.events).append(b'{"seq": 1, "at": 1, "type": "teleported", "test": "a"}')
    write(folder, Queued(test="a"))
    store = Store(folder)
    store.read_new_events()
    assert store.is_from_newer_version
    assert list(store.state.records) == ["a"]


def test_line_longer_than_slice_is_read(folder: SweepFolder) -> None:
    write(folder, LogMessage(text="x" * 1_500_000), Queued(test="a"))
    store = Store(folder)
    for _ in range(10):
        if not store.read_new_events():
            break
    assert list(store.state.records) == ["a"]


def test_engine_state_follows_lock(folder: SweepFolder) -> None:

    write(folder, EngineStarted(pid=1, machine=platform.node()))
    store = Store(folder)
    store.read_new_events()
    store.check_engine()
    assert _engine(store) is EngineState.GONE
    assert "press R" in store.why_no_requests()
    lock = EngineLock(folder.lock)
    lock.acquire()
    assert store.check_engine()
    assert _engine(store) is EngineState.RUNNING
    assert store.why_no_requests() == ""
    lock.release()
    write(folder, EngineEnded())
    store.read_new_events()
    store.check_engine()
    assert _engine(store) is EngineState.ENDED


def test_engine_on_other_machine_has_unknown_state(folder: SweepFolder) -> None:
    write(folder, EngineStarted(pid=1, machine="far-away"))
    store = Store(folder)
    store.read_new_events()
    store.check_engine()
    assert store.engine is EngineState.ELSEWHERE
    assert "far-away" in store.why_no_requests()


def test_request_is_pending_until_answered(folder: SweepFolder) -> None:
    write(folder, Queued(test="a"))
    store = Store(folder)
    store.read_new_events()
    request = store.send_request(RequestKind.STOP, tests=["a"])
    more = store.send_request(RequestKind.SLOTS, slots=7)
    assert [asked.id for asked in RequestFollower(folder).read()[0]] == [request.id, more.id]
    assert store.pending_for("a") is RequestKind.STOP
    assert store.wanted_slots == 7
    write(folder, RequestAnswered(request=request.id))
    write(folder, RequestAnswered(request=more.id, is_done=False, detail="the host is full"))
    store.read_new_events()
    assert store.pending_for("a") is RequestKind.STOP, "the engine is at it; the test is not stopped yet"
    write(folder, Stopped(test="a"))
    store.read_new_events()
    assert store.pending_for("a") is None
    assert store.drain() == SweepChanged(
        frozenset({"a"}),
        frozenset({ChangeScope.EVERYTHING, ChangeScope.JOURNAL}),
        (Answer("7 slots: the host is full", is_done=False), Answer("stop 1 test: done", is_done=True)),
    )
    assert store.wanted_slots == 0


def test_patterns_and_cost_follow_journal(folder: SweepFolder) -> None:
    now = [10.0]
    store = Store(folder, clock=lambda: now[0])
    for test in ("a", "b"):
        write(
            folder,
            Queued(test=test),
            UsageReported(test=test, dollars=1.5),
            Pulled(test=test, result=Result.ERROR, reason=f"broke at {ord(test)}"),
        )
    store.read_new_events()
    (pattern,) = store.patterns()
    assert pattern.tests == ("a", "b")
    assert store.state.spending.dollars == 3.0
    write(folder, Queued(test="a", reason="again"))
    store.read_new_events()
    now[0] += 2.0
    assert store.patterns() == []
    assert store.state.records["a"].state is State.QUEUED
