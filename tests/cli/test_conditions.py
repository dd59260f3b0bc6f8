"""Conditions of `swarm-tui wait`, and expressions of them."""

from __future__ import annotations

import contextlib
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.cli.wait import CONDITIONS, is_so, parse_expression
from swarm_tui.errors import UsageError
from swarm_tui.failures.events import AlertRaised, QueueHeld
from swarm_tui.hosts.events import HostLost
from swarm_tui.integrator.events import Integrated, IntegrationStarted
from swarm_tui.journal.events import AgentStateChanged, EngineEnded, EngineStarted, Launched, Pulled, Queued
from swarm_tui.journal.state import SweepState
from swarm_tui.limits.events import AgentStuck, ApiErrorKind, LoginLost
from swarm_tui.model.event import INTEGRATOR_KEY, Event
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import AgentOverBudget, BudgetReached

NOW = 10_000.0
BEGUN: list[Event] = [
    EngineStarted(at=1, pid=1, slots=4),
    *(Queued(at=1, test=name) for name in "abcdef"),
    Launched(at=NOW - 1, test="a"),
]


def pulled(result: Result, *tests: str) -> list[Pulled]:
    return [Pulled(at=NOW, test=test, result=result, reason=f"no port {test}") for test in tests]


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], set()),
        ([EngineEnded(why="finished")], {"done", "ended"}),
        ([EngineEnded(why="stopped")], {"ended"}),
        ([EngineEnded(why="failed")], {"ended"}),
        ([AgentStateChanged(test="a", state=State.WAITING)], {"question"}),
        (
            [
                IntegrationStarted(by="agent", agent="i"),
                AgentStateChanged(test=INTEGRATOR_KEY, state=State.WAITING),
            ],
            {"question"},
        ),
        (pulled(Result.ERROR, "a"), {"error"}),
        (pulled(Result.BLOCKED, "a"), {"blocked"}),
        (pulled(Result.UNRESOLVED, "a"), {"unresolved"}),
        (pulled(Result.ERROR, "a", "b", "c", "d"), {"error"}),
        ([Launched(test="b"), AgentStuck(test="b", reason="it loops")], {"stuck"}),
        ([BudgetReached(percent=80, dollars=8, budget=10)], set()),
        ([BudgetReached(percent=100, dollars=10, budget=10)], {"over-budget", "held"}),
        ([AgentOverBudget(test="a", dollars=2, budget=1)], {"over-budget"}),
        ([QueueHeld()], {"held"}),
        ([AlertRaised(cause="no port", tests=("a", "b"))], {"alert"}),
        ([HostLost(host="one", reason="no route")], {"host-lost"}),
        ([LoginLost(kind=ApiErrorKind.LOGIN_LOST, test="a", reason="401")], {"login-lost", "held"}),
        ([Integrated(branch="b", fixes=2)], {"fixes"}),
        ([Integrated(branch="b", fixes=0)], set()),
    ],
)
def test_condition_holds(events: list[Event], words: set[str]) -> None:
    state = SweepState().apply_all([*BEGUN, *events])
    assert set(filter(is_so(state), CONDITIONS)) == words


WORDS = ("done", "question", "error")
leaves = st.sampled_from(WORDS)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda text: f"not {text}"),
        inner.map(lambda text: f"({text})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
    ),
    max_leaves=12,
)


@given(expressions)
def test_expression_equals_python_expression(text: str) -> None:
    holds = parse_expression(text.upper()).holds
    for done, question, error in itertools.product((False, True), repeat=3):
        facts = {"done": done, "question": question, "error": error}
        assert holds(facts.__getitem__) == eval(text, {}, facts)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "--until requires a condition"),
        ("  ", "--until requires a condition"),
        ("don", "unknown condition: 'don' (use one of done, ended, question, error"),
        ("done or", "missing condition"),
        ("not", "missing condition"),
        ("and", "unknown condition: 'and'"),
        ("done question", "unexpected 'question'"),
        ("(done", "unclosed parenthesis"),
        ("done)", "unexpected ')'"),
        ("done;rm", "unknown condition: 'done;rm'"),
        ("(" * 5_000 + "done", "nested too deeply"),
        ("not " * 5_000 + "done", "nested too deeply"),
    ],
)
def test_invalid_expression_raises_error(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        parse_expression(text)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_raises_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_expression(text).words
