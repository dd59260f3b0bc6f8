"""State, result, baseline, with glyph, word and colour role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple


class Baseline(StrEnum):
    """The combined result of all baseline runs of a test."""

    UNKNOWN = ""
    GREEN = "green"
    RED = "red"
    FLAKY = "flaky"
    CLASH = "clash"
    """The test failed in runs with other tests, and passed whenever it ran alone."""
    ORDER = "order"
    """The test failed alone, and passed in a run after all the tests before it."""
    SKIPPED = "skipped"


BASELINE_SENTENCES: Final[Mapping[Baseline, str]] = {
    Baseline.GREEN: "passes at the base",
    Baseline.RED: "fails at the base",
    Baseline.FLAKY: "is flaky at the base: it passed in some runs and failed in others, with the same code",
    Baseline.CLASH: "passes alone, fails with other tests: they share a port, a file, a service or global state",
    Baseline.ORDER: "fails alone and passes after other tests: it depends on state that they leave behind",
    Baseline.SKIPPED: "is skipped at the base",
}

BASELINE_WORDS: Final[Mapping[Baseline, str]] = {
    Baseline.FLAKY: "flaky",
    Baseline.CLASH: "conflicts with other tests",
    Baseline.ORDER: "depends on other tests",
}
"""Labels shown next to the name of such a test."""


def classify(together: Sequence[str], alone: Sequence[str], in_order: str = "") -> Baseline:
    """Return the baseline of a test from its pytest outcomes; "" is an unknown outcome.

    `together` are the outcomes of runs with other tests, `alone` those of runs without, and `in_order` is the outcome
    of one run after all the tests before it.
    """
    outcomes, outcomes_alone = [word for word in together if word], [word for word in alone if word]
    if not outcomes:
        return Baseline.UNKNOWN
    if "failed" not in outcomes:
        return Baseline.GREEN if "passed" in outcomes else Baseline.SKIPPED
    if outcomes_alone and "failed" not in outcomes_alone:
        return Baseline.CLASH
    if any(word != "failed" for word in outcomes + outcomes_alone):
        return Baseline.FLAKY
    return Baseline.ORDER if in_order == "passed" else Baseline.RED


def summarize(baselines: Sequence[Baseline]) -> str:
    """Return the number of tests of each baseline: `12 green, 3 red, 1 flaky`."""
    words = {kind: kind.value or "unknown" for kind in Baseline}
    words[Baseline.CLASH] = "in conflict with other tests"
    words[Baseline.ORDER] = "dependent on other tests"
    counted = [(baselines.count(kind), words[kind]) for kind in (*BASELINE_SENTENCES, Baseline.UNKNOWN)]
    return ", ".join(f"{count} {word}" for count, word in counted if count)


class State(StrEnum):
    """The state of a test and its agent."""

    QUEUED = "queued"
    LAUNCHING = "launching"
    RUNNING = "running"
    WAITING = "waiting"
    PULLING = "pulling"
    DONE = "done"
    STOPPED = "stopped"


class Result(StrEnum):
    """The result of a finished test."""

    CLEAN = "clean"
    SKIPPED = "skipped"
    """pytest skips the test, so it is unknown whether it would pass."""
    BETTER = "better"
    TEST_FIX = "test_fix"
    TUTORIAL_FIX = "tutorial_fix"
    IMPL_FIX = "impl_fix"
    CLAIMED = "claimed"
    """The agent reports a result that swarm-tui has not confirmed with its own run, or cannot confirm."""
    UNRESOLVED = "unresolved"
    BLOCKED = "blocked"
    ERROR = "error"
    """The agent crashed, timed out or submitted nothing."""


ACTIVE_STATES: Final = frozenset({State.LAUNCHING, State.RUNNING, State.PULLING})
"""States of agents that use a slot. Waiting agents may use one too: see `slots_taken` of the engine."""

LIVING_STATES: Final = ACTIVE_STATES | {State.WAITING}
"""States of tests with a live agent."""

API_ERROR: Final = "api_error"
"""The mark of a running agent with an API error."""

ACTIVE_MARKS: Final = (*(state.value for state in State if state in ACTIVE_STATES), API_ERROR)

FINISHED_STATES: Final = frozenset({State.DONE, State.STOPPED})

PULLED_RESULTS: Final = frozenset({Result.BETTER, Result.TEST_FIX, Result.TUTORIAL_FIX, Result.IMPL_FIX})
"""Results with commits that the integrator may use."""

CLAIMS: Final = PULLED_RESULTS | {Result.CLEAN, Result.SKIPPED}
"""Results that an agent can report, and that swarm-tui checks with its own run of the test."""

UNSOLVED_RESULTS: Final = frozenset({Result.BLOCKED, Result.ERROR, Result.UNRESOLVED})
"""Results that need the user or another launch."""

OPEN_RESULTS: Final = UNSOLVED_RESULTS | {Result.CLAIMED}
"""Results that make `swarm-tui run` exit with 1."""


class Mark(NamedTuple):
    """How a result, or the state of an unfinished test, is displayed in the room, the commands and the page."""

    name: str
    glyph: str
    ascii_glyph: str
    role: str
    """The role that determines the colour."""
    pill: str
    """The group of marks that are counted and filtered together."""

    @property
    def word(self) -> str:
        return self.name.replace("_", " ").replace("api", "API")


MARKS: Final[dict[str, Mark]] = {
    mark.name: mark
    for mark in (
        Mark("clean", "✓", "v", role="clean", pill="clean"),
        Mark("skipped", "⊘", "s", role="skipped", pill="skipped"),
        Mark("better", "●", "#", role="fixed", pill="fixed"),
        Mark("test_fix", "●", "#", role="fixed", pill="fixed"),
        Mark("tutorial_fix", "●", "#", role="fixed", pill="fixed"),
        Mark("impl_fix", "◆", "*", role="impl_fix", pill="impl_fix"),
        Mark("claimed", "◇", "=", role="running", pill="claimed"),
        Mark("unresolved", "✗", "x", role="unresolved", pill="unresolved"),
        Mark("blocked", "■", "B", role="blocked", pill="blocked"),
        Mark("error", "!", "!", role="error", pill="error"),
        Mark("pulling", "◍", ":", role="running", pill="running"),
        Mark("running", "◐", "o", role="running", pill="running"),
        Mark(API_ERROR, "≈", "~", role=API_ERROR, pill=API_ERROR),
        Mark("waiting", "?", "?", role="waiting", pill="waiting"),
        Mark("launching", "◌", ",", role="launching", pill="launching"),
        Mark("queued", "·", ".", role="queued", pill="queued"),
        Mark("stopped", "-", "-", role="stopped", pill="stopped"),
    )
}
"""All marks, in the order of counts."""

_STATES_ALONG_BAR: Final = ("stopped", "waiting", API_ERROR, "running", "pulling", "launching", "queued")

ALONG_BAR: Final = tuple(MARKS[name] for name in (*(mark for mark in MARKS if mark in set(Result)), *_STATES_ALONG_BAR))
"""The marks in the order of a progress bar, from finished tests on the left to queued tests on the right."""


def mark_of(state: State, result: Result | None) -> str:
    """Return the name of the mark for a state and result."""
    return result.value if result is not None and state is State.DONE else state.value
