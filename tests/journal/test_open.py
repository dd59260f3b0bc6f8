"""Finding, opening and following sweeps; a snapshot gives the same state as the journal."""

import json
import os
import resource
from pathlib import Path

import pytest
from hypothesis import given, settings

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.journal.append import EngineLock, JournalWriter
from swarm_tui.journal.events import Queued
from swarm_tui.journal.folder import SweepFolder, create_runs_folder, find_sweep, list_sweeps
from swarm_tui.journal.follow import LineFollower
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.requests import RequestFollower, RequestKind, append_request
from swarm_tui.journal.snapshot import read_snapshot, write_snapshot
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import Event
from swarm_tui.model.spec import FORMAT_VERSION, MngrSettings, SweepSpec
from tests.journal.sweeps import events


def make_sweep(repository: Path, name: str) -> SweepFolder:
    folder = SweepFolder(create_runs_folder(repository) / name)
    folder.write_spec(
        SweepSpec(sweep=name, repository=str(repository), base="0" * 40, created_at=1.0, mngr=MngrSettings(path="mngr"))
    )
    return folder


def test_find_sweep_by_id_prefix_or_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sweeps in this repository"):
        find_sweep(tmp_path)
    old = make_sweep(tmp_path, "20261117-100000")
    new = make_sweep(tmp_path, "20261118-061200")
    assert list_sweeps(tmp_path) == [old, new]
    assert find_sweep(tmp_path) == new
    assert find_sweep(tmp_path, "20261117") == old
    assert find_sweep(tmp_path, str(old.root)) == old
    with pytest.raises(UsageError, match="matches 2 sweeps"):
        find_sweep(tmp_path, "2026")
    with pytest.raises(UsageError, match="use one of the newest: 20261117-100000, 20261118-061200"):
        find_sweep(tmp_path, "1999")
    with pytest.raises(UsageError, match="not a sweep folder"):
        find_sweep(tmp_path, "./nowhere")


def test_runs_folder_is_ignored_by_git(tmp_path: Path) -> None:
    make_sweep(tmp_path, "20261118-061200")
    assert (tmp_path / ".swarm" / ".gitignore").read_text() == "*\n"


def test_invalid_or_old_spec_raises_error_newer_is_marked(tmp_path: Path) -> None:
    folder = make_sweep(tmp_path, "20261118-061200")
    assert not folder.read_spec().is_newer_format
    newer = json.loads(folder.spec.read_text()) | {"version": FORMAT_VERSION + 1, "novelty": True}
    folder.spec.write_text(json.dumps(newer))
    assert folder.read_spec().is_newer_format
    folder.spec.write_text(json.dumps(newer | {"version": FORMAT_VERSION - 1}))
    with pytest.raises(JournalError, match="20261118-061200 was created by an earlier version of swarm-tui") as caught:
        folder.read_spec()
    assert caught.value.hint == f"open it with that version, or delete {folder.root}"
    folder.spec.write_text(f'{{"version": {FORMAT_VERSION}}}')
    with pytest.raises(JournalError, match=r"sweep.json is invalid: Object missing required field `sweep`"):
        folder.read_spec()


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "-x", "a" * 200])
def test_invalid_agent_name_raises_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="invalid agent name"):
        SweepFolder(tmp_path).agent(name)


@settings(max_examples=40)
@given(story=events, rest=events)
def test_snapshot_and_later_events_equal_full_fold(
    tmp_path_factory: pytest.TempPathFactory, story: list[Event], rest: list[Event]
) -> None:
    root = tmp_path_factory.mktemp("sweep")
    folder = make_sweep(root, "20261118-061200")
    whole = SweepState()
    with JournalWriter(folder.events) as writer:
        for event in story:
            whole.apply(writer.append(event))
        write_snapshot(folder.snapshot, folder.events, os.path.getsize(folder.events), whole)
        _, offset = read_snapshot(folder.snapshot, folder.events)
        assert offset == os.path.getsize(folder.events)
        for event in rest:
            whole.apply(writer.append(event))
    opened = open_sweep(folder)
    assert list(opened.state.tests()) == list(whole.tests())
    assert +opened.state.counts == +whole.counts
    assert list(opened.state.log) == list(whole.log)
    assert opened.state.integration == whole.integration
    assert (opened.state.slots, opened.state.ended_why) == (whole.slots, whole.ended_why)


def test_snapshot_of_other_journal_is_ignored(tmp_path: Path) -> None:
    folder = make_sweep(tmp_path, "20261118-061200")
    with JournalWriter(folder.events) as writer:
        writer.append(Queued(test="a"))
        write_snapshot(
            folder.snapshot,
            folder.events,
            os.path.getsize(folder.events),
            SweepState().apply_all([Queued(test="something else")]),
        )
    folder.events.write_bytes(folder.events.read_bytes().replace(b'"a"', b'"b"'))
    assert list(open_sweep(folder).state.records) == ["b"]
    folder.snapshot.write_text("garbage")
    assert list(open_sweep(folder).state.records) == ["b"]


