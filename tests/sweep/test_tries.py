"""What the live plugin wrote becomes events, once each, also for an engine that began later."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import TRIES_KEPT, ForeignImportsFound, Try, TryFinished, TryStarted
from swarm_tui.sweep.agent_files import TryReader


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


START = line(kind="start", run="1-a")
FAIL = line(kind="finish", run="1-a", passed=False, seconds=0.5, failure="\x1b[31massert\x1b[0m 1")
START_2, PASS_2 = line(kind="start", run="2-b"), line(kind="finish", run="2-b", passed=True, seconds=0.1)


def test_tries_are_numbered_in_order() -> None:
    assert TryReader("t").read([START, FAIL, START_2, PASS_2]) == [
        TryStarted(test="t", number=1),
        TryFinished(test="t", number=1, passed=False, seconds=0.5, failure="assert 1"),
        TryStarted(test="t", number=2),
        TryFinished(test="t", number=2, passed=True, seconds=0.1),
    ]


def test_two_runs_at_once_keep_their_numbers() -> None:
    events = TryReader("t").read([START, START_2, PASS_2, FAIL])
    assert [(event.number, event.passed) for event in events if isinstance(event, TryFinished)] == [
        (2, True),
        (1, False),
    ]


def test_what_the_journal_knows_is_not_told_again() -> None:
    known = [Try(1, False, 0.5, 0.0), Try(2, None, 0.0, 0.0)]
    assert TryReader("t", known).read([START, FAIL, START_2, PASS_2]) == [
        TryFinished(test="t", number=2, passed=True, seconds=0.1)
    ]


def test_an_engine_that_begins_after_many_tries_tells_none_of_them_again() -> None:
    lines = [
        line(kind=kind, run=str(number), passed=True)
        for number in range(1, 3 * TRIES_KEPT)
        for kind in ("start", "finish")
    ]
    state = SweepState().apply_all(TryReader("t").read(lines))
    known = state.records["t"].tries
    assert len(known) == TRIES_KEPT
    assert TryReader("t", known).read(lines) == []


def test_foreign_modules_are_told_when_there_are_new_ones() -> None:
    reader = TryReader("t")
    told = [reader.read([line(kind="foreign", modules=names)]) for names in (["b"], ["b"], ["a", "b"], [], "x", [1])]
    assert [event.modules for events in told for event in events if isinstance(event, ForeignImportsFound)] == [
        ("b",),
        ("a", "b"),
        ("1", "a", "b"),
    ]


@given(st.lists(st.one_of(st.binary(max_size=50), st.sampled_from([START, FAIL, START_2, PASS_2]))))
def test_any_line_is_read_or_passed_over(lines: list[bytes]) -> None:
    reader = TryReader("t")
    started: set[int] = set()
    for event in reader.read(lines):
        if isinstance(event, TryStarted):
            started.add(event.number)
        elif isinstance(event, TryFinished):
            assert event.number in started
