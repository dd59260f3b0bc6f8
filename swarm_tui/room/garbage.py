"""Collects garbage when nobody presses a key: to look through all that the room knows takes longer than a frame."""

from __future__ import annotations

import gc
from typing import Final

DUE: Final = 10
"""After so many collections of what is young Python would look through everything; the room waits for a rest."""
OVERDUE: Final = 300
"""After so many it waits no longer: at a thousand events a second that is two minutes."""
REST_SECONDS: Final = 1.0
_NEVER: Final = 1 << 30


def is_due(collections: int, since_key: float) -> bool:
    """Return whether to look through everything, so many young collections after the last time."""
    return collections >= OVERDUE or (collections >= DUE and since_key >= REST_SECONDS)


class Garbage:
    """Python's collector of garbage, while a room runs."""

    def __init__(self) -> None:
        self._usual = gc.get_threshold()

    def begin(self) -> None:
        """Take all that is there for what stays: nothing that is read at the start is garbage."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(*self._usual[:2], _NEVER)
        gc.enable()

    def collect(self, since_key: float) -> None:
        """Collect what is old, if that is due so many seconds after the last key."""
        if is_due(gc.get_count()[2], since_key):
            gc.collect()

    def end(self) -> None:
        gc.set_threshold(*self._usual)
