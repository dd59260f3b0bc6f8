"""Fold and log lines of events about the budget."""

from __future__ import annotations

from typing import Final

from swarm_tui.model.budget import Budget, limit_text
from swarm_tui.model.events import BudgetBlind, BudgetChanged, BudgetSpent, OverBudget
from swarm_tui.model.formatting import money

BudgetEvent = BudgetChanged | BudgetSpent | BudgetBlind
BUDGET_CANNOT_HOLD: Final = "the budget cannot be enforced because the price of a model is unknown"


def after_budget_event(budget: Budget, event: BudgetEvent) -> Budget:
    """Return the budget after an event."""
    match event:
        case BudgetSpent():
            return budget._replace(percent=event.percent)
        case BudgetBlind():
            return budget._replace(is_blind=True)
        case BudgetChanged():
            each = budget.each if event.each is None else event.each
            if event.total is None:
                return budget._replace(each=each)
            return budget._replace(total=event.total, each=each, percent=0)


def budget_line(event: BudgetEvent | OverBudget) -> tuple[str, str, str]:
    """Return the level, text and test of the log line for an event."""
    match event:
        case BudgetChanged():
            limits = (("budget", event.total), ("budget for each agent", event.each))
            text = ", ".join(f"{name}: {limit_text(limit)}" for name, limit in limits if limit is not None)
            return "info", f"{text} ({event.by or 'a user'})", ""
        case BudgetSpent(percent=100):
            more = f"raise it with `swarm-tui request budget {2 * event.budget:g}` to continue launching"
            return "error", f"the budget of {limit_text(event.budget)} is spent; {more}", ""
        case BudgetSpent():
            return "warning", f"{money(event.dollars)} of the budget of {limit_text(event.budget)} is spent", ""
        case BudgetBlind():
            return "warning", BUDGET_CANNOT_HOLD, ""
        case OverBudget():
            text = f"has cost {money(event.dollars)} of its {limit_text(event.budget)} and was asked to submit its work"
            return "warning", text, event.test
