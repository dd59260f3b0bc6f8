"""What agents have used: dollars where the price of their model is known, and tokens."""

from __future__ import annotations

from typing import Final, NamedTuple

from swarm_tui.model.formatting import money


class Spending(NamedTuple):
    """What some agents have used so far."""

    dollars: float = 0.0
    """Of the agents whose price is known."""
    tokens: int = 0
    priced: int = 0
    """How many agents have said what they cost."""
    unpriced: int = 0
    """How many agents have used tokens of which the price is not known."""

    def plus(self, other: Spending) -> Spending:
        return Spending(
            self.dollars + other.dollars,
            self.tokens + other.tokens,
            self.priced + other.priced,
            self.unpriced + other.unpriced,
        )

    def minus(self, other: Spending) -> Spending:
        return Spending(
            self.dollars - other.dollars,
            self.tokens - other.tokens,
            self.priced - other.priced,
            self.unpriced - other.unpriced,
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


def spending_of_agent(dollars: float | None, tokens: int | None) -> Spending:
    """Return what one agent has used, by what it says itself."""
    if dollars is not None:
        return Spending(dollars, tokens or 0, priced=1)
    return Spending(0.0, tokens, unpriced=1) if tokens else NOTHING_SPENT
