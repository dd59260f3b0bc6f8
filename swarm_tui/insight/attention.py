"""Who wants a person, and who first."""

from __future__ import annotations

from typing import Final

from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import Result, State

STUCK_AFTER: Final = 900.0
"""A running agent that neither said nor tried anything for so many seconds is called stuck."""


def is_stuck(record: TestRecord, now: float) -> bool:
    """Whether an agent runs and has neither written nor tried anything for long."""
    if record.state is not State.RUNNING:
        return False
    last_sign = max(record.since, record.last_line_at, record.tries[-1].at if record.tries else 0.0)
    return now - last_sign > STUCK_AFTER


def wants_a_person(record: TestRecord, now: float) -> bool:
    """Whether a test is one of those that `w` walks."""
    return need_of(record, now)[0] < _NOBODY


def need_of(record: TestRecord, now: float) -> tuple[int, float]:
    """Return the place of a test in the order of need: the class first, then who has waited longest."""
    if record.state is State.WAITING:
        return 0, record.since
    if record.state is State.DONE and record.result in _NEEDS:
        return _NEEDS[record.result], record.since
    if is_stuck(record, now):
        return 4, record.since
    if record.state is State.DONE:
        return 8, record.since
    return (_NOBODY if record.state is State.RUNNING else 6), record.since


def urgency_of(record: TestRecord, now: float) -> int:
    """Return the part of the walk to those that want a person: who waits for an answer, who is blocked, the others."""
    return min(need_of(record, now)[0], _OTHERS)


_NEEDS: Final[dict[Result | None, int]] = {Result.BLOCKED: 1, Result.FAILED: 2, Result.UNRESOLVED: 3}
_OTHERS: Final = 2
_NOBODY: Final = 5
