"""The states a test passes through and the results it can end with."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a test's agent is now."""

    QUEUED = "queued"
    LAUNCHING = "launching"
    RUNNING = "running"
    WAITING = "waiting"
    HARVESTING = "harvesting"
    DONE = "done"
    STOPPED = "stopped"


class Result(StrEnum):
    """What the room shows for a finished test."""

    CLEAN = "clean"
    BETTER = "better"
    TEST_FIX = "test_fix"
    TUTORIAL_FIX = "tutorial_fix"
    IMPL_FIX = "impl_fix"
    UNRESOLVED = "unresolved"
    BLOCKED = "blocked"
    FAILED = "failed"


ACTIVE_STATES: Final = frozenset({State.LAUNCHING, State.RUNNING, State.HARVESTING})
"""States that take up a slot. A waiting agent frees its slot."""

FINISHED_STATES: Final = frozenset({State.DONE, State.STOPPED})

PULLED_RESULTS: Final = frozenset({Result.BETTER, Result.TEST_FIX, Result.TUTORIAL_FIX, Result.IMPL_FIX})
"""Results whose branch carries work that the integrator may take."""

MARKS: Final[tuple[str, ...]] = (
    "clean",
    "better",
    "test_fix",
    "tutorial_fix",
    "impl_fix",
    "unresolved",
    "blocked",
    "failed",
    "harvesting",
    "running",
    "waiting",
    "launching",
    "queued",
    "stopped",
)
"""What one cell can show: the result of a done test, else its state; in the order in which counts are listed."""


def mark_of(state: State, result: Result | None) -> str:
    """Return the word under which a test is shown and counted."""
    return result.value if result is not None and state is State.DONE else state.value
