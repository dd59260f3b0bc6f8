"""The budget of a sweep: limits in dollars for all agents together and for each agent."""

from __future__ import annotations

from typing import Final, NamedTuple

from swarm_tui.model.formatting import money
from swarm_tui.model.money import Spending

WARNED_AT: Final = 80
"""The user is warned when this percentage of the budget is spent."""


class Budget(NamedTuple):
    """The limits in dollars, and how far they are used."""

    total: float = 0.0
    """For the whole sweep; 0 means unlimited."""
    each: float = 0.0
    """For one agent; 0 means unlimited."""
    percent: int = 0
    """The last percentage that was reported: 0, 80 or 100."""
    is_blind: bool = False
    """Whether agents use a model with an unknown price, so that their cost is not counted."""

    @property
    def is_used_up(self) -> bool:
        """Whether launching is stopped until the user raises the budget."""
        return self.percent >= 100

    def exceeds(self, dollars: float | None) -> bool:
        """Return whether an agent has reached the limit for one agent."""
        return bool(self.each) and dollars is not None and dollars >= self.each


NO_BUDGET: Final = Budget()


def parse_dollars(text: str) -> float:
    """Return "20", "$20" or "2.50" as a number. Raise ValueError for other text."""
    try:
        return float(text.strip().removeprefix("$"))
    except ValueError:
        raise ValueError(f"invalid amount: {text!r} (use dollars, such as 20 or 2.50)") from None


def is_possible_budget(dollars: float) -> bool:
    """Return whether an amount is a valid budget: from $0.01 to $1,000,000."""
    return 0.01 <= dollars <= 1e6


def budget_text(spending: Spending, budget: Budget, *, has_results: bool) -> str:
    """Return spending and limit, such as `$3.42` or `$3.42/20`; empty if both are unknown.

    If agents have finished and none reported its cost, the spending is `?` instead of $0.00.
    """
    if not budget.total:
        return spending.text
    return f"{spending.text or ('?' if has_results else money(0.0))}/{limit_text(budget.total).removeprefix('$')}"


def limit_text(dollars: float) -> str:
    """Return a limit without needless digits: `$20`, `$2.50` or `none`."""
    if not dollars:
        return "none"
    return f"${dollars:,.0f}" if dollars == int(dollars) else money(dollars)
