"""Usage of agents: tokens, and dollars if the price of the model is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from swarm_tui.model.formatting import money


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
