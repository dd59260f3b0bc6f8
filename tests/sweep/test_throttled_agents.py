"""Agents whose model does not answer: nothing is launched in vain, none is failed for it, and all go on afterwards."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from swarm_tui.adapters.mngr_messages import AgentFailure, Created, CreateRequest, MessageReport
from swarm_tui.agents.contract import CONDITION_PATH
from swarm_tui.journal.events import AgentStateChanged, Launched, MessageSent
from swarm_tui.journal.recover import recover_journal
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.limits.events import ApiError, ApiErrorKind, LoginLost, LoginRestored
from swarm_tui.limits.recovery import (
    CONTINUES_WITHIN,
    FIRST_PAUSE,
    GOT_THROUGH,
    PROVEN_AFTER,
    TOLD_AGAIN_AFTER,
    WORKS_AFTER,
)
from swarm_tui.model.event import Event
from swarm_tui.model.results import Result, State
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.guards import OURS, ThrottledAgents
from swarm_tui.sweep.messages import AgentMessages
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.run import RunningSweep
from tests.sweep.scripted_sweep import IdleMngr, QuickMngr, Watches, packed_outcome, scripted_sweep
from tests.waiting import PATIENCE, eventually

LOST = ApiError(kind=ApiErrorKind.LOGIN_LOST, has_given_up=True)
LIMITED = ApiError(kind=ApiErrorKind.LIMITED, has_given_up=True)


class RefusingMngr(IdleMngr):
    """Creates agents that do nothing; messages may be refused."""

    refuses = False

    async def message(self, names: Sequence[str], text: str) -> MessageReport:
        if self.refuses:
            return MessageReport(failed=tuple(AgentFailure(agent=name, error="busy") for name in names))
        return await super().message(names, text)


class Trial:
    """Some agents that live, and what sees to them."""

    def __init__(self, root: Path, agents: int, queued: int = 0) -> None:
        self.mngr = RefusingMngr(root / "mngr")
        self.context = scripted_sweep(
            root,
            agents + queued,
            self.mngr,
            # Each event of this journal is a millisecond later than the one before, however slow the machine is.
            partial(next, itertools.count(time.time() + 60.0, 0.001)),
            agent_type="command",
            agent_arguments=["x"],
            is_load_ignored=True,
        )
        self.now = self.context.state.last_at
        self.live = Watches()
        self.relaunched: list[str] = []
        messages = AgentMessages(self.context, self.live)
        self.throttled = ThrottledAgents(
            self.context, self.live, messages, lambda test, reason: self.relaunched.append(test)
        )
        self.tests = [record.test for record in self.context.state.tests()][:agents]

    async def launch(self) -> None:
        for test in self.tests:
            record = self.context.state.records[test]
            address = self.context.address_of(record.agent, 1)
            words = ("--id", address.agent_id, "--target-path", address.work_dir)
            await self.mngr.create(CreateRequest(name=record.agent, source=self.mngr.root, extra_arguments=words))
            self.context.record(
                Launched(test=test, agent_id=address.agent_id, work_dir=address.work_dir, state_dir=address.state_dir)
            )
            self.live.follow(self.context, test)

    def see(self, api_error: ApiError | None, *numbers: int) -> None:
        for number in numbers:
            self.context.record(
                AgentStateChanged(
                    test=self.tests[number], state=State.RUNNING, status_detail="refused", api_error=api_error
                )
            )

    async def work(self, after: float) -> list[str]:
        """Do what is due so many seconds from now; return who was told to go on since the start."""
        async with asyncio.TaskGroup() as group:
            self.throttled.work(group, self.now + after)
        return [event.test for event in events_of(self.context) if isinstance(event, MessageSent)]


def events_of(context: SweepContext) -> list[Event]:
    return list(recover_journal(context.folder.events).events)


async def test_a_lost_login_is_one_notice_and_holds_the_queue_until_it_is_released(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 5, queued=3)
    await trial.launch()
    assert trial.throttled.recovery.may_launch(trial.now)
    for number in range(5):
        trial.see(LOST, number)
        assert await trial.work(0.0) == []
    assert sum(isinstance(event, LoginLost) for event in events_of(trial.context)) == 1
    assert trial.context.state.access.lost_words == "login lost"
    assert not trial.throttled.recovery.may_launch(trial.now)
    assert trial.context.state.open_slots == trial.context.state.slots
    assert await trial.throttled.release("ada") == ""
    assert await trial.work(0.1) == [trial.tests[0]]
    # The first shows whether the others can go on too.
    assert await trial.work(1.0) == [trial.tests[0]]
    trial.see(None, 0)
    for number in range(1, 5):
        told = await trial.work(PROVEN_AFTER + 2.0 * number)
        assert told == trial.tests[: number + 1]
        trial.see(None, number)
    assert trial.throttled.recovery.may_launch(trial.now)
    sent = [event for event in events_of(trial.context) if isinstance(event, MessageSent)]
    assert {(event.by, event.error) for event in sent} == {(OURS, "")}


@pytest.mark.parametrize("api_error", [LOST, LIMITED, structs.replace(LIMITED, has_given_up=False)])
async def test_claim_of_one_agent_slows_no_others(tmp_path: Path, api_error: ApiError) -> None:
    claim = structs.replace(api_error, is_claim=True, until=time.time() + 9_000.0)
    trial = Trial(tmp_path, 4, queued=4)
    await trial.launch()
    trial.see(claim, 0)
    await trial.work(0.1)
    state = trial.context.state
    assert trial.throttled.recovery.may_launch(trial.now)
    assert (state.open_slots, state.access.lost, state.access.throttle.until) == (state.slots, "", None)
    trial.see(api_error, 1)
    await trial.work(0.2)
    assert state.open_slots < state.slots or state.access.lost
    assert state.access.throttle.until is None, "the end that the claim names is its own"


async def test_a_login_that_is_taken_again_ends_the_hold_by_itself(tmp_path: Path) -> None:
    refused = structs.replace(LOST, has_given_up=False)
    trial = Trial(tmp_path, 3, queued=3)
    await trial.launch()
    trial.see(refused, 0, 1)
    await trial.work(0.0)
    trial.see(None, 0)
    # The other is still refused, and an agent that never was proves nothing.
    await trial.work(60.0)
    assert trial.context.state.access.lost
    trial.see(None, 1)
    await trial.work(70.0)
    assert trial.context.state.access.lost
    await trial.work(60.0 + WORKS_AFTER)
    assert not trial.context.state.access.lost
    assert trial.throttled.recovery.may_launch(trial.now + 100.0)
    restored = [event for event in events_of(trial.context) if isinstance(event, LoginRestored)]
    assert [event.by for event in restored] == [GOT_THROUGH]


async def test_agents_whose_limit_has_an_end_are_left_alone_until_then(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 2, queued=2)
    await trial.launch()
    trial.see(structs.replace(LIMITED, until=trial.now + 500.0), 0, 1)
    assert await trial.work(0.1) == []
    assert (trial.context.state.open_slots, trial.throttled.recovery.may_launch(trial.now)) == (1, False)
    assert await trial.work(499.0) == []
    assert len(await trial.work(501.0 + CONTINUES_WITHIN)) == 1


async def test_a_person_may_say_that_the_limit_is_over(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 1)
    await trial.launch()
    trial.see(structs.replace(LIMITED, until=trial.now + 500.0), 0)
    await trial.work(0.1)
    assert await trial.throttled.release("ada") == ""
    assert trial.context.state.access.throttle.until is None
    assert await trial.work(FIRST_PAUSE + 1.0) == [trial.tests[0]]


async def test_after_a_limit_one_agent_is_told_at_a_time_and_less_often_when_it_is_in_vain(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 3)
    await trial.launch()
    trial.see(LIMITED, 0, 1, 2)
    assert await trial.work(1.0) == []
    first = await trial.work(FIRST_PAUSE + 1.0)
    assert first == [trial.tests[0]]
    in_vain = trial.now + FIRST_PAUSE + 2.0
    seen = AgentStateChanged(test=trial.tests[0], state=State.RUNNING, api_error=LIMITED, at=in_vain)
    trial.context.state.apply(seen)
    assert await trial.work(2 * FIRST_PAUSE + 3.0) == first
    assert await trial.work(3 * FIRST_PAUSE + 3.0) == [*first, trial.tests[1]]


async def test_an_agent_that_cannot_be_told_is_launched_again(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 1)
    await trial.launch()
    trial.mngr.refuses = True
    trial.see(LIMITED, 0)
    for time_of_try in range(1, 4):
        assert trial.relaunched == []
        await trial.work(FIRST_PAUSE + time_of_try * (TOLD_AGAIN_AFTER + 1.0))
    assert trial.relaunched == trial.tests


class Dying(QuickMngr):
    """Creates agents of which the first ones end because their model refuses them."""

    def __init__(self, root: Path, times: int) -> None:
        super().__init__(root)
        self._times = times

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        created = await super().create(request, timeout)
        if len(self.created) <= self._times:
            agent = self.agents[request.name]
            (agent.state_dir / "plugin/swarm/outputs.tar.gz").unlink()
            report = agent.state_dir / CONDITION_PATH
            report.write_text(json.dumps({"api_error": "overloaded", "words": "529 Overloaded"}))
            agent.state = "STOPPED"
        return created


async def test_an_agent_that_ends_in_trouble_is_launched_again_and_never_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_tui.limits.recovery.FIRST_PAUSE", 0.1)
    mngr = Dying(tmp_path / "mngr", times=2)
    context = scripted_sweep(tmp_path, 3, mngr, agent_type="command", agent_arguments=["x"], is_load_ignored=True)
    runner = RunningSweep(context, tick=0.02)
    async with asyncio.timeout(PATIENCE):
        await runner.run(RequestHandler(context, runner))
    assert {record.result for record in context.state.tests()} == {Result.CLEAN}
    assert len(mngr.created) == 5
    reasons = {line.text for line in context.state.log if "API error" in line.text}
    assert "queued again: its agent exited during an API error: API busy" in reasons


async def test_one_request_releases_a_lost_login(tmp_path: Path) -> None:
    mngr = RefusingMngr(tmp_path / "mngr")
    context = scripted_sweep(
        tmp_path, 2, mngr, agent_type="command", agent_arguments=["x"], slots=1, is_load_ignored=True
    )
    runner = RunningSweep(context, tick=0.02)
    working = asyncio.ensure_future(runner.run(RequestHandler(context, runner)))
    async with asyncio.timeout(PATIENCE):
        await eventually(lambda: mngr.created, "the first agent")
        agent = mngr.agents[mngr.created[0]]
        report = agent.state_dir / CONDITION_PATH
        report.write_text(json.dumps({"api_error": "login_lost", "words": "401", "has_given_up": True}))
        await eventually(lambda: context.state.access.lost, "the notice")
        released = append_request(context.folder, RequestKind.RELEASE)
        await eventually(lambda: agent.received, "the message")
        report.write_text("{}")
        (agent.state_dir / "plugin/swarm/outputs.tar.gz").write_bytes(packed_outcome())
        await eventually(lambda: len(mngr.created) == 2, "the second agent")
        other = mngr.agents[mngr.created[1]]
        (other.state_dir / "plugin/swarm/outputs.tar.gz").write_bytes(packed_outcome())
        await working
    assert context.state.answers[released.id].is_done
    assert {record.result for record in context.state.tests()} == {Result.CLEAN}


async def test_agents_that_keep_a_refused_login_are_launched_again_when_a_new_one_works(tmp_path: Path) -> None:
    trial = Trial(tmp_path, 3, queued=1)
    await trial.launch()
    trial.see(LOST, 0, 1, 2)
    await trial.work(0.0)
    assert await trial.throttled.release("ada") == ""
    first = await trial.work(1.0)
    assert first == [trial.tests[0]]
    # It is refused as before: a new agent shows whether the login is any good, before others are told.
    apply = trial.context.state.apply
    now = trial.now
    apply(AgentStateChanged(test=trial.tests[0], state=State.RUNNING, api_error=LOST, at=now + 10.0))
    assert await trial.work(11.0) == first
    assert trial.relaunched == [trial.tests[0]]
    assert not trial.context.state.access.lost
    assert trial.throttled.recovery.may_launch(now + 11.0)
    assert await trial.work(30.0) == first
    other = [record.test for record in trial.context.state.tests()][3]
    apply(Launched(test=other, at=now + 40.0))
    assert await trial.work(45.0) == first
    assert await trial.work(61.0) == [*first, trial.tests[1]]
    apply(AgentStateChanged(test=trial.tests[1], state=State.RUNNING, api_error=LOST, at=now + 62.0))
    await trial.work(63.0)
    assert trial.relaunched == trial.tests[:2]
    # A new agent that is refused is another loss.
    apply(Launched(test=trial.tests[2], at=now + 65.0))
    apply(AgentStateChanged(test=trial.tests[2], state=State.RUNNING, api_error=LOST, at=now + 70.0))
    await trial.work(71.0)
    assert trial.relaunched == trial.tests[:2]
    assert trial.context.state.access.lost
