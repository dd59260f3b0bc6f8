"""Holds a simulated sweep to its budget, by the rules of a real one."""

from __future__ import annotations

import json
from typing import Any, Final

from swarm_tui.insight.budget import due_budget_events
from swarm_tui.journal.fold import SweepState
from swarm_tui.model.events import EngineStarted, parse_event

_FOLLOWED: Final = frozenset({"queued", "spent", "budget_changed"})


class SimulatedBudget:
    """What the simulated agents have spent, and of how much."""

    def __init__(self, total: float = 0.0) -> None:
        self._state = SweepState().apply_all([EngineStarted(pid=0, budget=total)])

    @property
    def is_used_up(self) -> bool:
        return self._state.budget.is_used_up

    def follow(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """Take note of an event; return the events about the budget that follow from it."""
        if fields["type"] not in _FOLLOWED:
            return []
        self._state.apply(parse_event(json.dumps(fields).encode()))
        due = list(due_budget_events(self._state, ()))
        self._state.apply_all(due)
        return [event.model_dump(exclude={"seq", "at"}) for event in due]
