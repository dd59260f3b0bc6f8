"""What every attack is made of: the rounds that it plays, and the table of what was promised and what failed."""

from __future__ import annotations

import os
import platform
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

KEPT_FAILURES: Final = 20


@dataclass(frozen=True)
class Bounds:
    """How long an attack goes on: a number of rounds, from a seed on, and a time after which no other round begins."""

    rounds: int
    seed: int = 0
    seconds: float = float("inf")
    keep: Path | None = None
    """Where the folders of failed rounds are kept, for whoever looks for the cause."""

    def each(self) -> Iterator[tuple[int, random.Random]]:
        """Return the number of each round, and its dice, which fall the same way whenever that number is played."""
        end = time.monotonic() + self.seconds
        for number in range(self.seed, self.seed + self.rounds):
            if time.monotonic() > end:
                return
            yield number, random.Random(number)


@dataclass
class Kept:
    """How often a promise was tried, and what broke it."""

    tries: int = 0
    failures: int = 0
    told: list[str] = field(default_factory=list)


class Table:
    """Counts tries and failures of each promise, and tells of failures at once."""

    def __init__(self, say: Callable[[str], None] = print) -> None:
        self.rows: dict[str, Kept] = {}
        self._say = say

    def tried(self, promise: str, problems: Iterable[str], what: str, times: int = 1) -> bool:
        """Count one try of a promise, or more, with the problems that it showed; return whether it held."""
        row = self.rows.setdefault(promise, Kept())
        found = list(problems)
        row.tries += times
        if found:
            row.failures += 1
            told = f"{what}: {promise}: {'; '.join(found)}"
            if len(row.told) < KEPT_FAILURES:
                row.told.append(told)
            self._say(f"FAILED {told}")
        return not found

    @property
    def failures(self) -> int:
        return sum(row.failures for row in self.rows.values())

    def text(self) -> str:
        """Return the table: a row for each promise."""
        width = max((len(promise) for promise in self.rows), default=0)
        lines = [f"| {'promise':{width}} |   tries | failures |", f"| {'-' * width} | ------: | -------: |"]
        lines += [f"| {name:{width}} | {row.tries:7,} | {row.failures:8,} |" for name, row in self.rows.items()]
        return "\n".join(lines)


def machine() -> str:
    """Return where and when this runs, for the line under a table."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    day = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return f"{day}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load}"
