"""What follows from the budget and the spending: warnings, the end of launching, agents that must submit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from swarm_tui.journal.state import SweepState
from swarm_tui.model.results import Result
from swarm_tui.money.events import (
    STOPPED_AT,
    WARNED_AT,
    AgentOverBudget,
    BudgetReached,
    BudgetUnknownPrice,
    budget_text,
)

SUBMIT_NOW: Final = (
    "You have used up your budget of {budget}. Submit now: commit what you have as it is, write the outcome, and do "
    "the last step of your task. Begin nothing new."
)
_NOISE: Final = 1e-6
"""Tolerance for rounding errors of floating-point sums."""


def cost_text(state: SweepState, *, is_imputed: bool) -> str:
    """Return the cost and budget of a sweep: `$3.42/20 imputed`; empty if both are unknown."""
    text = budget_text(state.spending, state.budget, has_results=any(state.counts[result] for result in Result))
    return f"{text} imputed" if text and is_imputed else text


def due_events(
    state: SweepState, working: Iterable[str]
) -> Iterator[BudgetReached | BudgetUnknownPrice | AgentOverBudget]:
    """Yield the events that are due. `working` are the tests whose agents can submit."""
    budget, spent = state.budget, state.spending
    if (budget.total or budget.each) and spent.unpriced and not budget.is_blind:
        yield BudgetUnknownPrice(tokens=spent.tokens)
    if budget.total:
        percent = 100 * (spent.dollars + _NOISE) / budget.total
        if percent >= STOPPED_AT > budget.percent:
            yield BudgetReached(percent=STOPPED_AT, dollars=spent.dollars, budget=budget.total)
        elif percent >= WARNED_AT > budget.percent:
            yield BudgetReached(percent=WARNED_AT, dollars=spent.dollars, budget=budget.total)
    for test in working if budget.each else ():
        record = state.records.get(test)
        if record is not None and record.over_budget_at is None and budget.exceeds(record.dollars):
            yield AgentOverBudget(test=test, dollars=record.dollars or 0.0, budget=budget.each)
