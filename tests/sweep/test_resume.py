"""What a resumed engine makes of what it finds: nothing twice, nothing lost."""

from __future__ import annotations

import asyncio
import dataclasses
import resource
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import structs

from swarm_tui.adapters.mngr_messages import ActionReport, AgentFailure, CreateRequest
from swarm_tui.agents.judging import AgentEnd
from swarm_tui.errors import JournalError, SwarmError, UsageError
from swarm_tui.hosts.protocol import AgentState, AgentStatuses, HostUnreachable
from swarm_tui.hosts.registry import Hosts
from swarm_tui.integrator.events import IntegrationStarted
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import Launched, Launching, Pulled, Queued, Stopped
from swarm_tui.journal.record import TestRecord as Record
from swarm_tui.journal.recover import recover_journal
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.results import Result, State
from swarm_tui.sweep.agent import SWEEP_STOPPED
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.launch import create_request
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.resume import Resumer, check_continued
from swarm_tui.sweep.run import RunningSweep
from tests.fake_mngr import FakeAgent
from tests.hosts.fake_host import FakeHost
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep
from tests.waiting import PATIENCE


async def resume(context: SweepContext, mngr: QuickMngr, *, is_relaunching: bool = False) -> None:
    runner = RunningSweep(context, tick=0.01)
    events = recover_journal(context.folder.events).events
    await Resumer(context, runner, is_relaunching).resume(events)
    async with asyncio.timeout(PATIENCE):
        await runner.run(RequestHandler(context, runner))


@pytest.fixture
def mngr(tmp_path: Path) -> QuickMngr:
    (tmp_path / "mngr").mkdir()
    return QuickMngr(tmp_path / "mngr")


def only(context: SweepContext) -> Record:
    return next(context.state.tests())


async def create(context: SweepContext, mngr: QuickMngr, launch_number: int = 1) -> None:
    """Create the agent of the only test, as an engine that then died did."""
    record = only(context)
    await mngr.create(create_request(context, record, context.address_of(record.agent, launch_number)))


async def create_half(context: SweepContext, mngr: QuickMngr) -> FakeAgent:
    """Leave of the only test's agent what a create leaves that was killed."""
    context.record(Launching(test=only(context).test))
    await create(context, mngr)
    agent = mngr.agents[only(context).agent]
    (agent.state_dir / "plugin/swarm/outputs.tar.gz").unlink()
    agent.state = "STOPPED"
    return agent


def launched(context: SweepContext) -> Launched:
    record = only(context)
    address = context.address_of(record.agent, 1)
    return Launched(test=record.test, agent_id=address.agent_id, work_dir=address.work_dir, state_dir=address.state_dir)


async def compare(context: SweepContext) -> RunningSweep:
    """Only compare the journal with what is there; nothing is launched or pulled."""
    runner = RunningSweep(context, tick=0.0)
    async with asyncio.timeout(PATIENCE):
        await Resumer(context, runner).resume([])
    return runner


def adopted(context: SweepContext) -> list[str]:
    """Return the ids of the agents that were adopted."""
    events = recover_journal(context.folder.events).events
    return [event.agent_id for event in events if isinstance(event, Launched) and event.is_adopted]


@pytest.mark.parametrize("is_launched", [False, True])
@pytest.mark.parametrize(
    ("state", "is_over"), [("RUNNING", False), ("WAITING", False), ("STOPPED", True), ("STOPPED", False)]
)
async def test_an_agent_is_adopted_that_is_at_work_or_has_handed_in(
    tmp_path: Path, mngr: QuickMngr, is_launched: bool, state: AgentState, is_over: bool
) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(Launching(test=only(context).test))
    await create(context, mngr)
    if is_launched:
        context.record(launched(context))
    agent = mngr.agents[only(context).agent]
    agent.state = state
    if not is_over:
        (agent.state_dir / "plugin/swarm/outputs.tar.gz").unlink()
    runner = await compare(context)
    is_adopted = is_over or state != "STOPPED"
    assert adopted(context) == ([agent.agent_id] if is_adopted else [])
    assert list(runner.watches) == ([only(context).test] if is_adopted or is_launched else [])
    assert runner.queue == ([only(context).test] if not is_adopted and not is_launched else [])
    assert list(mngr.agents) == ([only(context).agent] if is_adopted or is_launched else [])


