"""When a sweep ends and what it costs, from the tests that have ended so far."""

from __future__ import annotations

import statistics
from typing import Final

from swarm_tui.journal.fold import SweepState
from swarm_tui.model.states import State

ENOUGH: Final = 3
"""Fewer ended tests than this tell nothing about the others."""
RECENT: Final = 200


def forecast_end(state: SweepState, now: float) -> float | None:
    """Give the seconds until the last test ends, or None when that cannot be said.

    The median test takes as long as it took so far; what is under way has the rest of that, what is queued all
    of it, and the slots share the work. Waiting for a person is not counted: nobody can know.
    """
    spans: list[float] = []
    queued = 0
    under_way: list[float] = []
    for record in state.tests():
        if record.launched_at is not None and record.ended_at is not None and record.state is State.DONE:
            spans.append(record.ended_at - record.launched_at)
        elif record.state is State.QUEUED and not record.is_held:
            queued += 1
        elif record.state in (State.LAUNCHING, State.RUNNING, State.HARVESTING):
            under_way.append(now - (record.launched_at or now))
    if len(spans) < ENOUGH or not (queued or under_way) or (queued and (state.is_held or state.slots <= 0)):
        return None
    typical = statistics.median(spans[-RECENT:])
    rest = sum(max(typical - spent, typical * 0.1) for spent in under_way)
    slots = max(1, min(state.slots, queued + len(under_way)))
    return max((queued * typical + rest) / slots, typical * 0.1)


def total_cost(state: SweepState, now: float) -> float | None:
    """Give what all agents have cost so far, or None when no agent told."""
    known = [record.dollars for record in state.tests() if record.dollars is not None]
    return sum(known) if known else None
