"""How a sweep is conducted: slots, retries of launches, requests, and numbers that would overrun a careless engine."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import ActionReport, AgentFailure, CreateRequest
from swarm_tui.agents.contract import PROMPT_FILE
from swarm_tui.agents.judging import AgentEnd
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.journal.events import AgentsStopped
from swarm_tui.journal.recover import recover_journal
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.model.results import Result, State
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.run import RunningSweep
from tests.sweep.scripted_sweep import IdleMngr, QuickMngr, packed_outcome, scripted_sweep
from tests.waiting import PATIENCE, eventually


async def run(context: SweepContext, tick: float = 0.0) -> None:
    runner = RunningSweep(context, tick=tick)
    async with asyncio.timeout(PATIENCE):
        await runner.run(RequestHandler(context, runner))


async def test_every_test_gets_one_agent_and_a_result(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 40, mngr)
    await run(context)
    assert Counter(mngr.created) == Counter(record.agent for record in context.state.tests())
    assert {record.result for record in context.state.tests()} == {Result.CLEAN}
    assert {agent.state for agent in mngr.agents.values()} == {"STOPPED"}


async def test_agents_are_kept_when_that_is_wished(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    await run(scripted_sweep(tmp_path, 3, mngr, keep_agents=True))
    assert "STOPPED" not in {agent.state for agent in mngr.agents.values()}


async def test_a_launch_that_fails_is_repeated_under_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def refuse(request: CreateRequest) -> None:
        if len(refused) < 1:
            refused.append(request.name)
            raise AdapterError("no more disk")

    mngr = QuickMngr(tmp_path / "mngr", refuse)
    context = scripted_sweep(tmp_path, 2, mngr)
    await run(context, tick=0.05)
    assert {record.result for record in context.state.tests()} == {Result.CLEAN}
    failed = next(record for record in context.state.tests() if record.agent == refused[0])
    assert failed.launch == 2


async def test_what_can_never_be_launched_is_failed_and_the_others_go_on(tmp_path: Path) -> None:
    def refuse(request: CreateRequest) -> None:
        if request.name.endswith("test-1"):
            raise UsageError("this cannot be", "never")

    mngr = QuickMngr(tmp_path / "mngr", refuse)
    context = scripted_sweep(tmp_path, 3, mngr)
    await run(context)
    results = {record.agent[-6:]: (record.result, record.reason) for record in context.state.tests()}
    assert results["test-1"] == (Result.ERROR, "it could not be launched: this cannot be (never)")
    assert results["test-0"][0] is results["test-2"][0] is Result.CLEAN


async def test_agent_past_its_time_limit_is_stopped(tmp_path: Path) -> None:
    mngr = IdleMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1, mngr, timeout=0.2)
    await run(context, tick=0.01)
    (record,) = context.state.tests()
    assert (record.result, record.pulled.end) == (Result.ERROR, AgentEnd.TIMEOUT)
    assert mngr.agents[record.agent].state == "STOPPED"


async def test_another_sweeps_agent_of_the_same_name_is_never_touched(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1, mngr)
    record = next(context.state.tests())
    stranger = await mngr.create(CreateRequest(name=record.agent, source=tmp_path))
    await run(context)
    ended = context.state.records[record.test]
    assert ended.result is Result.ERROR
    assert "which this sweep did not create" in ended.reason
    assert mngr.agents[record.agent].agent_id == stranger.agent_id


async def test_held_tests_wait_until_they_are_released(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 3, mngr)
    first = next(context.state.tests()).test
    held = append_request(context.folder, RequestKind.HOLD, tests=[first])
    runner = RunningSweep(context, tick=0.01)
    working = asyncio.ensure_future(runner.run(RequestHandler(context, runner)))
    async with asyncio.timeout(PATIENCE):
        await eventually(lambda: context.state.counts["clean"] >= 2, "the results of the others")
        assert context.state.answers[held.id].is_done
        assert context.state.records[first].state is State.QUEUED
        append_request(context.folder, RequestKind.RELEASE, tests=[first])
        await working
    assert context.state.records[first].result is Result.CLEAN


async def test_requests_that_cannot_be_are_answered_with_the_reason(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1, mngr)
    asked = [
        append_request(context.folder, RequestKind.SLOTS, slots=0),
        append_request(context.folder, RequestKind.RETRY, tests=["no such test"]),
        append_request(context.folder, RequestKind.STOP_SWEEP),
    ]
    with context.folder.requests.open("a") as file:
        file.write("this is no request\n")
    context.begun_at = time.time()
    await run(context)
    answers = [context.state.answers[request.id] for request in asked]
    assert [answer.is_done for answer in answers] == [False, False, False]
    assert "invalid number of slots: 0" in answers[0].detail
    assert "not a test of this sweep: no such test" in answers[1].detail
    assert "has already exited" in answers[2].detail
    assert next(context.state.tests()).result is Result.CLEAN


async def test_an_engine_stops_that_was_asked_before_it_read_any_request(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 2, mngr)
    asked = append_request(context.folder, RequestKind.STOP_SWEEP)
    await run(context)
    assert context.state.answers[asked.id].is_done
    assert mngr.created == []


async def test_slots_that_no_test_needs_are_said(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 2, QuickMngr(tmp_path / "mngr"))
    asked = append_request(context.folder, RequestKind.SLOTS, slots=99)
    await run(context)
    answer = context.state.answers[asked.id]
    assert (answer.is_done, answer.detail) == (True, "2 tests: no more than 2 agents at once")


async def test_a_request_about_strangers_touches_nobody(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 2, mngr)
    asked = [
        append_request(context.folder, kind, tests=["no such test"]) for kind in (RequestKind.HOLD, RequestKind.RELEASE)
    ]
    nameless = [append_request(context.folder, kind) for kind in (RequestKind.STOP, RequestKind.MESSAGE)]
    await run(context)
    answers = [context.state.answers[request.id] for request in asked]
    assert [(answer.is_done, "not a test of this sweep" in answer.detail) for answer in answers] == [(False, True)] * 2
    assert [context.state.answers[request.id].detail for request in nameless] == ["no test is named"] * 2
    assert not context.state.is_held
    assert {record.result for record in context.state.tests()} == {Result.CLEAN}


class SlowToStop(QuickMngr):
    """Takes its time to stop agents; while it does, somebody asks for a test again."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.context: SweepContext
        self.met: list[str] = []

    async def stop(self, names: Sequence[str]) -> ActionReport:
        before = [self.agents[name].agent_id for name in names]
        if len(self.created) == 1:
            test = next(self.context.state.tests()).test
            asked = append_request(self.context.folder, RequestKind.RETRY, tests=[test], text="Keep 1.0.\nDrop 0.9.")
            while asked.id not in self.context.state.answers:  # noqa: ASYNC110
                await asyncio.sleep(0)
            for _ in range(200):
                await asyncio.sleep(0)
        self.met += [
            name for name, agent_id in zip(names, before, strict=True) if self.agents[name].agent_id != agent_id
        ]
        return await super().stop(names)


