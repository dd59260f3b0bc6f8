"""Long and damaged sweeps, invalid snapshots, and irregular files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.files import NoRegularFile, open_regular, read_regular
from swarm_tui.journal.append import JournalWriter, LineAppender, engine_process_id
from swarm_tui.journal.events import (
    END_LOST,
    FIRST_LINE_LOST,
    EngineEnded,
    EngineStarted,
    Launched,
    Launching,
    LogMessage,
    Pulled,
    Queued,
    SlotsChanged,
)
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LINE_LIMIT
from swarm_tui.journal.open import integrity_warnings, open_sweep
from swarm_tui.journal.recover import JournalOwner, take_up_journal
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.journal.snapshot import read_snapshot, write_snapshot
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import Event
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import MngrSettings, SweepSpec, derive_tests
from swarm_tui.sweep.start import write_sweep

SWEEP = "20261118-061200"
A, B = "tests/test_a.py::test_a", "tests/test_b.py::test_b"


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    """Return a sweep with two tests, before its first engine."""
    spec = SweepSpec(sweep=SWEEP, repository="/r", base="0" * 40, created_at=1.0, mngr=MngrSettings(path="mngr"))
    folder = SweepFolder(tmp_path / SWEEP)
    write_sweep(folder, spec, derive_tests(SWEEP, [(A, "tests/test_a.py", 3), (B, "tests/test_b.py", 7)]))
    return folder


def write(folder: SweepFolder, *events: Event) -> SweepState:
    """Let an engine write events, and return its state."""
    taken_up = take_up_journal(folder, folder.read_spec())
    with taken_up.writer as writer:
        for event in events:
            taken_up.state.apply(writer.append(event))
    return taken_up.state


def test_long_journal_is_read_to_end(folder: SweepFolder) -> None:
    text = "x" * 1_000_000
    number = LINE_LIMIT // len(text) + 3
    write(folder, *(LogMessage(text=text) for _ in range(number)), SlotsChanged(slots=7))
    told: list[tuple[int, int]] = []
    opened = open_sweep(folder, lambda done, size: told.append((done, size)))
    assert opened.state.slots == 7
    assert told[-1] == (folder.events.stat().st_size,) * 2
    assert len(told) > number // 5


def test_endless_line_is_ignored_in_pieces(folder: SweepFolder) -> None:
    with folder.events.open("r+b") as file:
        file.seek(LINE_LIMIT + 5, os.SEEK_END)
        file.write(b"x\n")
    with JournalWriter(folder.events, last_seq=2) as writer:
        writer.append(SlotsChanged(slots=7))
    state = open_sweep(folder).state
    assert (state.slots, state.broken_lines) == (7, 2)


async def test_running_engine_writes_snapshots(folder: SweepFolder) -> None:
    taken_up = take_up_journal(folder, folder.read_spec())
    keeper = JournalOwner(folder, taken_up.writer, taken_up.state)
    taken_up.state.apply(taken_up.writer.append(EngineStarted(pid=1, slots=3)))
    await keeper.keep()
    size = folder.events.stat().st_size
    with folder.events.open("ab") as file:
        file.write(b'{"seq":3,"type":"slots_changed","slots":900}\n')
    taken_up.state.apply(taken_up.writer.append(Launched(test=A)))
    state, offset = read_snapshot(folder.snapshot, folder.events)
    assert (offset, state.slots, state.foreign_lines) == (size, 3, 0)
    opened = open_sweep(folder)
    assert list(opened.state.tests()) == list(taken_up.state.tests())
    assert (opened.state.slots, opened.state.foreign_lines) == (3, 1)
    keeper.count_foreign_lines()
    await keeper.keep()
    taken_up.writer.close()
    state, offset = read_snapshot(folder.snapshot, folder.events)
    assert (offset, state.slots, state.foreign_lines) == (folder.events.stat().st_size, 3, 1)


def reheaded(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Return a function that changes a snapshot's content and makes the header match, as an attacker would."""

    def changed(raw: bytes) -> bytes:
        header, _, content = raw.partition(b"\n")
        content = change(content)
        told = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        return json.dumps(json.loads(header) | told).encode() + b"\n" + content

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b'"slots":3', b'"slots":9'),
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"[" * 100_000,
        lambda raw: b"",
        reheaded(lambda content: b"[" * 100_000),
        reheaded(lambda content: content.replace(b'"slots":3', b'"slots":"many"')),
        reheaded(lambda content: content.replace(b'"records":{', b'"records":{"b":[[]],')),
    ],
)
def test_invalid_snapshot_is_ignored(folder: SweepFolder, change: Callable[[bytes], bytes]) -> None:
    state = write(folder, EngineStarted(pid=1, slots=3), Launched(test=A))
    write_snapshot(folder.snapshot, folder.events, folder.events.stat().st_size, state)
    assert read_snapshot(folder.snapshot, folder.events)[1] > 0
    folder.snapshot.write_bytes(change(folder.snapshot.read_bytes()))
    assert read_snapshot(folder.snapshot, folder.events)[1] == 0
    assert open_sweep(folder).state.slots == 3


