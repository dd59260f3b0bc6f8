"""A budget is chosen from suggested limits or typed."""

from __future__ import annotations

import pytest

from swarm_tui.journal.requests import RequestKind
from swarm_tui.room.engine_requests import budget_command, suggested_limits


@pytest.mark.parametrize(
    ("total", "spent", "limits"),
    [
        (0.0, 0.0, [0.7, 1.0, 1.5]),
        (1.5, 1.7, [2.0, 3.0, 4.0]),
        (20.0, 20.3, [30.0, 40.0, 50.0]),
        (20.0, 75.0, [100.0, 150.0, 200.0]),
        (0.0, 999.0, [1000.0, 1500.0, 2000.0]),
    ],
)
def test_suggested_limits_are_above_spending(total: float, spent: float, limits: list[float]) -> None:
    assert suggested_limits(total, spent) == pytest.approx(limits)


def test_budget_command_requires_amount() -> None:
    for words, dollars in (("40", 40.0), ("$2.50", 2.5), ("none", 0.0)):
        for command, kind in (("budget", RequestKind.BUDGET), ("budget-each", RequestKind.BUDGET_EACH)):
            found = budget_command(command, words)
            assert found is not None
            assert found[:2] == (kind, dollars)
    for words in ("", "-3", "nan", "inf", "1e9", "much", "0"):
        assert budget_command("budget", words) is None, words
    assert budget_command("slots", "3") is None
