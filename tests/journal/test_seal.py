"""Lines that the engine or a person's program did not write are found, and cast no doubt on others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swarm_tui.journal.append import JournalWriter, LineAppender
from swarm_tui.journal.doubts import doubts_of
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.recover import repair_journal
from swarm_tui.journal.seal import Sealer, Sealing, SealWatch, key_path, sealer_of, split_seal
from swarm_tui.model import events as happened

KEY = bytes(range(32))
SEALER = Sealer(KEY, "sweep")


def test_a_seal_holds_a_line_its_sweep_and_its_key() -> None:
    line = b'{"seq":1,"type":"noted","text":"one"}'
    sealed = SEALER.seal(line)
    assert json.loads(sealed) | {"seal": ""} == json.loads(line) | {"seal": ""}
    assert split_seal(sealed)[0] == line
    assert split_seal(line) == (line, b"")
    assert SEALER.look_at(sealed) is Sealing.OURS
    assert SEALER.look_at(sealed.replace(b"one", b"two")) is Sealing.BROKEN
    assert SEALER.look_at(line) is Sealing.NONE
    assert Sealer(KEY, "another sweep").look_at(sealed) is Sealing.BROKEN
    assert Sealer(bytes(32), "sweep").look_at(sealed) is Sealing.ANOTHER


def test_the_key_is_made_once_and_only_its_owner_may_read_it() -> None:
    first = sealer_of("sweep", is_writing=True)
    assert first is not None
    assert key_path().stat().st_mode & 0o777 == 0o600
    content = key_path().read_bytes()
    assert sealer_of("sweep", is_writing=True) is not None
    assert key_path().read_bytes() == content


@pytest.mark.parametrize("is_ours", [True, False])
def test_once_a_line_is_sealed_all_have_to_be(is_ours: bool) -> None:
    sealed = (SEALER if is_ours else Sealer(bytes(32), "sweep")).seal(b'{"seq":2}')
    watch = SealWatch(SEALER)
    assert [watch.reason_against(line) for line in (b'{"seq":1}', sealed)] == ["", ""]
    assert watch.has_unknown_key is not is_ours
    assert watch.reason_against(b'{"seq":3}') == "it has no seal"
    assert watch.reason_against(SEALER.seal(b'{"seq":3}').replace(b"3", b"4", 1)) == "its seal does not fit"
    without_key = SealWatch(None)
    assert [without_key.reason_against(line) for line in (sealed, b'{"seq":3}')] == ["", ""]


def test_forged_lines_are_passed_over_by_readers_and_cut_out_by_the_next_engine(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with JournalWriter(path, sealer=SEALER) as writer:
        first = writer.append(happened.Noted(text="one"))
        with path.open("ab") as file:
            file.write(b'{"seq":2,"type":"slots_changed","slots":900}\n{"seq":2,"type":"noted","text":"torn"')
        second = writer.append(happened.Noted(text="two"))
        assert writer.foreign_lines == 2
    news = EventFollower(path, seals=SealWatch(SEALER)).read()
    assert news.events == [first, second]
    assert [line.is_foreign for line in news.bad_lines] == [True, False]
    taken: list[happened.Event] = []
    repair = repair_journal(path, taken.append, SealWatch(SEALER))
    assert (taken, repair.cut_lines, repair.foreign_lines) == ([first, second], 2, 1)
    assert repair.summary.endswith("; the engine did not write 1 of them")
    assert EventFollower(path, seals=SealWatch(SEALER)).read().bad_lines == []


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
        state.apply(happened.SlotsChanged(seq=seq, slots=slots))
    assert (state.slots, state.foreign_lines, state.lost_events) == (4, 1, 2)
    assert list(doubts_of(state)) == [
        "the engine did not write 1 event of the journal: passed over",
        "the journal lacks 2 events: what they told is not known",
    ]
