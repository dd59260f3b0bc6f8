"""The budget of a sweep: what all of its agents may cost together, and what each of them may cost."""

from __future__ import annotations

from typing import Final, NamedTuple

from swarm_tui.model.formatting import money
from swarm_tui.model.spending import Spending

WARNED_AT: Final = 80
"""So many percent of the budget are spent when a person is warned."""


class Budget(NamedTuple):
    """The limits in dollars, and which of them were reached."""

    total: float = 0.0
    """For the whole sweep; 0 is no limit."""
    each: float = 0.0
    """For one agent; 0 is no limit."""
    percent: int = 0
    """The last mark that was passed: 0, 80 or 100."""
    is_blind: bool = False
    """Agents were seen of which the price is not known, so that their dollars do not count."""

    @property
    def is_used_up(self) -> bool:
        """Whether nothing further is launched until a person says so."""
        return self.percent >= 100

    def exceeds(self, dollars: float | None) -> bool:
        """Return whether an agent has used up what one may cost."""
        return bool(self.each) and dollars is not None and dollars >= self.each


NO_BUDGET: Final = Budget()


def parse_dollars(text: str) -> float:
    """Return 20, $20 or 2.50 as a number; raise ValueError for anything else."""
    try:
        return float(text.strip().removeprefix("$"))
    except ValueError:
        raise ValueError(f"{text!r} is no amount of dollars: 20 and 2.50 are") from None


def is_possible_budget(dollars: float) -> bool:
    """Return whether an amount can be a budget: a cent to a million dollars."""
    return 0.01 <= dollars <= 1e6


def budget_text(spending: Spending, budget: Budget, *, has_results: bool) -> str:
    """Return what is spent, and of how much: `$3.42`, `$3.42/20`; empty when neither is known.

    Where agents have ended and none has said what it used, that is `?` and not nothing.
    """
    if not budget.total:
        return spending.text
    return f"{spending.text or ('?' if has_results else money(0.0))}/{limit_text(budget.total).removeprefix('$')}"


def limit_text(dollars: float) -> str:
    """Return a limit in as few characters as it needs: `$20`, `$2.50`; `none`."""
    if not dollars:
        return "none"
    return f"${dollars:,.0f}" if dollars == int(dollars) else money(dollars)
