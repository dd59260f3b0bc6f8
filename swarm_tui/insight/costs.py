"""What was spent on some of the tests, and for each fix that is kept."""

from __future__ import annotations

from collections.abc import Iterable

from swarm_tui.model.formatting import counted, money
from swarm_tui.model.spending import NOTHING_SPENT, Spending
from swarm_tui.model.state import TestRecord


def spending_of(records: Iterable[TestRecord]) -> Spending:
    """Return what the agents of these tests have used, those of earlier attempts too."""
    total = NOTHING_SPENT
    for record in records:
        total = total.plus(record.spending)
    return total


def cost_words(records: Iterable[TestRecord]) -> str:
    """Return `cost $2.10, 7 agents`; empty when none of the agents has said what it used."""
    spent = spending_of(records)
    agents = spent.priced + spent.unpriced
    return f"cost {spent.text}, {counted(agents, 'agent')}" if spent.is_known else ""


def cost_of_each(spent: Spending, kept: int, fixes: int) -> str:
    """Return what the whole sweep has cost for each kept fix, or for each fix while none is kept; else empty."""
    number, noun = (kept, "kept fix") if kept else (fixes, "fix")
    if not number or not spent.priced:
        return ""
    return f"{money(spent.dollars / number)}{'+?' if spent.unpriced else ''} a {noun}"
