"""What becomes of tests whose host is lost, comes back, or is given up: sweeps over hosts in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import ActionReport, Created, CreateRequest
from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.hosts.events import HostAbandoned, HostLost, HostRecovered
from swarm_tui.hosts.protocol import AgentStatuses, FileSlice, HostReport, HostUnreachable, ReadRequest
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.events import Launched
from swarm_tui.journal.recover import recover_journal
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import HostSettings
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.run import RunningSweep
from tests.fake_mngr import FakeMngr
from tests.hosts.fake_host import FakeHost
from tests.sweep.scripted_sweep import QuickMngr, QuietHost, packed_outcome, scripted_sweep
from tests.waiting import PATIENCE, eventually


class RemoteHost(QuietHost):
    """Another host, which can be lost."""

    def __init__(self, mngr: FakeMngr, name: str) -> None:
        super().__init__(mngr, name)
        self.is_there = True

    def report(self) -> HostReport:
        reason = "" if self.is_there else "connection refused"
        return HostReport(self.name, self.is_there, reason, load=0.5, processors=2)

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        self._check()
        return await super().statuses()

    async def read_files(self, requests: Sequence[ReadRequest], *, follow: bool = False) -> list[FileSlice | None]:
        if follow and not self.is_there:
            return [None for _ in requests]
        self._check()
        return await super().read_files(requests, follow=follow)

    def _check(self) -> None:
        if not self.is_there:
            raise HostUnreachable(f"{self.name} does not answer: connection refused")


class ManyMngr(QuickMngr):
    """A mngr with agents on several hosts, told apart by the folders that they get; some work on without an end."""

    def __init__(self, root: Path, hosts: Sequence[str], endless: Sequence[str] = ()) -> None:
        super().__init__(root)
        self.of_host = {host: QuickMngr(root / host) for host in hosts}
        self._endless = endless

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        target = Path(request.extra_arguments[request.extra_arguments.index("--target-path") + 1])
        host = next(host for host, mngr in self.of_host.items() if target.is_relative_to(mngr.root))
        created = await self.of_host[host].create(request, timeout)
        if host in self._endless:
            (self.of_host[host].agents[request.name].state_dir / ARCHIVE_PATH).unlink()
        return created

    async def stop(self, names: Sequence[str]) -> ActionReport:
        host = names[0].partition("@")[2].partition(".")[0]
        return await self.of_host[host].stop([name.partition("@")[0] for name in names])


class HostSweep:
    """A sweep over hosts, and an engine that works on it."""

    def __init__(self, root: Path, hosts: Sequence[str], *, tests: int, endless: Sequence[str] = (), **wishes: object):
        self.mngr = ManyMngr(root / "mngr", hosts, endless)
        access = [HostSettings(name=host, provider=host, address="127.0.0.1", host_dir="/") for host in hosts]
        self.context: SweepContext = scripted_sweep(root, tests, self.mngr, access=access, **{"per_host": 2} | wishes)
        self.remote = {host: RemoteHost(mngr, host) for host, mngr in self.mngr.of_host.items()}
        self.context.hosts = Hosts([FakeHost(self.mngr), *self.remote.values()])
        self.runner = RunningSweep(self.context, tick=0.01)

    async def run(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.runner.run(RequestHandler(self.context, self.runner))

    def events_of(self, *kinds: type) -> list[object]:
        return [event for event in recover_journal(self.context.folder.events).events if isinstance(event, kinds)]

    @property
    def hosts(self) -> Counter[str]:
        return Counter(record.host for record in self.context.state.tests())

    def hand_in(self, host: str) -> None:
        for agent in self.mngr.of_host[host].agents.values():
            (agent.state_dir / ARCHIVE_PATH).write_bytes(packed_outcome())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swarm_tui.sweep.run.STATUS_INTERVAL", 0.02)


async def test_tests_are_spread_over_all_hosts(tmp_path: Path) -> None:
    sweep = HostSweep(tmp_path, ["box1", "box2", "box3"], tests=12, slots=6)
    await sweep.run()
    assert {record.result for record in sweep.context.state.tests()} == {Result.CLEAN}
    assert min(sweep.hosts[host] for host in ("box1", "box2", "box3")) >= 2
    stopped = [agent.state for mngr in sweep.mngr.of_host.values() for agent in mngr.agents.values()]
    assert stopped == ["STOPPED"] * 12


async def test_nothing_is_concluded_of_a_lost_host_and_what_was_handed_in_there_is_had_later(tmp_path: Path) -> None:
    sweep = HostSweep(tmp_path, ["box1"], tests=2, endless=["box1"])
    state, box = sweep.context.state, sweep.remote["box1"]
    running = asyncio.ensure_future(sweep.run())
    await eventually(lambda: state.counts[State.RUNNING.value] == 2, "two agents")
    box.is_there = False
    await eventually(lambda: sweep.events_of(HostLost), "the loss of the host")
    assert all(record.stale_since is not None for record in state.tests())
    sweep.hand_in("box1")
    await asyncio.sleep(0.1)
    assert not any(record.is_finished for record in state.tests())
    box.is_there = True
    await running
    assert {record.result for record in state.tests()} == {Result.CLEAN}
    assert len(sweep.events_of(HostRecovered)) == 1
    assert len(sweep.events_of(Launched)) == 2, "no test was launched twice"


async def test_the_tests_of_a_host_that_is_given_up_go_to_another_and_its_agents_are_stopped_when_it_is_back(
    tmp_path: Path,
) -> None:
    wishes = {"host_timeout": 0.1, "slots": 4}
    sweep = HostSweep(tmp_path, ["box1", "box2"], tests=4, endless=["box1", "box2"], **wishes)
    state = sweep.context.state
    running = asyncio.ensure_future(sweep.run())
    await eventually(lambda: state.counts[State.RUNNING.value] == 4, "four agents")
    sweep.remote["box1"].is_there = False
    await eventually(lambda: sweep.events_of(HostAbandoned), "the host to be given up")
    sweep.hand_in("box2")
    await eventually(lambda: len(sweep.mngr.of_host["box2"].agents) == 4, "the tests on the other host")
    sweep.remote["box1"].is_there = True
    left = sweep.mngr.of_host["box1"].agents.values()
    await eventually(lambda: {agent.state for agent in left} == {"STOPPED"}, "the end of those that were replaced")
    sweep.hand_in("box2")
    await running
    assert {record.result for record in state.tests()} == {Result.CLEAN}
    assert sweep.hosts == {"box2": 4}


async def test_an_agent_that_worked_on_while_its_test_was_queued_again_is_taken_up_again(tmp_path: Path) -> None:
    sweep = HostSweep(tmp_path, ["box1", "box2"], tests=2, endless=["box1", "box2"], host_timeout=0.1, per_host=1)
    state = sweep.context.state
    running = asyncio.ensure_future(sweep.run())
    await eventually(lambda: state.counts[State.RUNNING.value] == 2, "two agents")
    sweep.remote["box1"].is_there = False
    # The other host is full, so that the test waits.
    await eventually(lambda: state.counts[State.QUEUED.value] == 1, "the test to be queued again")
    sweep.hand_in("box1")
    sweep.remote["box1"].is_there = True
    await eventually(lambda: state.counts["clean"] == 1, "what was handed in meanwhile")
    sweep.hand_in("box2")
    await running
    assert [len(mngr.agents) for mngr in sweep.mngr.of_host.values()] == [1, 1], "no test was launched twice"


async def test_without_any_host_left_tests_fail_with_that_reason(tmp_path: Path) -> None:
    sweep = HostSweep(tmp_path, ["box1"], tests=3, endless=["box1"], host_timeout=0.1)
    running = asyncio.ensure_future(sweep.run())
    await eventually(lambda: sweep.context.state.counts[State.RUNNING.value] == 2, "two agents")
    sweep.remote["box1"].is_there = False
    await running
    records = list(sweep.context.state.tests())
    assert {record.result for record in records} == {Result.ERROR}
    assert all("box1" in record.reason and "answer" in record.reason for record in records)