async def test_what_is_left_of_the_agent_of_a_queued_test_is_removed_first(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    await create_half(context, mngr)
    context.record(Queued(test=only(context).test, reason="its launch failed"))
    await compare(context)
    assert mngr.agents == {}
    assert (only(context).state, only(context).reason) == (State.QUEUED, "its launch failed")


class HostAfterCreates(FakeHost):
    """Records for each poll whether the create of another engine has exited."""

    def __init__(self, mngr: QuickMngr, create: subprocess.Popen[bytes]) -> None:
        super().__init__(mngr)
        self._create = create
        self.has_ended: list[bool] = []

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        self.has_ended.append(self._create.poll() is not None)
        return await super().statuses()


@contextmanager
def create_elsewhere(agent: str) -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that looks like the create of an agent, and ends after its input has ended."""
    words = ["sh", "-c", "read line; sleep 0.5; :", "create", agent]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        yield process


async def test_creates_of_tests_that_are_being_launched_are_waited_for(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    with create_elsewhere(only(context).agent) as create:
        host = HostAfterCreates(mngr, create)
        context.hosts = Hosts([host])
        await compare(context)
        context.record(Launching(test=only(context).test))
        assert create.stdin is not None
        create.stdin.close()
        runner = await compare(context)
    assert host.has_ended == [False, True]
    assert runner.queue == [only(context).test]


async def test_an_integrator_that_is_gone_leaves_no_work_to_keep(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr, integrator="agent")
    context.record(IntegrationStarted(by="agent", agent="swarm-20261118-061200-integrator"))
    context.record(Launched(test=INTEGRATOR_KEY, agent_id="a", work_dir="/gone", state_dir="/gone"))
    runner = await compare(context)
    assert (runner.is_integration_due, INTEGRATOR_KEY in runner.agents) == (True, False)
    assert runner.queue == [only(context).test]
    assert not (context.folder.root / "agents").exists()


class ClingingAgents(QuickMngr):
    """Fails to destroy an agent when it is asked for the first time, and says so."""

    is_first = True

    async def destroy(self, names: Sequence[str], *, is_branch_deleted: bool = False) -> ActionReport:
        if self.is_first:
            self.is_first = False
            return ActionReport(failed=tuple(AgentFailure(agent=name, error="it clings") for name in names))
        return await super().destroy(names, is_branch_deleted=is_branch_deleted)


async def test_an_old_agent_of_ours_that_clings_is_removed_later_and_taken_for_no_stranger(tmp_path: Path) -> None:
    mngr = ClingingAgents(tmp_path / "mngr")
    mngr.root.mkdir()
    context = scripted_sweep(tmp_path, 1, mngr)
    agent = await create_half(context, mngr)
    await resume(context, mngr)
    assert any("could not be removed: it clings" in line.text for line in context.state.log)
    assert only(context).result is Result.CLEAN
    assert mngr.agents[only(context).agent].agent_id != agent.agent_id


async def test_a_test_that_could_not_be_launched_is_launched_when_that_is_wished(
    tmp_path: Path, mngr: QuickMngr
) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(
        Pulled(test=only(context).test, result=Result.ERROR, pulled=PulledWork(end=AgentEnd.NOT_LAUNCHED.value))
    )
    await resume(context, mngr)
    assert mngr.created == []
    await resume(context, mngr, is_relaunching=True)
    assert only(context).result is Result.CLEAN


async def test_work_that_was_handed_in_meanwhile_is_pulled(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(Launching(test=only(context).test))
    await create(context, mngr)
    context.record(launched(context))
    mngr.agents[only(context).agent].state = "STOPPED"
    await resume(context, mngr)
    assert only(context).result is Result.CLEAN
    assert len(mngr.created) == 1


async def test_an_agent_that_is_gone_is_failed_or_made_anew(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(Launching(test=only(context).test))
    context.record(launched(context))
    await resume(context, mngr)
    assert only(context).result is Result.ERROR
    assert mngr.created == []
    await resume(context, mngr, is_relaunching=True)
    assert only(context).result is Result.CLEAN
    assert len(mngr.created) == 1


@pytest.mark.parametrize("is_relaunching", [False, True])
async def test_work_that_was_pulled_by_an_engine_that_then_died_is_not_lost_with_its_agent(
    tmp_path: Path, mngr: QuickMngr, is_relaunching: bool
) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    await resume(context, mngr)
    lines = context.folder.events.read_bytes().splitlines(keepends=True)
    pulled = next(number for number, line in enumerate(lines) if b'"pulled"' in line)
    context.writer.close()
    context.folder.events.write_bytes(b"".join(lines[:pulled]))
    context.state = SweepState().apply_all(recover_journal(context.folder.events).events)
    context.writer = JournalWriter(context.folder.events, last_seq=context.state.last_seq)
    assert only(context).state is State.PULLING
    await mngr.destroy([only(context).agent])
    await resume(context, mngr, is_relaunching=is_relaunching)
    record = only(context)
    assert (record.result, record.pulled.end, record.launch) == (Result.CLEAN, "archive", 1)
    assert len(mngr.created) == 1


async def test_a_result_that_is_there_stays(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(Pulled(test=only(context).test, result=Result.UNRESOLVED, pulled=PulledWork(end="archive")))
    await resume(context, mngr, is_relaunching=True)
    assert only(context).result is Result.UNRESOLVED
    assert mngr.created == []


async def test_what_was_handed_in_while_the_sweep_was_stopped_is_pulled(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(Launching(test=only(context).test))
    await create(context, mngr)
    context.record(launched(context))
    context.record(Stopped(test=only(context).test, reason=SWEEP_STOPPED))
    mngr.agents[only(context).agent].state = "STOPPED"
    await resume(context, mngr)
    assert only(context).result is Result.CLEAN
    assert len(mngr.created) == 1


@pytest.mark.parametrize(("reason", "again"), [(SWEEP_STOPPED, True), ("stopped by ada", False)])
async def test_a_stopped_sweep_goes_on_but_not_what_a_person_stopped(
    tmp_path: Path, mngr: QuickMngr, reason: str, again: bool
) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(Launching(test=only(context).test))
    await create(context, mngr)
    context.record(launched(context))
    context.record(Stopped(test=only(context).test, reason=reason))
    (mngr.agents[only(context).agent].state_dir / "plugin/swarm/outputs.tar.gz").unlink()
    await resume(context, mngr)
    assert (only(context).state is State.DONE) is again
    assert len(mngr.created) == (2 if again else 1)


async def test_left_over_agents_are_stopped(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(Launching(test=only(context).test))
    await create(context, mngr)
    context.record(launched(context))
    context.record(Pulled(test=only(context).test, result=Result.CLEAN))
    await resume(context, mngr)
    assert mngr.agents[only(context).agent].state == "STOPPED"


async def test_a_strangers_agent_is_neither_adopted_nor_removed(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(Launching(test=only(context).test))
    stranger = await mngr.create(CreateRequest(name=only(context).agent, source=tmp_path))
    await resume(context, mngr)
    assert only(context).result is Result.ERROR
    assert mngr.agents[only(context).agent].agent_id == stranger.agent_id


class WrongServer(FakeHost):
    """A host whose agents run on another tmux server."""

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        raise HostUnreachable("the agent x lives on another tmux server than the one that was asked", "TMUX_TMPDIR=/y")


async def test_on_the_wrong_tmux_server_nothing_is_done(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    context.record(Launching(test=only(context).test))
    context.hosts = Hosts([WrongServer(mngr)])
    with pytest.raises(SwarmError, match="lives on another tmux server"):
        await Resumer(context, RunningSweep(context)).resume([])
    assert only(context).state is State.LAUNCHING


async def test_a_full_disk_ends_the_engine_and_loses_nothing(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 30, mngr)
    runner = RunningSweep(context, tick=0.0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (context.folder.events.stat().st_size + 25_000, hard))
    try:
        with pytest.raises(ExceptionGroup) as caught:
            await runner.run(RequestHandler(context, runner))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.group_contains(JournalError, match="cannot be written", depth=1)
    assert 0 < context.state.counts["clean"] < 30
    await resume(context, mngr)
    assert context.state.counts["clean"] == 30
    events = recover_journal(context.folder.events)
    assert events.cut_lines == 0
    ended = [event.test for event in events.events if isinstance(event, Pulled)]
    assert len(ended) == len(set(ended)) == 30


async def test_a_sweep_is_continued_only_where_it_belongs(tmp_path: Path, mngr: QuickMngr) -> None:
    context = scripted_sweep(tmp_path, 1, mngr)
    without_home = dataclasses.replace(context.spec, mngr=structs.replace(context.spec.mngr, host_dir="/nowhere"))
    # Before the first agent of all there is no folder of mngr.
    context.work_folder(next(context.state.tests()).test)
    await check_continued(context.folder, without_home)
    context.record(Launched(test=next(context.state.tests()).test, agent_id="agent-1"))
    await check_continued(context.folder, context.spec)
    for change, words in (
        ({"version": 99}, "created by a newer swarm-tui"),
        ({"repository": "/nowhere"}, "does not exist any more"),
        ({"sweep": "another"}, "is a copy"),
        ({"mngr": structs.replace(context.spec.mngr, host_dir="/nowhere")}, "not on this machine"),
    ):
        with pytest.raises(UsageError, match=words):
            await check_continued(context.folder, dataclasses.replace(context.spec, **change))