async def test_a_stop_that_is_under_way_never_meets_the_agent_of_a_retry(tmp_path: Path) -> None:
    mngr = SlowToStop(tmp_path / "mngr")
    mngr.context = context = scripted_sweep(tmp_path, 1, mngr)
    await run(context)
    assert mngr.met == []
    assert len(mngr.created) == 2
    record = next(context.state.tests())
    assert record.result is Result.CLEAN
    prompt = (context.work_folder(record.test) / PROMPT_FILE).read_text()
    assert prompt.endswith("> Keep 1.0.\n> Drop 0.9.\n")


async def test_an_agent_that_cannot_be_stopped_is_said_and_nobody_says_it_was(tmp_path: Path) -> None:
    class Unstoppable(QuickMngr):
        async def stop(self, names: Sequence[str]) -> ActionReport:
            return ActionReport(failed=tuple(AgentFailure(agent=name, error="it clings") for name in names))

    mngr = Unstoppable(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1, mngr)
    await run(context)
    assert any("could not be stopped: it clings" in line.text for line in context.state.log)
    assert not any(isinstance(event, AgentsStopped) for event in recover_journal(context.folder.events).events)


async def test_a_lie_costs_only_its_own_test(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    mngr.archive = packed_outcome(changes={"FIX_IMPL": {"status": "SUCCEEDED"}})
    context = scripted_sweep(tmp_path, 2, mngr)
    await run(context)
    assert {record.result for record in context.state.tests()} == {Result.UNRESOLVED}


@pytest.mark.slow
async def test_memory_and_descriptors_do_not_grow_over_many_tests(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1_500, mngr)
    runner = RunningSweep(context, tick=0.0)
    working = asyncio.ensure_future(runner.run(RequestHandler(context, runner)))
    early = objects = descriptors = 0
    done_early = 0
    async with asyncio.timeout(900):
        while not working.done():
            await asyncio.sleep(0.05)
            if not early and context.state.counts["clean"] > 500:
                gc.collect()
                early, objects, descriptors = _resident(), sys.getallocatedblocks(), len(os.listdir("/proc/self/fd"))
                done_early = context.state.counts["clean"]
        await working
    assert context.state.counts["clean"] == 1_500
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 5
    gc.collect()
    # A test's record, its line in the log and the stand-in for its agent are some 130 objects of some kilobytes. What
    # is large shows in the memory of the process, where what other tests have left behind counts too.
    assert sys.getallocatedblocks() - objects < 160 * (1_500 - done_early)
    assert _resident() - early < 13_500 * (1_500 - done_early) + 10_000_000


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
