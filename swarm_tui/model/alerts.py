"""Alerts: many tests have failed for the same cause."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

FEWEST_ALIKE: Final = 2


class Alert(NamedTuple):
    """An alert: the number of tests with the same cause has reached the threshold."""

    cause: str
    at: float
    tests: tuple[str, ...]
    """The tests that had failed for this cause when the alert was raised."""
    shared: str = ""
    """What these tests have in common, and the other tests do not."""
    held: tuple[str, ...] = ()
    """Queued tests that are held because they would probably fail for the same cause."""
    why_held: str = ""
    is_released: bool = False
    """Whether the user has released a held test. After that, no test is held for this cause."""


def parse_alike(text: str) -> float:
    """Return "5" as 5.0 and "10%" as 0.1. Raise ValueError for other text."""
    number = float(text.removesuffix("%"))
    return number / 100 if text.endswith("%") else number


def is_possible_threshold(value: float) -> bool:
    """Return whether a value is a valid threshold: a number of tests, a share below 1, or 0 for never."""
    return value == 0 or 0 < value < 1 or (FEWEST_ALIKE <= value < math.inf and value == math.floor(value))


def alike_needed(threshold: float, total: int) -> int | None:
    """Return the threshold as a number of tests in a sweep of `total` tests, or None for never."""
    if not threshold:
        return None
    return max(FEWEST_ALIKE, math.ceil(threshold * total) if threshold < 1 else int(threshold))
