"""Forecasts the end of a sweep from the durations of the tests that are done."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from swarm_tui.journal.fold import SweepState
from swarm_tui.model.states import ACTIVE_STATES, State

ENOUGH: Final = 3
"""With fewer finished tests than this there is no forecast."""
RECENT: Final = 200


def seconds_to_end(spans: Sequence[float], spent: Sequence[float], queued: int, slots: int) -> float | None:
    """Return the seconds until the last test ends, or None without a forecast.

    `spans` are the durations of finished tests, `spent` those of active ones so far. Each test is expected to take
    the median of the finished ones, and the slots share the work. Waiting for a person is not included.
    """
    if len(spans) < ENOUGH or not (queued or spent) or (queued and slots <= 0):
        return None
    typical = statistics.median(spans[-RECENT:])
    rest = sum(max(typical - seconds, typical * 0.1) for seconds in spent)
    shared_by = max(1, min(slots, queued + len(spent)))
    return max((queued * typical + rest) / shared_by, typical * 0.1)


def seconds_to_end_of_sweep(state: SweepState, now: float) -> float | None:
    """Return the seconds until the last test of a sweep ends, or None without a forecast."""
    if state.is_waiting(now) and state.counts[State.QUEUED.value]:
        return None
    ended = [record for record in state.tests() if record.state is State.DONE]
    spans = [record.ended_at - record.launched_at for record in ended if record.ended_at and record.launched_at]
    spent = [now - (record.launched_at or now) for record in state.tests() if record.state in ACTIVE_STATES]
    queued = sum(record.state is State.QUEUED and not record.is_held for record in state.tests())
    return seconds_to_end(spans, spent, queued, state.open_slots)
