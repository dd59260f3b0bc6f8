"""Spending on some tests, and for each kept fix."""

from __future__ import annotations

import pytest

from swarm_tui.journal.record import TestRecord
from swarm_tui.money.events import NOTHING_SPENT, Spending
from swarm_tui.money.forecast import cost_of_each, cost_words, spending_of

CHEAP = TestRecord("a", dollars=0.5, tokens=10)
AGAIN = TestRecord("b", dollars=1.0, tokens=10, spent_before=Spending(0.6, 5, priced=1))
UNKNOWN = TestRecord("c", tokens=7)


def test_earlier_launches_count() -> None:
    assert spending_of([CHEAP, AGAIN, UNKNOWN, TestRecord("d")]) == Spending(2.1, 32, priced=3, unpriced=1)
    assert spending_of([]) == NOTHING_SPENT
    assert cost_words([CHEAP]) == "cost $0.50, 1 agent"
    assert cost_words([CHEAP, AGAIN, UNKNOWN]) == "cost $2.10+?, 4 agents"
    assert cost_words([UNKNOWN]) == "cost ?, 1 agent"
    assert cost_words([TestRecord("d")]) == ""


@pytest.mark.parametrize(
    ("spent", "kept", "fixes", "words"),
    [
        (Spending(12.4, 9, priced=3), 3, 6, "$4.13 a kept fix"),
        (Spending(12.4, 9, priced=3), 0, 6, "$2.07 a fix"),
        (Spending(12.4, 9, priced=3, unpriced=1), 1, 6, "$12.40+? a kept fix"),
        (Spending(12.4, 9, priced=3), 0, 0, ""),
        (Spending(0.0, 9, unpriced=1), 2, 3, ""),
    ],
)
def test_cost_of_each_fix_uses_whole_sweep(spent: Spending, kept: int, fixes: int, words: str) -> None:
    assert cost_of_each(spent, kept, fixes) == words
