"""Evaluate the conditions of `swarm-tui wait`, which `model/conditions.py` lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from swarm_tui.journal.state import SweepState
from swarm_tui.model.results import Result, State


def _asks(state: SweepState, now: float) -> bool:
    integrator = state.integrator
    return bool(state.counts[State.WAITING.value]) or (integrator is not None and integrator.state is State.WAITING)


def _is_over_budget(state: SweepState, now: float) -> bool:
    return state.budget.is_used_up or any(record.over_budget_at is not None for record in state.tests())


def _has_fixes(state: SweepState, now: float) -> bool:
    return state.integration.state == "done" and state.integration.fixes > 0


CHECKS: Final[dict[str, Callable[[SweepState, float], bool]]] = {
    "done": lambda state, now: state.ended_why == "finished",
    "ended": lambda state, now: state.is_over,
    "asks": _asks,
    "failed": lambda state, now: bool(state.counts[Result.FAILED]),
    "blocked": lambda state, now: bool(state.counts[Result.BLOCKED]),
    "unresolved": lambda state, now: bool(state.counts[Result.UNRESOLVED]),
    "stuck": lambda state, now: any(bool(record.stuck) for record in state.tests()),
    "alert": lambda state, now: bool(state.alarms),
    "over-budget": _is_over_budget,
    "login-lost": lambda state, now: bool(state.access.lost),
    "host-lost": lambda state, now: any(host.lost_since is not None for host in state.hosts.values()),
    "held": lambda state, now: state.launches_nothing,
    "fixes": _has_fixes,
}


def is_so(state: SweepState, now: float) -> Callable[[str], bool]:
    """Return a function that checks whether the condition of a name holds."""
    return lambda word: CHECKS[word](state, now)
