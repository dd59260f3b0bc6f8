"""Usage of agents and the budget: types, events, how events change the state, and their log lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec

from swarm_tui.model.event import Event, LogLine, TestEvent
from swarm_tui.model.formatting import money

if TYPE_CHECKING:
    from swarm_tui.journal.state import SweepState


class ModelTokens(NamedTuple):
    """The tokens of one model, by price category."""

    model: str
    input: int = 0
    """Input tokens, except those read from or written to the cache."""
    output: int = 0
    cache_read: int = 0
    cache_written: int = 0

    @property
    def text(self) -> str:
        """`claude-opus-5-5 1,200 in, 340 out, 250,000 cached, 30,000 to cache`."""
        counts = ((self.input, "in"), (self.output, "out"), (self.cache_read, "cached"))
        words = [f"{count:,} {word}" for count, word in (*counts, (self.cache_written, "to cache")) if count]
        return f"{self.model} {', '.join(words)}"

    @property
    def negative(self) -> ModelTokens:
        """The same tokens with negative counts, for subtraction."""
        return ModelTokens(self.model, *(-count for count in self[1:]))


def summed(tokens: Iterable[ModelTokens]) -> tuple[ModelTokens, ...]:
    """Return the sum of tokens for each model, without models whose sum is zero."""
    sums: dict[str, tuple[int, ...]] = {}
    for model, *counts in tokens:
        before = sums.get(model)
        sums[model] = tuple(map(sum, zip(before, counts, strict=True))) if before else tuple(counts)
    return tuple(ModelTokens(model, *sums[model]) for model in sorted(sums) if any(sums[model]))


MOST_TOKENS: Final = 10_000_000
"""The tokens that no single request can use."""
MOST_DOLLARS: Final = 100.0
"""The dollars that no single request can cost."""
# Dollars for a million tokens, in the order of `ModelTokens`: several times those of the most expensive models.
_MOST_FOR_A_MILLION: Final = (60.0, 300.0, 6.0, 120.0)


def most_dollars(models: Iterable[ModelTokens]) -> float:
    """Return more dollars than these tokens can cost, even with some small requests that are not counted."""
    prices = _MOST_FOR_A_MILLION
    return 1.0 + sum(count * price for each in models for count, price in zip(each[1:], prices, strict=True)) / 1e6


class Spending(NamedTuple):
    """The usage of some agents so far."""

    dollars: float = 0.0
    """The cost of the agents with a known price."""
    tokens: int = 0
    priced: int = 0
    """The number of agents with a known cost."""
    unpriced: int = 0
    """The number of agents that used tokens with an unknown price."""
    models: tuple[ModelTokens, ...] = ()
    """The tokens by model, including cached ones, of the agents that report their model."""

    def plus(self, other: Spending) -> Spending:
        return Spending(
            self.dollars + other.dollars,
            self.tokens + other.tokens,
            self.priced + other.priced,
            self.unpriced + other.unpriced,
            summed((*self.models, *other.models)),
        )

    def minus(self, other: Spending) -> Spending:
        return Spending(
            self.dollars - other.dollars,
            self.tokens - other.tokens,
            self.priced - other.priced,
            self.unpriced - other.unpriced,
            summed((*self.models, *(each.negative for each in other.models))),
        )

    @property
    def is_known(self) -> bool:
        """Whether any agent has reported its usage."""
        return bool(self.priced or self.unpriced)

    @property
    def known_dollars(self) -> float | None:
        """The dollars, or None if the cost of all agents is unknown."""
        return self.dollars if self.priced else None

    @property
    def text(self) -> str:
        """The cost: `$3.42`, `$3.42+?` if some agents have no known price, `?` if none has one; empty before usage."""
        if not self.is_known:
            return ""
        return money(self.known_dollars) + ("+?" if self.priced and self.unpriced else "")


NOTHING_SPENT: Final = Spending()


def spending_of_agent(dollars: float | None, tokens: int | None, models: tuple[ModelTokens, ...] = ()) -> Spending:
    """Return the usage of one agent as it reported it."""
    if dollars is not None:
        return Spending(dollars, tokens or 0, priced=1, models=models)
    return Spending(0.0, tokens, unpriced=1, models=models) if tokens else NOTHING_SPENT


WARNED_AT: Final = 80
"""The user is warned when this percentage of the budget is spent."""
STOPPED_AT: Final = 100
"""No more agents are launched when this percentage is spent."""


class Budget(NamedTuple):
    """The limits in dollars, and how far they are used."""

    total: float = 0.0
    """For the whole sweep; 0 means unlimited."""
    each: float = 0.0
    """For one agent; 0 means unlimited."""
    percent: int = 0
    """The last percentage that was reported: 0, WARNED_AT or STOPPED_AT."""
    is_blind: bool = False
    """Whether agents use a model with an unknown price, so that their cost is not counted."""

    @property
    def is_used_up(self) -> bool:
        """Whether launching is stopped until the user raises the budget."""
        return self.percent >= STOPPED_AT

    def exceeds(self, dollars: float | None) -> bool:
        """Return whether an agent has reached the limit for one agent."""
        return bool(self.each) and dollars is not None and dollars >= self.each


NO_BUDGET: Final = Budget()


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


class UsageReported(TestEvent, frozen=True):
    """The usage of the agent so far."""

    dollars: float | None = None
    tokens: int | None = None
    models: tuple[ModelTokens, ...] = ()

    def apply(self, state: SweepState) -> None:
        before = state.find(self.test)
        state.change(self.test, dollars=self.dollars, tokens=self.tokens, models=self.models)
        spent = state.spending.minus(before.spending) if before is not None else state.spending
        state.spending = spent.plus(state.record_of(self.test).spending)


class BudgetChanged(Event, frozen=True):
    """The user changed the budget of the sweep or of each agent. None keeps a limit, 0 removes it."""

    total: float | None = None
    each: float | None = None
    by: str = ""

    def apply(self, state: SweepState) -> None:
        each = state.budget.each if self.each is None else self.each
        state.budget = state.budget._replace(each=each)
        if self.total is not None:
            state.budget = state.budget._replace(total=self.total, percent=0)
        for record in list(state.records.values()):
            if record.over_budget_at is not None and not state.budget.exceeds(record.dollars):
                state.change(record.test, over_budget_at=None)

    def log_line(self) -> LogLine | None:
        limits = (("budget", self.total), ("budget for each agent", self.each))
        text = ", ".join(f"{name}: {limit_text(limit)}" for name, limit in limits if limit is not None)
        return self.logged(f"{text} ({self.by or 'a user'})")


class BudgetReached(Event, frozen=True):
    """A percentage of the budget was reached. At STOPPED_AT nothing is launched until the budget is changed."""

    percent: Annotated[int, msgspec.Meta(ge=1, le=100)]
    dollars: float
    budget: float

    def apply(self, state: SweepState) -> None:
        state.budget = state.budget._replace(percent=self.percent)

    def log_line(self) -> LogLine | None:
        limit = limit_text(self.budget)
        if self.percent < STOPPED_AT:
            return self.logged(f"{money(self.dollars)} of the budget of {limit} is spent", "warning")
        more = f"raise it with `swarm-tui request budget {2 * self.budget:g}` to continue launching"
        return self.logged(f"the budget of {limit} is spent; {more}", "error")


BUDGET_CANNOT_HOLD: Final = "the budget cannot be enforced because the price of a model is unknown"


class BudgetUnknownPrice(Event, frozen=True):
    """The budget cannot be enforced because agents use a model with an unknown price."""

    tokens: int = 0

    def apply(self, state: SweepState) -> None:
        state.budget = state.budget._replace(is_blind=True)

    def log_line(self) -> LogLine | None:
        return self.logged(BUDGET_CANNOT_HOLD, "warning")


class AgentOverBudget(TestEvent, frozen=True):
    """An agent reached the limit for one agent, and is asked to submit its work."""

    dollars: float
    budget: float

    def apply(self, state: SweepState) -> None:
        state.change(self.test, over_budget_at=self.at)

    def log_line(self) -> LogLine | None:
        limit = limit_text(self.budget)
        text = f"has cost {money(self.dollars)} of its {limit} and was asked to submit its work"
        return self.logged(text, "warning", self.test)
