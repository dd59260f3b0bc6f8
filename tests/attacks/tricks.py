"""What a trick of a hostile agent is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Trick:
    """One thing that a hostile agent does, and the promise that it must not break.

    `play` gets an empty folder and dice, and returns what went wrong; nothing when the promise held.
    """

    name: str
    promise: str
    play: Callable[[Path, random.Random], Iterable[str]]
