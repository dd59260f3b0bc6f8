"""A sweep is held to its budget: a warning, no further launches, and agents that hand in when theirs is used up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from swarm_tui.adapters.mngr_messages import ActionReport, Created, CreateRequest
from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.journal.events import EngineStarted, MessageSent
from swarm_tui.journal.recover import recover_journal
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.journal.state import SweepState
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import BudgetReached
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.run import RunningSweep
from tests.fake_mngr import FakeAgent, FakeMngr
from tests.sweep.scripted_sweep import QuickMngr, packed_outcome, scripted_sweep
from tests.waiting import PATIENCE, eventually


class CostlyMngr(QuickMngr):
    """Creates agents that cost something at once, and hand in when they are told to, or at once."""

    def __init__(self, root: Path, costs: list[float | None], *, is_quick: bool = True, obeys: bool = True) -> None:
        super().__init__(root)
        self.costs, self.is_quick = costs, is_quick
        self._react = self._hand_in if obeys else lambda agent, text: None

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        created = await FakeMngr.create(self, request, timeout)
        self.created.append(request.name)
        agent = self.agents[request.name]
        spend(agent, self.costs[(len(self.created) - 1) % len(self.costs)])
        if self.is_quick:
            self._hand_in(agent, "")
        return created

    def _hand_in(self, agent: FakeAgent, text: str) -> None:
        archive = agent.state_dir / ARCHIVE_PATH
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.write_bytes(packed_outcome())


def spend(agent: FakeAgent, dollars: float | None) -> None:
    """Write into an agent's transcript that it has used a thousand tokens, and their price where there is one."""
    transcript = agent.state_dir / "events" / "offline" / "common_transcript" / "events.jsonl"
    transcript.parent.mkdir(parents=True, exist_ok=True)
    metrics = {"prompt_tokens": 900, "completion_tokens": 100} | ({"cost_usd": dollars} if dollars is not None else {})
    with transcript.open("a") as file:
        file.write(json.dumps({"type": "step", "source": "agent", "message": "So.", "metrics": metrics}) + "\n")


@asynccontextmanager
async def running(context: SweepContext, grace: float = 60.0) -> AsyncIterator[RunningSweep]:
    runner = RunningSweep(context, tick=0.01)
    runner.budget_guard.grace = grace
    working = asyncio.ensure_future(runner.run(RequestHandler(context, runner)))
    try:
        async with asyncio.timeout(PATIENCE):
            yield runner
            await working
    finally:
        working.cancel()


def costly(root: Path, mngr: QuickMngr, tests: int, *, slots: int = 1, **budget: float) -> SweepContext:
    context = scripted_sweep(root, tests, mngr, slots=slots, **budget)
    context.record(
        EngineStarted(pid=1, slots=slots, budget=budget.get("budget", 0), budget_each=budget.get("budget_each", 0))
    )
    return context


def percents(context: SweepContext) -> list[int]:
    events = recover_journal(context.folder.events).events
    return [event.percent for event in events if isinstance(event, BudgetReached)]


def are_done(context: SweepContext, number: int) -> Callable[[], bool]:
    return lambda: sum(record.state is State.DONE for record in context.state.tests()) == number


async def test_it_warns_once_then_launches_nothing_until_somebody_says_so(tmp_path: Path) -> None:
    mngr = CostlyMngr(tmp_path / "mngr", [0.45])
    context = costly(tmp_path, mngr, 8, budget=1.0)
    async with running(context):
        await eventually(lambda: context.state.budget.is_used_up, "the end of the budget")
        await eventually(are_done(context, 3), "the pull of what was under way")
        assert percents(context) == [80, 100]
        # An engine that is asked something has had the time to launch.
        append_request(context.folder, RequestKind.HOLD)
        await eventually(lambda: context.state.is_held, "an answer")
        append_request(context.folder, RequestKind.RELEASE)
        await eventually(lambda: not context.state.is_held, "an answer")
        assert len(mngr.created) == 3
        too_little = append_request(context.folder, RequestKind.BUDGET, dollars=1.2)
        await eventually(lambda: too_little.id in context.state.answers, "an answer")
        assert context.state.answers[too_little.id].detail == "$1.35 are spent already: nothing further is launched"
        append_request(context.folder, RequestKind.BUDGET, dollars=0.0)
    assert are_done(context, 8)()
    assert percents(context) == [80, 100, 100]
    assert round(context.state.spending.dollars, 9) == 3.6


async def test_a_budget_that_is_raised_is_warned_of_again(tmp_path: Path) -> None:
    mngr = CostlyMngr(tmp_path / "mngr", [0.5])
    context = costly(tmp_path, mngr, 5, budget=1.0)
    async with running(context):
        await eventually(lambda: context.state.budget.is_used_up, "the end of the budget")
        append_request(context.folder, RequestKind.BUDGET, dollars=3.0)
    assert percents(context) == [100, 80]
    assert not context.state.budget.is_used_up


