"""Folding events into a state."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given

from swarm_tui.journal.append import encode_event
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import (
    AgentStateChanged,
    Launched,
    Launching,
    LogMessage,
    Pulled,
    Pulling,
    Queued,
)
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import AgentOutput, TryFinished, TryStarted
from swarm_tui.model.event import Event
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import UsageReported
from tests.journal.sweeps import events

TEST = "tests/test_a.py::test_it"


@given(events)
def test_counts_match_records(story: list[Event]) -> None:
    state = SweepState().apply_all(story)
    assert +state.counts == Counter(record.mark for record in state.tests())


@given(events)
def test_drain_changed_returns_each_change_once(story: list[Event]) -> None:
    state = SweepState()
    before: dict[str, object] = {}
    for event in story:
        state.apply(event)
        changed = state.drain_changed()
        different = {test for test, record in state.records.items() if record is not before.get(test)}
        assert changed == different
        before = dict(state.records)
    assert state.drain_changed() == set()


@given(events)
def test_fold_in_two_parts_equals_fold_at_once(story: list[Event]) -> None:
    half = len(story) // 2
    whole = SweepState().apply_all(story)
    parts = SweepState().apply_all(story[:half]).apply_all(story[half:])
    assert list(parts.tests()) == list(whole.tests())
    assert list(parts.log) == list(whole.log)


def test_fold_events_of_one_test() -> None:
    state = SweepState()
    state.apply(Queued(at=1, test=TEST, agent="agent", branch="branch"))
    state.apply(Launching(at=2, test=TEST))
    assert state.active == 1
    state.apply(Launched(at=3, test=TEST, agent_id="agent-1"))
    state.apply(TryStarted(at=4, test=TEST, number=1))
    state.apply(TryFinished(at=5, test=TEST, number=1, passed=False, seconds=1.0, failure="assert 1 == 2"))
    state.apply(AgentStateChanged(at=6, test=TEST, state=State.WAITING, question="which host?"))
    assert state.active == 0
    assert state.records[TEST].question == "which host?"
    state.apply(AgentStateChanged(at=7, test=TEST, state=State.RUNNING))
    state.apply(Pulling(at=8, test=TEST))
    state.apply(Pulled(at=9, test=TEST, result=Result.IMPL_FIX))
    record = state.records[TEST]
    assert (record.mark, record.launched_at, record.ended_at) == ("impl_fix", 3, 9)
    assert [made.passed for made in record.tries] == [False]
    assert [line.text for line in state.log] == ["launched", "waits for an answer: which host?", "impl fix"]


def test_concurrent_runs_are_two_tries() -> None:
    for ends in ((1, 2), (2, 1)):
        state = SweepState()
        for number in (1, 2):
            state.apply(TryStarted(test=TEST, number=number))
        for number in ends:
            state.apply(TryFinished(test=TEST, number=number, passed=number == 1))
        assert [(made.number, made.passed) for made in state.records[TEST].tries] == [(1, True), (2, False)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "agent_state_changed", "test": "a", "state": "done"}',
        b'{"type": "agent_state_changed", "test": "a", "state": "thinking"}',
        b'{"type": "agent_state_changed", "test": null, "state": "running"}',
        b'{"type": "agent_output", "line": "no test"}',
        b'{"type": "agent_output", "test": "a", "line": "\\ud800"}',
        b'{"type": "agent_output", "test": "a", "line": "\xff"}',
        b'{"type": "usage_reported", "test": "a", "dollars": 1e999}',
        b'{"type": "usage_reported", "test": "a", "dollars": NaN}',
        b'{"type": "usage_reported", "test": "a", "models": [["opus", 1, 2, 3, 4, 5]]}',
        b'{"type": "budget_reached", "percent": 900, "dollars": 1, "budget": 2}',
        b'{"type": "try_finished", "test": "a", "passed": false, "detail": {"errors": []}}',
        b'{"type": "queued", "test": "a", "at": "now"}',
        b'{"type": "queued", "test": "a", "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type": "agent_sang", "song": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type": 3}',
        b'{"test": "a"}',
        b'["queued"]',
        b"",
    ],
    ids=lambda line: line[:40].decode(errors="replace"),
)
def test_damaged_line_is_counted_and_ignored(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(
        line + b'\n{"type": "log_message", "text": "after", "added later": {"a": [1]}}\n'
    )
    with pytest.raises(ValueError):
        parse_event(line)
    new = EventFollower(tmp_path / "events.jsonl").read()
    assert len(new.bad_lines) == bool(line)
    assert new.events == [LogMessage(text="after")]


def test_surrogate_and_whole_number_are_written_readably() -> None:
    event = UsageReported(test="a", dollars=3, tokens=None)
    assert parse_event(encode_event(event)) == event
    said = parse_event(encode_event(AgentOutput(test="a", line="\ud800!")))
    assert said == AgentOutput(test="a", line="?!")
