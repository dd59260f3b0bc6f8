"""Earlier states of a journal, found by time or by steps."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import Pulled
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.history import STEPS, JournalHistory, offset_behind
from swarm_tui.journal.snapshot import (
    FORMER_KEPT,
    former_snapshots,
    keep_former_snapshot,
    read_snapshot,
    take_snapshot,
    write_snapshot,
)
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import AgentOutput
from swarm_tui.model.event import Event
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec
from tests.journal.sweeps import TESTS, event_of

SPEC = SweepSpec(sweep="20261118-061200", repository="", base="0" * 40, created_at=1.0, mngr=MngrSettings(path="mngr"))


def journal_of(root: Path, events: list[Event], *, gap: float = 1.0) -> tuple[SweepFolder, list[int]]:
    """Write a journal with an event every `gap` seconds; return the offset behind each."""
    folder = SweepFolder(root)
    folder.root.mkdir(exist_ok=True)
    folder.events.unlink(missing_ok=True)
    times = iter(range(1, len(events) + 1))
    offsets = []
    with JournalWriter(folder.events, clock=lambda: next(times) * gap) as writer:
        for event in events:
            writer.append(event)
            offsets.append(writer.size)
    return folder, offsets


def folded(folder: SweepFolder, offset: int) -> SweepState:
    return SweepState().apply_all(EventFollower(folder.events).read(offset).events)


@given(st.lists(event_of(), min_size=1, max_size=40), st.lists(st.integers(0, 39), min_size=1, max_size=8))
def test_state_at_any_offset_equals_fold(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], asked: list[int]
) -> None:
    folder, offsets = journal_of(tmp_path_factory.mktemp("history"), events)
    history = JournalHistory(folder, SPEC, kept_every=300, records_kept=9)
    for number in asked:
        offset = offsets[number % len(offsets)]
        assert take_snapshot(history.state_at(offset)) == take_snapshot(folded(folder, offset))


@given(st.lists(event_of(), min_size=1, max_size=40))
def test_steps_visit_same_events_in_both_directions(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    folder, offsets = journal_of(tmp_path_factory.mktemp("history"), events)
    history = JournalHistory(folder, SPEC)
    steps = [offset for event, offset in zip(events, offsets, strict=True) if isinstance(event, STEPS)]
    back, here = [], offsets[-1]
    while (earlier := history.step_before(here)) is not None:
        back.append(earlier)
        here = earlier
    assert back == steps[-2::-1]
    forth, place = [], 0
    while (later := history.step_after(place)) is not None:
        forth.append(later)
        place = later
    assert forth == steps


@given(st.lists(st.sampled_from([0.0, 0.0, 1.0, 7.5]), min_size=1, max_size=60), st.floats(-1.0, 200.0))
def test_moment_at_returns_offset_after_last_event(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[float], at: float
) -> None:
    folder = SweepFolder(tmp_path_factory.mktemp("history"))
    now, expected = 10.0, 0
    with JournalWriter(folder.events, clock=lambda: now) as writer:
        for gap in gaps:
            now += gap
            writer.append(AgentOutput(test=TESTS[0], line="x" * int(gap * 40)))
            expected = writer.size if now <= at else expected
    history = JournalHistory(folder, SPEC)
    assert history.moment_at(at) == expected
    assert history.span == (10.0 + gaps[0], now)


@given(st.lists(event_of(), min_size=2, max_size=30), st.data())
def test_offset_behind_skips_no_later_event(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], data: st.DataObject
) -> None:
    folder, offsets = journal_of(tmp_path_factory.mktemp("history"), events)
    number = data.draw(st.integers(0, len(events) + 2))
    expected = [0, *offsets][min(number, len(events))]
    assert offset_behind(folder.events, number) == expected
    lines = folder.events.read_bytes().splitlines(keepends=True)
    place, copied = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    folder.events.write_bytes(b"".join([*lines[: place + 1], lines[copied], *lines[place + 1 :]]))
    before = EventFollower(folder.events).read(offset_behind(folder.events, number)).events if number else []
    assert all(event.seq <= number for event in before)


def test_history_ignores_invalid_lines(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path)
    queued = '{"seq":1,"at":5.0,"test":"t","type":"queued"}\n'
    pulled = '{"seq":2,"at":6.0,"test":"t","type":"pulled","result":"clean"}\n'
    noise = "no event\n" + '{"type":"pulled"}\n' + "y" * 3_000_000 + "\n\n"
    folder.events.write_text(queued + noise + pulled + noise + '{"seq":3,"at":7.0,"te')
    history = JournalHistory(folder, SPEC)
    end = len(queued + noise + pulled)
    assert history.moment_at(6.5) == end
    assert history.moment_at(5.5) == len(queued)
    assert history.span == (5.0, 6.0)
    assert history.step_after(0) == end
    assert history.step_after(end) is None
    assert history.step_before(folder.events.stat().st_size) is None
    assert history.state_at(end).counts["clean"] == 1


def test_empty_journal_has_no_moments(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path)
    folder.events.write_text("")
    history = JournalHistory(folder, SPEC)
    assert (history.span, history.moment_at(9.0), history.step_before(0), history.step_after(0)) == (
        (0.0, 0.0),
        0,
        None,
        None,
    )


def test_fold_starts_at_valid_former_snapshot(tmp_path: Path) -> None:
    said = [AgentOutput(test=TESTS[number % 5], line="z" * 20_000) for number in range(300)]
    folder, offsets = journal_of(tmp_path, [Pulled(test=TESTS[0], result=Result.CLEAN), *said])
    for number in (100, 200):
        write_snapshot(folder.snapshot, folder.events, offsets[number], folded(folder, offsets[number]))
        keep_former_snapshot(folder.snapshot, folder.former_snapshots)
    kept = former_snapshots(folder.former_snapshots)
    assert sorted(kept) == [offsets[100], offsets[200]]
    assert read_snapshot(kept[offsets[100]], folder.events)[1] == offsets[100]

    def bytes_read(history: JournalHistory) -> int:
        read: list[int] = []
        state = history.state_at(offsets[250], lambda done, size: read.append(size))
        assert take_snapshot(state) == take_snapshot(folded(folder, offsets[250]))
        return read[0]

    newest = folder.snapshot.read_bytes()
    folder.snapshot.unlink()
    assert bytes_read(JournalHistory(folder, SPEC)) == offsets[250] - offsets[200]
    damaged = kept[offsets[200]].read_bytes()
    kept[offsets[200]].write_bytes(damaged[:-9] + b"damaged!!")
    assert bytes_read(JournalHistory(folder, SPEC)) == offsets[250] - offsets[100]
    kept[offsets[100]].write_bytes(b"")
    folder.snapshot.write_bytes(newest)
    assert bytes_read(JournalHistory(folder, SPEC)) == offsets[250] - offsets[200]
    folder.snapshot.write_text("{}")
    assert bytes_read(JournalHistory(folder, SPEC)) == offsets[250]


def test_every_second_of_many_snapshots_is_removed(tmp_path: Path) -> None:
    folder, offsets = journal_of(tmp_path, [AgentOutput(test=TESTS[0], line=str(number)) for number in range(100)])
    state = folded(folder, offsets[0])
    for offset in offsets[: FORMER_KEPT + 1]:
        write_snapshot(folder.snapshot, folder.events, offset, state)
        keep_former_snapshot(folder.snapshot, folder.former_snapshots)
    assert sorted(former_snapshots(folder.former_snapshots)) == offsets[: FORMER_KEPT + 1 : 2]
