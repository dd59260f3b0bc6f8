"""What agents have used: dollars where the price of their model is known, and tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from swarm_tui.model.formatting import money


class ModelTokens(NamedTuple):
    """The tokens of one model, as they are paid for."""

    model: str
    input: int = 0
    """Those that were neither read from the cache nor written into it."""
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
        """The same tokens, to be taken away from others."""
        return ModelTokens(self.model, *(-count for count in self[1:]))


def summed(tokens: Iterable[ModelTokens]) -> tuple[ModelTokens, ...]:
    """Return tokens with one entry for each model, without those of which nothing is left."""
    sums: dict[str, tuple[int, ...]] = {}
    for model, *counts in tokens:
        before = sums.get(model)
        sums[model] = tuple(map(sum, zip(before, counts, strict=True))) if before else tuple(counts)
    return tuple(ModelTokens(model, *sums[model]) for model in sorted(sums) if any(sums[model]))


class Spending(NamedTuple):
    """What some agents have used so far."""

    dollars: float = 0.0
    """Of the agents whose price is known."""
    tokens: int = 0
    priced: int = 0
    """How many agents have said what they cost."""
    unpriced: int = 0
    """How many agents have used tokens of which the price is not known."""
    models: tuple[ModelTokens, ...] = ()
    """The tokens of those agents that say of which model they are, those read from the cache too; by model."""

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
        """Whether any agent has said what it used."""
        return bool(self.priced or self.unpriced)

    @property
    def known_dollars(self) -> float | None:
        """The dollars, or None when the price of no agent is known."""
        return self.dollars if self.priced else None

    @property
    def text(self) -> str:
        """`$3.42`; `$3.42+?` where the price of some agents is not known, `?` where that of none is; else empty."""
        if not self.is_known:
            return ""
        return money(self.known_dollars) + ("+?" if self.priced and self.unpriced else "")


NOTHING_SPENT: Final = Spending()


def spending_of_agent(dollars: float | None, tokens: int | None, models: tuple[ModelTokens, ...] = ()) -> Spending:
    """Return what one agent has used, by what it says itself."""
    if dollars is not None:
        return Spending(dollars, tokens or 0, priced=1, models=models)
    return Spending(0.0, tokens, unpriced=1, models=models) if tokens else NOTHING_SPENT
