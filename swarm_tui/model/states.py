"""The states a test passes through and the results it can end with."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


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
    SKIPPED = "skipped"
    """pytest skips the test, so nothing is known of what it checks."""
    BETTER = "better"
    TEST_FIX = "test_fix"
    TUTORIAL_FIX = "tutorial_fix"
    IMPL_FIX = "impl_fix"
    UNRESOLVED = "unresolved"
    BLOCKED = "blocked"
    FAILED = "failed"


ACTIVE_STATES: Final = frozenset({State.LAUNCHING, State.RUNNING, State.HARVESTING})
"""States of agents at work. For the slots that waiting agents take see `slots_taken` of the engine."""

LIVING_STATES: Final = ACTIVE_STATES | {State.WAITING}
"""States of tests whose agent may be running its test."""

HINDERED: Final = "hindered"
"""The mark of a running agent whose model does not answer."""

ACTIVE_MARKS: Final = (*(state.value for state in State if state in ACTIVE_STATES), HINDERED)

FINISHED_STATES: Final = frozenset({State.DONE, State.STOPPED})

PULLED_RESULTS: Final = frozenset({Result.BETTER, Result.TEST_FIX, Result.TUTORIAL_FIX, Result.IMPL_FIX})
"""Results with commits that the integrator may use."""

UNSOLVED_RESULTS: Final = frozenset({Result.BLOCKED, Result.FAILED, Result.UNRESOLVED})
"""Results that need a person, or another attempt."""


class Mark(NamedTuple):
    """The result of a finished test or the state of another, and how the room, the commands and the page show it."""

    name: str
    glyph: str
    ascii_glyph: str
    role: str
    """The role that the room's palette, the command line and the page have a colour for."""
    pill: str
    """The marks that are counted and filtered together."""

    @property
    def word(self) -> str:
        return self.name.replace("_", " ")


MARKS: Final[dict[str, Mark]] = {
    mark.name: mark
    for mark in (
        Mark("clean", "✓", "v", role="clean", pill="clean"),
        Mark("skipped", "⊘", "s", role="skipped", pill="skipped"),
        Mark("better", "●", "#", role="fixed", pill="fixed"),
        Mark("test_fix", "●", "#", role="fixed", pill="fixed"),
        Mark("tutorial_fix", "●", "#", role="fixed", pill="fixed"),
        Mark("impl_fix", "◆", "*", role="impl_fix", pill="impl_fix"),
        Mark("unresolved", "✗", "x", role="unresolved", pill="unresolved"),
        Mark("blocked", "■", "B", role="blocked", pill="blocked"),
        Mark("failed", "!", "!", role="failed", pill="failed"),
        Mark("harvesting", "◍", ":", role="running", pill="running"),
        Mark("running", "◐", "o", role="running", pill="running"),
        Mark(HINDERED, "≈", "~", role="hindered", pill="hindered"),
        Mark("waiting", "?", "?", role="waiting", pill="waiting"),
        Mark("launching", "◌", ",", role="launching", pill="launching"),
        Mark("queued", "·", ".", role="queued", pill="queued"),
        Mark("stopped", "-", "-", role="stopped", pill="stopped"),
    )
}
"""In the order in which counts are listed."""

_STATES_ALONG_BAR: Final = ("stopped", "waiting", HINDERED, "running", "harvesting", "launching", "queued")

ALONG_BAR: Final = tuple(MARKS[name] for name in (*(mark for mark in MARKS if mark in set(Result)), *_STATES_ALONG_BAR))
"""From finished tests at the left end of a bar to queued tests at its right end."""


def mark_of(state: State, result: Result | None) -> str:
    """Return the word under which a test is shown and counted."""
    return result.value if result is not None and state is State.DONE else state.value
