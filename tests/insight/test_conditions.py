"""What a script may wait for: words, and expressions of them."""

from __future__ import annotations

import contextlib
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.errors import UsageError
from swarm_tui.insight.conditions import CHECKS, is_so
from swarm_tui.journal.fold import SweepState
from swarm_tui.model import events as happened
from swarm_tui.model.conditions import CONDITIONS, parse_expression
from swarm_tui.model.states import Result, State
from swarm_tui.model.sweep import INTEGRATOR_KEY
from swarm_tui.model.trouble import TroubleKind

NOW = 10_000.0
BEGUN: list[happened.Event] = [
    happened.EngineStarted(at=1, pid=1, slots=4),
    *(happened.Queued(at=1, test=name) for name in "abcdef"),
    happened.Launched(at=NOW - 1, test="a"),
]


def harvested(result: Result, *tests: str) -> list[happened.Harvested]:
    return [happened.Harvested(at=NOW, test=test, result=result, reason=f"no port {test}") for test in tests]


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], set()),
        ([happened.EngineEnded(why="finished")], {"done", "ended"}),
        ([happened.EngineEnded(why="stopped")], {"ended"}),
        ([happened.EngineEnded(why="failed")], {"ended"}),
        ([happened.Seen(test="a", state=State.WAITING)], {"asks"}),
        (
            [
                happened.Integrating(by="agent", agent="i"),
                happened.Seen(test=INTEGRATOR_KEY, state=State.WAITING),
            ],
            {"asks"},
        ),
        (harvested(Result.FAILED, "a"), {"failed"}),
        (harvested(Result.BLOCKED, "a"), {"blocked"}),
        (harvested(Result.UNRESOLVED, "a"), {"unresolved"}),
        (harvested(Result.FAILED, "a", "b", "c", "d"), {"failed"}),
        ([happened.Launched(test="b"), happened.Stuck(test="b", reason="it loops")], {"stuck"}),
        ([happened.BudgetSpent(percent=80, dollars=8, budget=10)], set()),
        ([happened.BudgetSpent(percent=100, dollars=10, budget=10)], {"over-budget", "held"}),
        ([happened.OverBudget(test="a", dollars=2, budget=1)], {"over-budget"}),
        ([happened.QueueHeld()], {"held"}),
        ([happened.PatternRaised(cause="no port", tests=("a", "b"))], {"alert"}),
        ([happened.HostLost(host="one", reason="no route")], {"host-lost"}),
        ([happened.LoginLost(kind=TroubleKind.LOGIN_LOST, test="a", reason="401")], {"login-lost", "held"}),
        ([happened.Integrated(branch="b", fixes=2)], {"fixes"}),
        ([happened.Integrated(branch="b", fixes=0)], set()),
    ],
)
def test_what_is_so(events: list[happened.Event], words: set[str]) -> None:
    state = SweepState().apply_all([*BEGUN, *events])
    assert set(filter(is_so(state, NOW), CONDITIONS)) == words


def test_every_word_can_be_checked() -> None:
    assert list(CHECKS) == list(CONDITIONS)


WORDS = ("done", "asks", "failed")
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
def test_it_means_what_python_means_by_it(text: str) -> None:
    holds = parse_expression(text.upper()).holds
    for done, asks, failed in itertools.product((False, True), repeat=3):
        facts = {"done": done, "asks": asks, "failed": failed}
        assert holds(facts.__getitem__) == eval(text, {}, facts)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "wait for what?"),
        ("  ", "wait for what?"),
        ("don", "knows no 'don': there are done, ended, asks, failed"),
        ("done or", "ends where a word is missing"),
        ("not", "ends where a word is missing"),
        ("and", "knows no 'and'"),
        ("done asks", "'asks' is too much"),
        ("(done", "a bracket that is not closed"),
        ("done)", "')' is too much"),
        ("done;rm", "knows no 'done;rm'"),
        ("(" * 5_000 + "done", "too many brackets"),
        ("not " * 5_000 + "done", "too many brackets"),
    ],
)
def test_what_is_no_expression_is_refused_in_a_sentence(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        parse_expression(text)


@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_expression(text).words
