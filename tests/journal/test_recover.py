"""A journal survives if its writer is killed at any byte, and invalid lines do not affect valid events."""

import fcntl
import os
import random
import resource
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.journal.append import (
    LOCK_GRACE,
    EngineLock,
    JournalWriter,
    LineAppender,
    encode_event,
    engine_process_id,
)
from swarm_tui.journal.events import LogMessage
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.recover import recover_journal
from swarm_tui.model.event import Event
from tests.journal.sweeps import events


def write(path: Path, story: list[Event]) -> list[Event]:
    with JournalWriter(path, clock=lambda: 1.0) as writer:
        return [writer.append(event) for event in story]


@settings(max_examples=60)
@given(story=events, data=st.data())
def test_truncated_journal_keeps_complete_events(
    tmp_path_factory: pytest.TempPathFactory, story: list[Event], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal") / "events.jsonl"
    written = write(path, story)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole = content[:cut].count(b"\n")

    recovery = recover_journal(path)

    assert list(recovery.events) == written[:whole]
    assert recover_journal(path).cut_lines == 0
    is_torn = cut > 0 and not content[:cut].endswith(b"\n")
    assert recovery.cut_lines == (1 if is_torn else 0)
    if recovery.kept_aside:
        assert content[:cut].endswith(recovery.kept_aside.read_bytes().rstrip(b"\n"))


def test_invalid_lines_are_moved_to_other_file(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    first = write(path, [LogMessage(text="one")])
    with open(path, "ab") as file:
        file.write(b"\x00\xff not json\n[1, 2]\n")
    with JournalWriter(path, last_seq=1) as writer:
        second = writer.append(LogMessage(text="two"))
    recovery = recover_journal(path)
    assert [*first, second] == list(recovery.events)
    assert recovery.summary.startswith("moved 2 invalid lines from the journal to events.cut-")
    assert recovery.kept_aside is not None
    assert b"not json" in recovery.kept_aside.read_bytes()


def test_incomplete_end_is_truncated_in_place(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    (written,) = write(path, [LogMessage(text="one")])
    whole, first = path.read_bytes(), path.stat().st_ino
    path.write_bytes(whole + b"{torn")
    recovery = recover_journal(path)
    assert (path.read_bytes(), path.stat().st_ino) == (whole, first)
    assert recovery.kept_aside is not None
    assert recovery.kept_aside.read_bytes() == b"{torn\n"
    assert recovery.summary == f"moved 1 invalid line from the journal to {recovery.kept_aside.name}"
    path.write_bytes(b"garbage\n\n" + whole + b"{torn")
    recovery = recover_journal(path)
    assert (list(recovery.events), recovery.cut_lines) == ([written], 2)
    assert path.read_bytes() == whole
    assert path.stat().st_ino != first
    path.write_bytes(whole + b"garbage\n")
    assert recover_journal(path).cut_lines == 1
    assert path.read_bytes() == whole


def test_valid_journal_is_unchanged_missing_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert recover_journal(path).events == ()
    assert not path.exists()
    (written,) = write(path, [LogMessage(text="one")])
    path.write_bytes(b"\n" + path.read_bytes() + b"  \n")
    content = path.read_bytes()
    recovery = recover_journal(path)
    assert (recovery.events, recovery.summary, recovery.kept_aside) == ((written,), "", None)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["events.jsonl"]


def test_reader_restarts_after_rewritten_journal(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, [LogMessage(text="one")])
    with open(path, "ab") as file:
        file.write(b"garbage\n")
    follower = EventFollower(path)
    news = follower.read()
    assert (len(news.events), len(news.bad_lines)) == (1, 1)
    recover_journal(path)
    with JournalWriter(path, last_seq=1) as writer:
        writer.append(LogMessage(text="two"))
    news = follower.read()
    assert news.is_restarted
    assert [event.seq for event in news.events] == [1, 2]


def test_reader_waits_for_incomplete_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    follower = EventFollower(path)
    assert follower.read().events == []
    line = encode_event(LogMessage(text="one")) + b"\n"
    with open(path, "ab", buffering=0) as file:
        file.write(line[:10])
        assert follower.read().events == []
        file.write(line[10:])
    assert len(follower.read().events) == 1
    assert follower.read().events == []


@pytest.mark.slow
def test_appended_lines_survive_sigkill(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    chance = random.Random(5)
    seq = 0
    for _ in range(200):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            writer = JournalWriter(path, last_seq=seq)
            while True:
                written = writer.append(LogMessage(text="x" * chance.randrange(1, 3_000)))
                os.write(write_end, written.seq.to_bytes(4, "big"))
        os.close(write_end)
        wanted = 4 * chance.randrange(1, 12)
        acknowledged = b""
        while len(acknowledged) < wanted:
            acknowledged += os.read(read_end, wanted - len(acknowledged))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(read_end, 4096):
            acknowledged += more
        os.close(read_end)
        last = int.from_bytes(acknowledged[-4:], "big")
        recovery = recover_journal(path)
        seq = recovery.events[-1].seq
        assert seq >= last
        assert [event.seq for event in recovery.events] == list(range(1, seq + 1))
        if len(recovery.events) > 1_000:
            path.unlink()
            seq = 0


def test_full_disk_raises_error_without_damage(tmp_path: Path) -> None:
    """A file size limit makes a write fail in the middle, as a full disk does."""
    path = tmp_path / "events.jsonl"
    written = write(path, [LogMessage(text="one")])
    size = path.stat().st_size
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, size + 50))
            JournalWriter(path, last_seq=1).append(LogMessage(text="x" * 500))
        except JournalError as error:
            code = 0 if "the existing content is intact" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.stat().st_size == size
    assert list(recover_journal(path).events) == written


def test_unwritable_folder_raises_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be opened"):
        LineAppender(tmp_path / "missing" / "events.jsonl")


def test_second_engine_raises_error(tmp_path: Path) -> None:
    path = tmp_path / "engine.lock"
    assert engine_process_id(path) is None
    first = EngineLock(path)
    first.acquire()
    assert engine_process_id(path) == os.getpid()
    with pytest.raises(UsageError, match=f"process {os.getpid()}"):
        EngineLock(path).acquire()
    first.release()
    assert engine_process_id(path) is None
    EngineLock(path).acquire()


def test_check_of_lock_does_not_block_engine(tmp_path: Path) -> None:
    path = tmp_path / "engine.lock"
    path.touch()
    looker = os.open(path, os.O_RDONLY)
    fcntl.flock(looker, fcntl.LOCK_SH)
    # Simulates a delay on a busy machine.
    leaves = threading.Timer(LOCK_GRACE + 0.2, os.close, [looker])
    leaves.start()
    lock = EngineLock(path)
    lock.acquire()
    leaves.join()
    assert engine_process_id(path) == os.getpid()


def test_times_in_journal_never_decrease(tmp_path: Path) -> None:
    times = iter([100.0, 40.0, 120.0])
    with JournalWriter(tmp_path / "events.jsonl", clock=lambda: next(times)) as writer:
        assert [writer.append(LogMessage()).at for _ in range(3)] == [100.0, 100.0, 120.0]


def test_writer_continues_numbers_and_time(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "events.jsonl", last_seq=7, last_at=50.0, clock=lambda: 40.0) as writer:
        written = [writer.append(LogMessage(text=text)) for text in ("one", "two")]
    assert [(event.seq, event.at, event.text) for event in written] == [(8, 50.0, "one"), (9, 50.0, "two")]
    assert list(recover_journal(tmp_path / "events.jsonl").events) == written


def test_line_after_incomplete_line_is_separate(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"torn")
    appender = LineAppender(path)
    appender.append(b"one")
    appender.append(b"two")
    appender.close()
    assert path.read_bytes() == b"torn\none\ntwo\n"


def test_engine_with_invalid_pid_counts_as_running(tmp_path: Path) -> None:
    path = tmp_path / "engine.lock"
    lock = EngineLock(path)
    lock.acquire()
    assert path.read_text() == f"{os.getpid()}\n"
    for content in ("", "no number\n"):
        path.write_text(content)
        assert engine_process_id(path) == 0
    with pytest.raises(UsageError, match=r"already running for this sweep \(process no number\)"):
        EngineLock(path).acquire()
    lock.release()
    lock.release()
    path.write_text("123456789 and more\n")
    lock.acquire()
    assert path.read_text() == f"{os.getpid()}\n"
