"""What is known of a pattern that has set off the alarm: the tests that met it, and those that the breaker holds."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

FEWEST_ALIKE: Final = 2


class PatternAlarm(NamedTuple):
    """A cause that as many tests have met as the alarm asks for."""

    cause: str
    at: float
    tests: tuple[str, ...]
    """Those that had met it by then."""
    shared: str = ""
    """What sets them apart from the other tests, in words."""
    held: tuple[str, ...] = ()
    """The queued tests that the breaker has held, since they would most likely meet it too."""
    why_held: str = ""
    is_released: bool = False
    """Whether a person has released one of them: the breaker lets this cause pass from then on."""


def parse_alike(text: str) -> float:
    """Return 5 as it is and 10% as 0.1; raise ValueError for anything else."""
    number = float(text.removesuffix("%"))
    return number / 100 if text.endswith("%") else number


def is_possible_threshold(value: float) -> bool:
    """Return whether so many tests, or such a share of them, can be meant; 0 stands for never."""
    return value == 0 or 0 < value < 1 or (FEWEST_ALIKE <= value < math.inf and value == math.floor(value))


def alike_needed(threshold: float, total: int) -> int | None:
    """Return the number of tests that a threshold stands for in a sweep of `total` tests; None for never."""
    if not threshold:
        return None
    return max(FEWEST_ALIKE, math.ceil(threshold * total) if threshold < 1 else int(threshold))