def test_open_sweep_changes_no_file(tmp_path: Path) -> None:
    folder = make_sweep(tmp_path, "20261118-061200")
    with JournalWriter(folder.events) as writer:
        writer.append(Queued(test="a"))
    with open(folder.events, "ab") as file:
        file.write(b"garbage\n{torn")
    before = {path: path.read_bytes() for path in folder.root.iterdir()}
    opened = open_sweep(folder)
    assert not opened.has_running_engine
    assert (list(opened.state.records), len(opened.bad_lines)) == (["a"], 1)
    assert {path: path.read_bytes() for path in folder.root.iterdir()} == before


def test_replaced_journal_restarts_state(tmp_path: Path) -> None:
    folder = make_sweep(tmp_path, "20261118-061200")
    with JournalWriter(folder.events) as writer:
        writer.append(Queued(test="a"))
    with open(folder.events, "ab") as file:
        file.write(b"garbage\n")
    opened = open_sweep(folder)
    assert not opened.read_new_events()
    assert (list(opened.state.records), len(opened.bad_lines)) == (["a"], 1)
    folder.events.unlink()
    with JournalWriter(folder.events) as writer:
        writer.append(Queued(test="b"))
    assert opened.read_new_events()
    assert (list(opened.state.records), opened.bad_lines) == (["b"], [])


def test_at_most_hundred_bad_lines_are_kept(tmp_path: Path) -> None:
    folder = make_sweep(tmp_path, "20261118-061200")
    folder.events.write_bytes(b"garbage\n" * 99)
    opened = open_sweep(folder)
    assert len(opened.bad_lines) == 99
    for _ in range(2):
        with open(folder.events, "ab") as file:
            file.write(b"garbage\n" * 5)
        opened.read_new_events()
        assert len(opened.bad_lines) == 100


def test_valid_snapshot_replaces_reading_lines(tmp_path: Path) -> None:
    folder = make_sweep(tmp_path, "20261118-061200")
    with JournalWriter(folder.events) as writer:
        writer.append(Queued(test="a"))
    other = SweepState().apply_all([Queued(test="from the snapshot")])
    write_snapshot(folder.snapshot, folder.events, os.path.getsize(folder.events), other)
    assert list(open_sweep(folder).state.records) == ["from the snapshot"]


def test_engine_runs_while_lock_is_held(tmp_path: Path) -> None:
    folder = make_sweep(tmp_path, "20261118-061200")
    opened = open_sweep(folder)
    lock = EngineLock(folder.lock)
    lock.acquire()
    assert opened.has_running_engine
    lock.release()
    assert not opened.has_running_engine


def test_find_test_uses_first_matching_way(tmp_path: Path) -> None:
    folder = make_sweep(tmp_path, "20261118-061200")
    long = "c.py::test_" + "x" * 100
    with JournalWriter(folder.events) as writer:
        for number, test in enumerate(("a.py::test_one", "a.py::test_one_more", "b.py::test_two", long, "d.py")):
            writer.append(Queued(test=test, agent=f"swarm-{number}"))
    sweep = open_sweep(folder)
    wanted = {"a.py::test_one": 0, "test_one": 0, "one_more": 1, "_two": 2, "swarm-2": 2, "arm-1": 1, "d.py": 4}
    assert {name: sweep.find_test(name).agent for name in wanted} == {
        name: f"swarm-{number}" for name, number in wanted.items()
    }
    with pytest.raises(UsageError) as several:
        sweep.find_test("py")
    assert (several.value.message, several.value.hint) == (
        "'py' matches 5 tests",
        f"use one, for example a.py::test_one, a.py::test_one_more, b.py::test_two, {long[:79]}…",
    )
    with pytest.raises(UsageError, match="unknown test or agent in 20261118-061200: 'nowhere'"):
        sweep.find_test("nowhere")


def test_requests_are_read_once_invalid_lines_reported(tmp_path: Path) -> None:
    folder = make_sweep(tmp_path, "20261118-061200")
    follower = RequestFollower(folder)
    assert follower.read() == ([], [])
    asked = append_request(folder, RequestKind.SLOTS, slots=3)
    with open(folder.requests, "ab") as file:
        file.write(b'{"kind": "explode"}\n{"torn": ')
    also = append_request(folder, RequestKind.STOP, tests=["a"])
    requests, refused = follower.read()
    assert requests == [asked, also]
    assert len(refused) == 2
    assert follower.read() == ([], [])


def test_full_disk_leaves_no_empty_gitignore(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(JournalError, match="cannot be"):
            create_runs_folder(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    create_runs_folder(tmp_path)
    assert (tmp_path / ".swarm/.gitignore").read_text() == "*\n"


def test_replaced_file_with_same_inode_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    follower = LineFollower(path)
    assert follower.read() == ([(0, b"one"), (4, b"two")], False)
    assert follower.read() == ([], False)
    with path.open("ab") as file:
        file.write(b"three\nfo")
    assert follower.read() == ([(8, b"three")], False)
    path.write_bytes(b"another\nfile, longer\nthan it was\n")
    assert follower.read() == ([(0, b"another"), (8, b"file, longer"), (21, b"than it was")], True)
    path.write_bytes(b"short\n")
    assert follower.read() == ([(0, b"short")], True)
    assert follower.read() == ([], False)
