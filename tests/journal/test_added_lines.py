"""Lines that other programs add to the journal are counted; sealed lines of earlier versions are read."""

from __future__ import annotations

from pathlib import Path

from swarm_tui.journal.append import JournalWriter, LineAppender
from swarm_tui.journal.events import SlotsChanged
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.open import integrity_warnings
from swarm_tui.journal.recover import repair_journal
from swarm_tui.journal.requests import RequestFollower
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import Event


def test_lines_of_other_programs_are_counted_and_ignored(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with JournalWriter(path) as writer:
        first = writer.append(SlotsChanged(slots=2))
        with path.open("ab") as file:
            file.write(b'{"seq":1,"type":"slots_changed","slots":900}\n{"seq":2,"type":"log_message","text":"torn"')
        second = writer.append(SlotsChanged(slots=3))
        assert writer.foreign_lines == 2
    news = EventFollower(path).read()
    state = SweepState().apply_all(news.events)
    assert (state.slots, state.foreign_lines, len(news.bad_lines)) == (3, 1, 1)
    taken: list[Event] = []
    repair = repair_journal(path, taken.append)
    assert (taken[0], taken[-1], repair.cut_lines) == (first, second, 1)
    assert SweepState().apply_all(taken).slots == 3


def test_requests_with_a_seal_of_earlier_versions_are_read(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path)
    line = b'{"id":"a1","at":1.0,"by":"ada","kind":"slots","slots":2,"seal":"0123456789abcdef01234567"}\n'
    folder.requests.write_bytes(line)
    requests, refused = RequestFollower(folder).read()
    assert ([request.slots for request in requests], refused) == ([2], [])


def test_an_appender_counts_what_others_write_between_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    lines = LineAppender(path)
    lines.append(b"one")
    assert (lines.foreign_lines, lines.size) == (0, 4)
    with path.open("ab") as file:
        file.write(b"x\ny\n")
    lines.append(b"two")
    assert (lines.foreign_lines, lines.size) == (2, path.stat().st_size)
    lines.close()


def test_a_copied_or_a_missing_event_is_known_by_its_number() -> None:
    state = SweepState()
    for seq, slots in ((1, 2), (2, 3), (1, 900), (5, 4)):
        state.apply(SlotsChanged(seq=seq, slots=slots))
    assert (state.slots, state.foreign_lines, state.lost_events) == (4, 1, 2)
    assert list(integrity_warnings(state)) == [
        "ignored 1 line in the journal from another program",
        "2 events missing in the journal",
    ]