def test_journal_shorter_than_snapshot_gives_warning(folder: SweepFolder) -> None:
    state = write(folder, EngineStarted(pid=1, slots=3), Launched(test=A))
    write_snapshot(folder.snapshot, folder.events, folder.events.stat().st_size, state)
    assert integrity_warnings(open_sweep(folder).state) == ()
    lose(folder, 3)
    assert integrity_warnings(open_sweep(folder).state) == ("the end of the journal is missing",)
    folder.events.unlink()
    assert len(integrity_warnings(open_sweep(folder).state)) == 1


def lose(folder: SweepFolder, *numbers: int) -> None:
    lines = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(b"".join(line for number, line in enumerate(lines) if number not in numbers))


def test_test_without_first_event_comes_from_spec(folder: SweepFolder) -> None:
    write(folder, EngineStarted(pid=1, slots=3), Launched(test=A))
    lose(folder, 0, 1)
    first, second = open_sweep(folder).state.tests()
    assert (first.test, first.agent, first.line, first.state) == (A, f"swarm-{SWEEP}-test-a", 3, State.RUNNING)
    assert (second.agent, second.state, second.reason) == (f"swarm-{SWEEP}-test-b", State.QUEUED, FIRST_LINE_LOST)
    again = write(folder, Queued(test=B, reason="again"), Queued(test=A, reason="again"))
    assert [record.agent for record in again.tests()] == [f"swarm-{SWEEP}-test-a", f"swarm-{SWEEP}-test-b"]
    assert again.counts[State.QUEUED.value] == 2


def test_lost_result_is_reported_in_record(folder: SweepFolder) -> None:
    ends = [Pulled(test=test, result=Result.CLEAN) for test in (A, B)]
    write(folder, EngineStarted(pid=1), Launched(test=A), *ends, EngineEnded())
    lose(folder, 4)
    first, second = open_sweep(folder).state.tests()
    assert (first.state, first.reason) == (State.RUNNING, END_LOST)
    assert second.result is Result.CLEAN


def test_engine_resumes_if_first_event_is_lost(folder: SweepFolder) -> None:
    assert not take_up_journal(folder, folder.read_spec()).is_resumed
    write(folder, EngineStarted(pid=1, slots=3), Launching(test=A))
    lose(folder, 2)
    assert take_up_journal(folder, folder.read_spec()).is_resumed


def test_older_sweep_without_tests_is_read(folder: SweepFolder) -> None:
    spec = json.loads(folder.spec.read_text())
    del spec["tests"]
    folder.spec.write_text(json.dumps(spec))
    lines = [json.loads(line) for line in folder.events.read_bytes().splitlines()]
    sealed = [line | {"seal": "0123456789abcdef01234567"} for line in lines]
    folder.events.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in sealed))
    opened = open_sweep(folder)
    assert [record.agent for record in opened.state.tests()] == [f"swarm-{SWEEP}-test-a", f"swarm-{SWEEP}-test-b"]
    assert not opened.bad_lines
    state = write(folder, EngineStarted(pid=1))
    assert list(open_sweep(folder).state.tests()) == list(state.tests())


def replace_by(kind: str, path: Path) -> None:
    path.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_irregular_file_is_refused_without_blocking(folder: SweepFolder, kind: str) -> None:
    write(folder, EngineStarted(pid=1, slots=3))
    replace_by(kind, folder.snapshot)
    assert open_sweep(folder).state.slots == 3
    replace_by(kind, folder.lock)
    assert engine_process_id(folder.lock) is None
    replace_by(kind, folder.requests)
    # What is written to is opened through no link.
    with pytest.raises(SwarmError, match="it is a link" if kind == "device" else f"a {kind}|directory"):
        append_request(folder, RequestKind.SLOTS, slots=2)
    replace_by(kind, folder.events)
    with pytest.raises(SwarmError, match=f"cannot be read: it is a {kind}, not a file"):
        open_sweep(folder)
    with pytest.raises(SwarmError):
        LineAppender(folder.events)
    replace_by(kind, folder.spec)
    with pytest.raises(SwarmError, match=f"cannot be read: it is a {kind}, not a file"):
        folder.read_spec()
    with pytest.raises(NoRegularFile):
        open_regular(folder.spec)


def test_too_large_file_is_refused_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(OSError, match="it has more than 268 MB"):
        read_regular(path)
    with pytest.raises(UsageError):
        SweepFolder(tmp_path).read_spec()
