"""Events of money: what they change, and their log lines."""

from __future__ import annotations

from typing import Any

import pytest

from swarm_tui.model.event import Event
from swarm_tui.money.events import (
    BUDGET_CANNOT_HOLD,
    AgentOverBudget,
    Budget,
    BudgetChanged,
    BudgetReached,
    BudgetUnknownPrice,
    ModelTokens,
    Spending,
    UsageReported,
)
from tests.journal.folding import FULL, TEST, check_line, check_record, check_sweep, folded, type_name

OPUS = ModelTokens("opus", 1, 2)


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (UsageReported(at=9, test=TEST, dollars=3.0, tokens=4), {"dollars": 3.0, "tokens": 4, "models": ()}),
        (UsageReported(at=9, test=TEST, models=(OPUS,)), {"dollars": None, "tokens": None, "models": (OPUS,)}),
        (AgentOverBudget(at=9, test=TEST, dollars=2.0, budget=1.0), {"over_budget_at": 9}),
        (BudgetChanged(at=9, each=5.0), {"over_budget_at": None}),
        (BudgetChanged(at=9, each=0.5), {}),
    ],
    ids=type_name,
)
def test_event_changes_fields_of_record(event: Event, changes: dict[str, Any]) -> None:
    check_record(event, changes)


@pytest.mark.parametrize(
    ("events", "changes"),
    [
        ([BudgetChanged(seq=1, at=1, total=20.0)], {"budget": Budget(20.0)}),
        ([BudgetChanged(seq=1, at=1, total=20.0), BudgetChanged(seq=2, at=2, each=1.0)], {"budget": Budget(20.0, 1.0)}),
        ([BudgetReached(seq=1, at=1, percent=80, dollars=8.0, budget=10.0)], {"budget": Budget(percent=80)}),
        ([BudgetUnknownPrice(seq=1, at=1)], {"budget": Budget(is_blind=True)}),
    ],
)
def test_event_changes_fields_of_sweep(events: list[Event], changes: dict[str, Any]) -> None:
    check_sweep(events, changes)


def test_spending_of_sweep_has_only_latest_usage_of_agent() -> None:
    state = folded(FULL, UsageReported(at=8, test=TEST, dollars=1.0, tokens=2, models=FULL.models))
    before = state.spending
    state.apply_all([UsageReported(at=9, test=TEST, dollars=3.0, tokens=4)])
    assert state.spending.minus(before) == Spending(2.0, 2, models=tuple(each.negative for each in FULL.models))


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (UsageReported(test=TEST, dollars=1.0), None),
        (BudgetChanged(total=20.0, each=0.0, by="ann"), ("info", "budget: $20, budget for each agent: none (ann)", "")),
        (BudgetReached(percent=80, dollars=8.0, budget=10.0), ("warning", "$8.00 of the budget of $10 is spent", "")),
        (
            BudgetReached(percent=100, dollars=10.0, budget=10.0),
            (
                "error",
                "the budget of $10 is spent; raise it with `swarm-tui request budget 20` to continue launching",
                "",
            ),
        ),
        (BudgetUnknownPrice(), ("warning", BUDGET_CANNOT_HOLD, "")),
        (
            AgentOverBudget(test=TEST, dollars=2.0, budget=1.0),
            ("warning", "has cost $2.00 of its $1 and was asked to submit its work", TEST),
        ),
    ],
    ids=type_name,
)
def test_event_gives_log_line(event: Event, line: tuple[str, str, str] | None) -> None:
    check_line(event, line)
