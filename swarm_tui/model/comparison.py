"""Two sweeps beside each other: what became of each test, of the fixes that were kept, and what both have cost."""

from __future__ import annotations

from typing import NamedTuple


class KeptFix(NamedTuple):
    """A fix that a person has kept."""

    commit: str
    title: str
    tests: tuple[str, ...]
    """Those whose agents made it."""
    is_applied: bool
    """Whether it is on a branch that a plan was applied to."""


class FoundTest(NamedTuple):
    """One test, and how it was when each of the sweeps began; "" where that is not known or there is no such test."""

    test: str
    before: str
    after: str


class SweepTotals(NamedTuple):
    """One sweep in numbers."""

    sweep: str
    began: float | None
    seconds: float | None
    tests: int
    found: dict[str, int]
    """How many tests were green, red, flaky ... when it began."""
    results: dict[str, int]
    dollars: float | None
    has_unknown_price: bool
    tokens: int | None
    fixes: int
    kept: int


class Comparison(NamedTuple):
    """What is different in the later of two sweeps."""

    before: SweepTotals
    after: SweepTotals
    became: dict[str, tuple[FoundTest, ...]]
    """The tests that are in both, by what they have become: green, red, flaky, clash, skipped."""
    new: tuple[FoundTest, ...]
    gone: tuple[FoundTest, ...]
    broken_again: tuple[tuple[KeptFix, tuple[FoundTest, ...]], ...]
    """Fixes that were kept in the earlier sweep, of which tests fail again in the later one."""
    unknown: int
    """Tests in both of which it is not known how one of the sweeps found them."""
