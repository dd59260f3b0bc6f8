"""Spending of all agents, its text, and events about the budget."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given

from swarm_tui.integrator.events import IntegrationStarted
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import EngineStarted, Pulled, Queued
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import INTEGRATOR_KEY, Event
from swarm_tui.model.options import parse_dollars
from swarm_tui.model.results import Result
from swarm_tui.model.spec import SweepSpec
from swarm_tui.money.budget import cost_text, due_events
from swarm_tui.money.events import (
    NO_BUDGET,
    NOTHING_SPENT,
    AgentOverBudget,
    BudgetReached,
    BudgetUnknownPrice,
    ModelTokens,
    Spending,
    UsageReported,
    limit_text,
)
from tests.journal.sweeps import events


def started(budget: float = 0.0, each: float = 0.0) -> SweepState:
    return SweepState().apply_all([EngineStarted(pid=1, slots=4, budget=budget, budget_each=each)])


@given(events)
def test_spending_is_sum_of_all_launches(listed: list[Event]) -> None:
    state = SweepState().apply_all(listed)
    total = NOTHING_SPENT
    for record in state.tests():
        total = total.plus(record.spending)
    assert math.isclose(state.spending.dollars, total.dollars, abs_tol=1e-9)
    assert state.spending[1:] == total[1:]
    said = [event.test for event in listed if isinstance(event, UsageReported)]
    assert state.spending.is_known <= bool(said)


def test_second_integrator_adds_spending() -> None:
    state = SweepState()
    for number, dollars in enumerate((1.25, 0.5), 1):
        state.apply(IntegrationStarted(by="agent", agent="a", launch=number))
        state.apply(UsageReported(test=INTEGRATOR_KEY, dollars=dollars / 2, tokens=5))
        state.apply(UsageReported(test=INTEGRATOR_KEY, dollars=dollars, tokens=10))
    assert state.spending == Spending(1.75, 20, priced=2)
    assert state.integrator is not None
    assert (state.integrator.dollars, state.integrator.spending.dollars) == (0.5, 1.75)


@pytest.mark.parametrize(
    ("dollars", "percents"), [(0.7999, []), (0.8, [80]), (0.999, [80]), (1.0, [100]), (7.0, [100]), (0.1 * 8, [80])]
)
def test_budget_events_at_80_and_100_percent(dollars: float, percents: list[int]) -> None:
    state = started(budget=1.0)
    state.apply(UsageReported(test="a", dollars=dollars, tokens=1))
    due = list(due_events(state, ["a"]))
    assert [event.percent for event in due if isinstance(event, BudgetReached)] == percents
    assert len(due) == len(percents)
    assert list(due_events(state.apply_all(due), ["a"])) == []
    assert state.budget.is_used_up == (percents == [100])


def test_rounding_error_still_reaches_budget() -> None:
    state = started(budget=1.0)
    for number in range(10):
        state.apply(UsageReported(test=str(number), dollars=0.1, tokens=1))
    assert state.spending.dollars < 1.0
    assert [event.type for event in due_events(state, [])] == ["budget_reached"]


@pytest.mark.parametrize("limits", [{"budget": 1.0}, {"each": 1.0}])
def test_unknown_price_is_reported_once_for_budget(limits: dict[str, float]) -> None:
    state = started(**limits).apply_all([UsageReported(test="a", tokens=5)])
    due = list(due_events(state, []))
    assert due == [BudgetUnknownPrice(tokens=5)]
    assert list(due_events(state.apply_all(due), [])) == []


def test_no_budget_gives_no_events() -> None:
    state = started().apply_all([UsageReported(test="a", dollars=1e5), UsageReported(test="b", tokens=5)])
    assert list(due_events(state, ["a", "b"])) == []


def test_only_working_agents_are_asked_to_submit() -> None:
    state = started(each=1.0)
    for test, dollars in (("a", 1.0), ("b", 0.99), ("c", 3.0)):
        state.apply(UsageReported(test=test, dollars=dollars))
    assert [event.test for event in due_events(state, ["a", "b"]) if isinstance(event, AgentOverBudget)] == ["a"]


def test_unknown_price_keeps_budget_spent() -> None:
    state = started(budget=1.0).apply_all([UsageReported(test="a", dollars=2.0, tokens=1)])
    state.apply_all(list(due_events(state, [])))
    state.apply(UsageReported(test="a", dollars=None, tokens=2))
    assert state.budget.is_used_up
    assert cost_text(state, is_imputed=False) == "?/1"


@pytest.mark.parametrize(
    ("spent", "budget", "is_done", "text"),
    [
        ([], 0.0, False, ""),
        ([], 0.0, True, ""),
        ([], 20.0, False, "$0.00/20"),
        ([], 20.0, True, "?/20"),
        ([(3.424, 5)], 0.0, True, "$3.42 imputed"),
        ([(3.424, 5)], 2.5, True, "$3.42/2.50 imputed"),
        ([(3.424, 5), (None, 7)], 1200.0, True, "$3.42+?/1,200 imputed"),
        ([(None, 7)], 0.0, True, "? imputed"),
        ([(0.0, 0)], 0.0, True, "$0.00 imputed"),
    ],
)
def test_budget_text(spent: list[tuple[float | None, int]], budget: float, is_done: bool, text: str) -> None:
    state = started(budget=budget)
    for number, (dollars, tokens) in enumerate(spent):
        state.apply(UsageReported(test=str(number), dollars=dollars, tokens=tokens))
    if is_done:
        state.apply(Pulled(test="a", result=Result.CLEAN))
    assert cost_text(state, is_imputed=bool(spent)) == text


def test_tokens_are_summed_by_model() -> None:
    state, small = started(), ModelTokens("haiku", 1, 2, 3, 4)
    for test, models in (("a", (ModelTokens("opus", 10),)), ("a", (ModelTokens("opus", 20), small)), ("b", (small,))):
        state.apply(UsageReported(test=test, dollars=1.0, tokens=1, models=models))
    assert state.spending.models == (ModelTokens("haiku", 2, 4, 6, 8), ModelTokens("opus", 20))
    state.apply(Queued(test="a"))
    state.apply(UsageReported(test="a", dollars=1.0, tokens=1, models=(small,)))
    assert state.record_of("a").spending.models == (ModelTokens("haiku", 2, 4, 6, 8), ModelTokens("opus", 20))
    assert state.spending.models == (ModelTokens("haiku", 3, 6, 9, 12), ModelTokens("opus", 20))
    assert small.text == "haiku 1 in, 2 out, 3 cached, 4 to cache"


def test_parse_dollars_accepts_common_forms() -> None:
    assert [parse_dollars(text) for text in ("20", "$20", " 2.50 ", "$0.01")] == [20.0, 20.0, 2.5, 0.01]
    for text in ("", "much", "20 dollars", "1,000", "$"):
        with pytest.raises(ValueError, match="invalid amount"):
            parse_dollars(text)
    assert [limit_text(amount) for amount in (0.0, 20.0, 2.5, 1500.0)] == ["none", "$20", "$2.50", "$1,500"]


def test_older_journal_and_sweep_have_no_budget() -> None:
    started = b'{"seq": 1, "at": 1.0, "type": "engine_started", "pid": 7, "slots": 4}'
    spent = b'{"seq": 2, "at": 2.0, "type": "usage_reported", "test": "a", "dollars": 0.5, "tokens": 7}'
    state = SweepState().apply_all(map(parse_event, (started, spent)))
    assert (state.budget, state.spending) == (NO_BUDGET, Spending(0.5, 7, priced=1))
    assert list(due_events(state, ["a"])) == []
    spec = msgspec.json.decode(
        b'{"version": 3, "sweep": "s", "repository": "/r", "base": "b", "created_at": 1, "mngr": {"path": "mngr"}}',
        type=SweepSpec,
    )
    assert (spec.budget, spec.budget_each, spec.has_budget, spec.estimated_cost) == (None, None, False, None)
