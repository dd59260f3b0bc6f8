"""When a sweep ends, from how long the tests took that have ended so far."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from swarm_tui.journal.fold import SweepState
from swarm_tui.model.states import ACTIVE_STATES, State

ENOUGH: Final = 3
"""Fewer ended tests than this tell nothing about the others."""
RECENT: Final = 200


def forecast(spans: Sequence[float], spent: Sequence[float], queued: int, slots: int) -> float | None:
    """Return the seconds until the last test ends, or None when that cannot be said.

    The median test takes as long as it took so far; what is under way has the rest of that (`spent` is what it
    took already), what is queued all of it, and the slots share the work. Waiting for a person is not counted:
    nobody can know.
    """
    if len(spans) < ENOUGH or not (queued or spent) or (queued and slots <= 0):
        return None
    typical = statistics.median(spans[-RECENT:])
    rest = sum(max(typical - seconds, typical * 0.1) for seconds in spent)
    shared_by = max(1, min(slots, queued + len(spent)))
    return max((queued * typical + rest) / shared_by, typical * 0.1)


def forecast_end(state: SweepState, now: float) -> float | None:
    """Return the seconds until the last test of a sweep ends, or None when that cannot be said."""
    if state.is_held and state.counts[State.QUEUED.value]:
        return None
    ended = [record for record in state.tests() if record.state is State.DONE]
    spans = [record.ended_at - record.launched_at for record in ended if record.ended_at and record.launched_at]
    spent = [now - (record.launched_at or now) for record in state.tests() if record.state in ACTIVE_STATES]
    queued = sum(record.state is State.QUEUED and not record.is_held for record in state.tests())
    return forecast(spans, spent, queued, state.slots)
