"""Events of an agent's work: what they change, and their log lines."""

from __future__ import annotations

from typing import Any

import pytest

from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import (
    TRIES_KEPT,
    AgentOutput,
    CommitsCounted,
    FileEdit,
    FilesEdited,
    ForeignImportsFound,
    Try,
    TryFinished,
    TryStarted,
)
from swarm_tui.model.event import Event
from tests.journal.folding import DETAIL, FULL, TEST, check_line, check_record, type_name

PROGRESS = {"tokens_at_progress": FULL.tokens}


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (TryStarted(at=9, test=TEST, number=2), {"tries": (*FULL.tries, Try(2, None, 0.0, 9)), **PROGRESS}),
        (
            TryFinished(at=9, test=TEST, number=1, passed=True, seconds=3.0, failure="f"),
            {"tries": (Try(1, True, 3.0, 9, "f"),), **PROGRESS},
        ),
        (
            TryFinished(at=9, test=TEST, number=2, passed=False, failure="f", detail=DETAIL),
            {"tries": (*FULL.tries, Try(2, False, 0.0, 9, "f", detail=DETAIL)), **PROGRESS},
        ),
        (FilesEdited(at=9, test=TEST, edits=(FileEdit("b.py", 1, 2),)), {"edits": (FileEdit("b.py", 1, 2),)}),
        (ForeignImportsFound(at=9, test=TEST, modules=("m", "n")), {"foreign_imports": ("m", "n")}),
        (AgentOutput(at=9, test=TEST, line="hello"), {"last_line": "hello", "last_line_at": 9}),
        (CommitsCounted(at=9, test=TEST, commits=4), {"commits": 4, "tokens_at_progress": 2}),
    ],
    ids=type_name,
)
def test_event_changes_fields_of_record(event: Event, changes: dict[str, Any]) -> None:
    check_record(event, changes)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            ForeignImportsFound(test=TEST, modules=tuple("abcd")),
            ("warning", "imported modules from your checkout instead of its copy: a, b, c", TEST),
        ),
        (AgentOutput(test=TEST, line="l"), None),
        (CommitsCounted(test=TEST, commits=1), None),
    ],
    ids=type_name,
)
def test_event_gives_log_line(event: Event, line: tuple[str, str, str] | None) -> None:
    check_line(event, line)


def test_only_newest_tries_are_kept() -> None:
    state = SweepState().apply_all(TryStarted(test=TEST, number=number) for number in range(1, 61))
    assert [made.number for made in state.records[TEST].tries] == list(range(61 - TRIES_KEPT, 61))


def test_tries_are_sorted_by_number() -> None:
    numbers = [2, 5, 3, 1, 5, 4]
    state = SweepState().apply_all(TryStarted(at=n, test=TEST, number=n) for n in numbers)
    assert [made.number for made in state.records[TEST].tries] == [1, 2, 3, 4, 5]


def test_event_of_unqueued_test_adds_test() -> None:
    state = SweepState().apply_all([AgentOutput(at=9, test=TEST, line="x")])
    assert state.records == {TEST: TestRecord(TEST, last_line="x", last_line_at=9)}
    assert +state.counts == {"queued": 1}