async def test_an_agent_over_its_own_hands_in_and_is_judged_as_usual(tmp_path: Path) -> None:
    mngr = CostlyMngr(tmp_path / "mngr", [0.2, 1.5], is_quick=False)
    context = costly(tmp_path, mngr, 2, slots=2, budget_each=1.0)
    async with running(context):
        await eventually(are_done(context, 1), "the hand-in")
        cheap = next(record for record in context.state.tests() if record.state is not State.DONE)
        assert cheap.over_budget_at is None
        mngr._hand_in(mngr.agents[cheap.agent], "")
    told = [event for event in recover_journal(context.folder.events).events if isinstance(event, MessageSent)]
    assert [event.by for event in told] == ["the budget"]
    assert told[0].text.startswith("You have used up your budget of $1. Submit now")
    assert {record.result for record in context.state.tests()} == {Result.CLEAN}


async def test_one_that_does_not_hand_in_is_pulled_and_stopped_after_a_grace(tmp_path: Path) -> None:
    mngr = CostlyMngr(tmp_path / "mngr", [1.5], is_quick=False, obeys=False)
    context = costly(tmp_path, mngr, 1, budget_each=1.0)
    async with running(context, grace=0.0):
        pass
    (record,) = context.state.tests()
    assert (record.result, record.pulled.end) == (Result.ERROR, "over budget")
    assert record.reason == "it reached its budget and did not submit its work when asked to"
    assert mngr.agents[record.agent].state == "STOPPED"


class Diligent(CostlyMngr):
    """Its agents go on to spend until they are stopped."""

    async def stop(self, names: Sequence[str]) -> ActionReport:
        for name in names:
            spend(self.agents[name], 0.25)
        return await super().stop(names)


async def test_what_an_agent_uses_until_it_is_stopped_is_counted(tmp_path: Path) -> None:
    mngr = Diligent(tmp_path / "mngr", [1.5], is_quick=False, obeys=False)
    context = costly(tmp_path, mngr, 1, budget_each=1.0)
    async with running(context, grace=0.0):
        pass
    assert context.state.spending.dollars == 1.75


async def test_a_higher_budget_for_each_takes_back_that_it_is_to_hand_in(tmp_path: Path) -> None:
    mngr = CostlyMngr(tmp_path / "mngr", [1.5], is_quick=False, obeys=False)
    context = costly(tmp_path, mngr, 1, budget_each=1.0)
    async with running(context):
        (test,) = context.state.records
        await eventually(lambda: context.state.records[test].over_budget_at is not None, "its budget's end")
        append_request(context.folder, RequestKind.BUDGET_EACH, dollars=2.0)
        await eventually(lambda: context.state.records[test].over_budget_at is None, "its new budget")
        mngr._hand_in(mngr.agents[context.state.records[test].agent], "")


async def test_the_next_engine_holds_to_what_was_said_and_spent(tmp_path: Path) -> None:
    mngr = CostlyMngr(tmp_path / "mngr", [0.6])
    context = costly(tmp_path, mngr, 4, budget=1.0)
    async with running(context) as runner:
        await eventually(lambda: context.state.budget.is_used_up, "the end of the budget")
        await eventually(are_done(context, 2), "the pulls")
        runner.stop_sweep("for a test")
    context.state = SweepState().apply_all(recover_journal(context.folder.events).events)
    context.record(EngineStarted(pid=2, is_resumed=True, slots=1, budget=1.0))
    async with running(context):
        append_request(context.folder, RequestKind.HOLD)
        await eventually(lambda: context.state.is_held, "an answer")
        append_request(context.folder, RequestKind.RELEASE)
        await eventually(lambda: not context.state.is_held, "an answer")
        assert len(mngr.created) == 2
        append_request(context.folder, RequestKind.BUDGET, dollars=9.0)
    assert are_done(context, 4)()


async def test_tokens_without_a_price_are_said_once_and_nothing_is_held(tmp_path: Path) -> None:
    mngr = CostlyMngr(tmp_path / "mngr", [None])
    context = costly(tmp_path, mngr, 3, budget=0.01)
    async with running(context):
        pass
    assert (context.state.spending.text, context.state.spending.tokens) == ("?", 3000)
    lines = [line.text for line in context.state.log if "cannot be enforced" in line.text]
    assert lines == ["the budget cannot be enforced because the price of a model is unknown"]
    assert are_done(context, 3)()


async def test_what_an_attempt_has_cost_stays_when_its_test_is_tried_again(tmp_path: Path) -> None:
    mngr = CostlyMngr(tmp_path / "mngr", [0.25, 0.5], is_quick=False, obeys=False)
    context = costly(tmp_path, mngr, 1)
    (test,) = context.state.records
    async with running(context):
        await eventually(lambda: context.state.records[test].dollars is not None, "what it costs")
        append_request(context.folder, RequestKind.RETRY, tests=[test])
        await eventually(lambda: len(mngr.created) == 2, "another agent")
        await eventually(lambda: context.state.records[test].dollars is not None, "what that costs")
        mngr._hand_in(mngr.agents[context.state.records[test].agent], "")
    record = context.state.records[test]
    assert (record.dollars, record.spending.dollars, record.spending.tokens) == (0.5, 0.75, 2000)
    assert context.state.spending == record.spending
