"""How far something is that a person waits for, in words and as a bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from swarm_tui.model.formatting import duration

BAR_WIDTH: Final = 30


@dataclass(frozen=True, slots=True)
class Progress:
    """What is being done, and how much of it is."""

    doing: str
    """`without #3`, `teeth`, `measuring`."""
    done: int = 0
    total: int = 0
    """0 while it is not known; then `doing` says all that there is to say."""
    noun: str = ""
    """What is counted: `tests`, `runs`."""
    seconds_left: float | None = None
    whole: float | None = None
    """The part of the whole that is done, where this is one of several steps."""

    @property
    def part(self) -> float | None:
        """How much of all is done, from 0 to 1; None when it is not known."""
        if self.whole is not None:
            return min(1.0, max(0.0, self.whole))
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def numbers(self) -> str:
        """`4 of 12 tests, ~30s left`; "" while nothing is known."""
        counts = f"{self.done:,} of {self.total:,} {self.noun}".rstrip() if self.total else ""
        left = f"~{duration(self.seconds_left)} left" if self.seconds_left is not None else ""
        return ", ".join(filter(None, (counts, left)))

    @property
    def words(self) -> str:
        return ": ".join(filter(None, (self.doing, self.numbers)))


def seconds_left(done: float, total: float, seconds: float) -> float | None:
    """Return how long the rest takes if it goes on as it did; None while nothing is done."""
    return seconds / done * max(0.0, total - done) if done > 0 else None


def bar(part: float, width: int = BAR_WIDTH) -> tuple[str, str]:
    """Return the two pieces of a bar of this width: what is done, and the rest."""
    done = int(width * min(1.0, max(0.0, part)))
    return "━" * done, "─" * (width - done)
