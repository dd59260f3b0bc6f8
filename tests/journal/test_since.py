"""Changes between two states of a journal."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from swarm_tui.failures.events import PatternRaised
from swarm_tui.integrator.events import Integrated, Integrating, IntegrationFailed
from swarm_tui.journal.events import EngineEnded, EngineStarted, Harvested, Launched, Queued, Seen, Stopped
from swarm_tui.journal.since import Changes, change_words, changes_between, moment_of, moment_words, since_line
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import Said
from swarm_tui.model.event import INTEGRATOR_KEY, Event
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import BudgetSpent, Spent
from tests.journal.sweeps import events

BEGUN: list[Event] = [
    EngineStarted(seq=1, at=1, pid=1, slots=4),
    *(Queued(seq=2, at=1, test=name) for name in "abcdefgh"),
    Launched(at=2, test="a"),
    Spent(at=3, test="a", dollars=1.0, tokens=5),
]


def changed(*later: Any, before: list[Event] = BEGUN) -> Changes:
    state = SweepState().apply_all(before)
    then = moment_of(state)
    return changes_between(then, moment_of(state.apply_all(later)))


def harvested(test: str, result: Result, at: float = 10, reason: str = "") -> Harvested:
    return Harvested(at=at, test=test, result=result, reason=reason)


@pytest.mark.parametrize(
    ("later", "words"),
    [
        ([], []),
        ([Said(at=9, test="a", line="x"), Launched(at=9, test="b")], []),
        ([harvested("a", Result.CLEAN), harvested("b", Result.IMPL_FIX)], ["2 done"]),
        (
            [harvested("a", Result.CLEAN), harvested("b", Result.FAILED), harvested("c", Result.BLOCKED)],
            ["3 done (1 failed, 1 blocked)"],
        ),
        ([Seen(at=9, test="a", state=State.WAITING)], ["1 asks"]),
        ([Seen(at=9, test=test, state=State.WAITING) for test in "ab"], ["2 ask"]),
        ([Seen(at=9, test="a", state=State.WAITING), Seen(at=10, test="a", state=State.RUNNING)], []),
        ([Integrating(at=8, by="agent", agent="i"), Seen(at=9, test=INTEGRATOR_KEY, state=State.WAITING)], ["1 asks"]),
        ([Stopped(at=9, test="a")], ["1 stopped"]),
        (
            [
                *(harvested(test, Result.FAILED, reason=f"no port {n}") for n, test in enumerate("abcde")),
                PatternRaised(at=9, cause="no port N", tests=tuple("abcde")),
            ],
            ["5 done (5 failed)", "1 pattern of 5"],
        ),
        ([Integrated(at=9, branch="b", fixes=6)], ["6 fixes to review"]),
        ([IntegrationFailed(at=9, reason="no disk")], ["integration failed"]),
        ([BudgetSpent(at=9, percent=80, dollars=8, budget=10)], ["80 % of the budget"]),
        ([BudgetSpent(at=9, percent=100, dollars=10, budget=10)], ["the budget is spent"]),
        ([EngineEnded(at=9, why="finished")], ["finished"]),
        ([EngineEnded(at=9, why="failed")], ["the engine failed"]),
        ([Spent(at=9, test="a", dollars=4.104, tokens=9)], ["$3.10"]),
        ([Spent(at=9, test="a", dollars=4.1, tokens=9), Spent(at=9, test="b", tokens=9)], ["$3.10+?"]),
        ([Spent(at=9, test="a", dollars=1.004, tokens=9)], []),
    ],
)
def test_change_words(later: list[Event], words: list[str]) -> None:
    assert change_words(changed(*later)) == words


def test_earlier_changes_are_not_repeated() -> None:
    before = [
        *BEGUN,
        *(harvested(test, Result.FAILED, reason=f"no port {test}") for test in "bcd"),
        Seen(at=9, test="a", state=State.WAITING, question="Which?"),
        Integrated(at=9, branch="b", fixes=6),
        BudgetSpent(at=9, percent=80, dollars=8, budget=10),
        EngineEnded(at=9, why="stopped"),
    ]
    assert changed(before=before).is_nothing
    assert changed(Said(at=10, test="a", line="x"), before=before).is_nothing
    again = changed(Seen(at=11, test="a", state=State.WAITING, question="And which?"), before=before)
    assert change_words(again) == ["1 asks"]
    retried = [Queued(at=12, test="b"), Launched(at=13, test="b"), harvested("b", Result.CLEAN, 14)]
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
        *(harvested(test, Result.FAILED, reason="no port 1") for test in "bcdef"),
        PatternRaised(at=9, cause="no port N", tests=tuple("bcdef")),
        Seen(at=9, test="a", state=State.WAITING),
        Seen(at=9, test="g", state=State.WAITING),
        Spent(at=9, test="a", dollars=4.1, tokens=9),
    ]
    line = since_line(NOON, NOON + 5, changed(*later))
    assert line == "since 12:04: 5 done (5 failed), 2 ask, 1 pattern of 5, $3.10"


@given(st.floats(0, 4e9), st.floats(0, 4e9))
def test_moment_words_accept_any_clock(at: float, now: float) -> None:
    assert moment_words(at, now)
