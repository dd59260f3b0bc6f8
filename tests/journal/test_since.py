"""Changes between two states of a journal."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from swarm_tui.failures.events import AlertRaised
from swarm_tui.integrator.events import Integrated, IntegrationFailed, IntegrationStarted
from swarm_tui.journal.events import AgentStateChanged, EngineEnded, EngineStarted, Launched, Pulled, Queued, Stopped
from swarm_tui.journal.since import Changes, change_words, changes_between, moment_of, moment_words, since_line
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import AgentOutput
from swarm_tui.model.event import INTEGRATOR_KEY, Event
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import BudgetReached, UsageReported
from tests.journal.sweeps import events

BEGUN: list[Event] = [
    EngineStarted(seq=1, at=1, pid=1, slots=4),
    *(Queued(seq=2, at=1, test=name) for name in "abcdefgh"),
    Launched(at=2, test="a"),
    UsageReported(at=3, test="a", dollars=1.0, tokens=5),
]


def changed(*later: Any, before: list[Event] = BEGUN) -> Changes:
    state = SweepState().apply_all(before)
    then = moment_of(state)
    return changes_between(then, moment_of(state.apply_all(later)))


def pulled(test: str, result: Result, at: float = 10, reason: str = "") -> Pulled:
    return Pulled(at=at, test=test, result=result, reason=reason)


@pytest.mark.parametrize(
    ("later", "words"),
    [
        ([], []),
        ([AgentOutput(at=9, test="a", line="x"), Launched(at=9, test="b")], []),
        ([pulled("a", Result.CLEAN), pulled("b", Result.IMPL_FIX)], ["2 done"]),
        (
            [pulled("a", Result.CLEAN), pulled("b", Result.ERROR), pulled("c", Result.BLOCKED)],
            ["3 done (1 error, 1 blocked)"],
        ),
        ([AgentStateChanged(at=9, test="a", state=State.WAITING)], ["1 question"]),
        ([AgentStateChanged(at=9, test=test, state=State.WAITING) for test in "ab"], ["2 questions"]),
        (
            [
                AgentStateChanged(at=9, test="a", state=State.WAITING),
                AgentStateChanged(at=10, test="a", state=State.RUNNING),
            ],
            [],
        ),
        (
            [
                IntegrationStarted(at=8, by="agent", agent="i"),
                AgentStateChanged(at=9, test=INTEGRATOR_KEY, state=State.WAITING),
            ],
            ["1 question"],
        ),
        ([Stopped(at=9, test="a")], ["1 stopped"]),
        (
            [
                *(pulled(test, Result.ERROR, reason=f"no port {n}") for n, test in enumerate("abcde")),
                AlertRaised(at=9, cause="no port N", tests=tuple("abcde")),
            ],
            ["5 done (5 errors)", "1 pattern of 5"],
        ),
        ([Integrated(at=9, branch="b", fixes=6)], ["6 fixes to review"]),
        ([IntegrationFailed(at=9, reason="no disk")], ["integration failed"]),
        ([BudgetReached(at=9, percent=80, dollars=8, budget=10)], ["80 % of the budget"]),
        ([BudgetReached(at=9, percent=100, dollars=10, budget=10)], ["the budget is spent"]),
        ([EngineEnded(at=9, why="finished")], ["finished"]),
        ([EngineEnded(at=9, why="failed")], ["the engine failed"]),
        ([UsageReported(at=9, test="a", dollars=4.104, tokens=9)], ["$3.10"]),
        ([UsageReported(at=9, test="a", dollars=4.1, tokens=9), UsageReported(at=9, test="b", tokens=9)], ["$3.10+?"]),
        ([UsageReported(at=9, test="a", dollars=1.004, tokens=9)], []),
    ],
)
def test_change_words(later: list[Event], words: list[str]) -> None:
    assert change_words(changed(*later)) == words


def test_earlier_changes_are_not_repeated() -> None:
    before = [
        *BEGUN,
        *(pulled(test, Result.ERROR, reason=f"no port {test}") for test in "bcd"),
        AgentStateChanged(at=9, test="a", state=State.WAITING, question="Which?"),
        Integrated(at=9, branch="b", fixes=6),
        BudgetReached(at=9, percent=80, dollars=8, budget=10),
        EngineEnded(at=9, why="stopped"),
    ]
    assert changed(before=before).is_nothing
    assert changed(AgentOutput(at=10, test="a", line="x"), before=before).is_nothing
    again = changed(AgentStateChanged(at=11, test="a", state=State.WAITING, question="And which?"), before=before)
    assert change_words(again) == ["1 question"]
    retried = [Queued(at=12, test="b"), Launched(at=13, test="b"), pulled("b", Result.CLEAN, 14)]
    assert change_words(changed(*retried, before=before)) == ["1 done"]


@given(events, events)
def test_changes_between_same_moment_are_empty(first: list[Event], then: list[Event]) -> None:
    numbered = [structs.replace(event, at=float(place)) for place, event in enumerate([*first, *then])]
    state = SweepState().apply_all(numbered[: len(first)])
    before = moment_of(state)
    assert changes_between(before, moment_of(state)).is_nothing
    after = moment_of(state.apply_all(numbered[len(first) :]))
    changes = changes_between(before, after)
    for records, mark in (
        (changes.done, State.DONE),
        (changes.stopped, State.STOPPED),
        (changes.asking, State.WAITING),
    ):
        assert all(record is after.records[record.test] and record.state is mark for record in records)
    assert changes.dollars == pytest.approx(after.spending.dollars - before.spending.dollars)
    # A moment does not change with the state that it was taken of.
    assert changes_between(before, before).is_nothing


DAY = 86_400.0
NOON = time.mktime((2026, 11, 18, 12, 4, 0, 0, 0, -1))


@pytest.mark.parametrize(
    ("at", "now", "words"),
    [
        (NOON, NOON + 60, "12:04"),
        (NOON, NOON - 3_600, "12:04"),
        (NOON, NOON + DAY, "Wed 12:04"),
        (NOON, NOON + 6 * DAY, "Wed 12:04"),
        (NOON, NOON + 7 * DAY, "2026-11-18 12:04"),
    ],
)
def test_moment_words_are_short(at: float, now: float, words: str) -> None:
    assert moment_words(at, now) == words


def test_since_line() -> None:
    later = [
        *(pulled(test, Result.ERROR, reason="no port 1") for test in "bcdef"),
        AlertRaised(at=9, cause="no port N", tests=tuple("bcdef")),
        AgentStateChanged(at=9, test="a", state=State.WAITING),
        AgentStateChanged(at=9, test="g", state=State.WAITING),
        UsageReported(at=9, test="a", dollars=4.1, tokens=9),
    ]
    line = since_line(NOON, NOON + 5, changed(*later))
    assert line == "since 12:04: 5 done (5 errors), 2 questions, 1 pattern of 5, $3.10"


@given(st.floats(0, 4e9), st.floats(0, 4e9))
def test_moment_words_accept_any_clock(at: float, now: float) -> None:
    assert moment_words(at, now)
