"""Decides which tests need a person, and in which order."""

from __future__ import annotations

from typing import Final

from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import Result, State


def needs_person(record: TestRecord) -> bool:
    """Return whether a test is one of those that the key `w` visits."""
    return attention_order(record)[0] < _RUNNING


def attention_order(record: TestRecord) -> tuple[int, float]:
    """Return the key that sorts tests by how much they need a person: by class, then the longest in its state first."""
    if record.state is State.WAITING:
        return _WAITING, record.since
    if record.state is State.DONE and record.result in _CLASS_OF_RESULT:
        return _CLASS_OF_RESULT[record.result], record.since
    if record.stuck:
        return _STUCK, record.since
    if record.state is State.DONE:
        return _DONE, record.since
    return (_RUNNING if record.state is State.RUNNING else _NOT_RUNNING), record.since


def attention_class(record: TestRecord) -> int:
    """Return 0 for a test that waits for an answer, 1 for a blocked one, 2 for others."""
    return min(attention_order(record)[0], 2)


_CLASS_OF_RESULT: Final[dict[Result | None, int]] = {Result.BLOCKED: 1, Result.FAILED: 2, Result.UNRESOLVED: 3}
_WAITING, _STUCK, _RUNNING, _NOT_RUNNING, _DONE = 0, 4, 5, 6, 8
