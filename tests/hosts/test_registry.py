"""The dict of hosts, which can change while hosts answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, AgentStatuses, FileSlice, HostUnreachable, ReadRequest
from swarm_tui.hosts.registry import Hosts, open_hosts
from swarm_tui.model.spec import HostSettings, MngrSettings, SweepSpec
from tests.fake_mngr import FakeMngr
from tests.hosts.fake_host import FakeHost


def spec(provider: str) -> SweepSpec:
    settings = MngrSettings(path="mngr", host_dir="/home/.mngr")
    return SweepSpec(sweep="1", repository="/r", base="a", created_at=1.0, provider=provider, mngr=settings)


def test_local_sweep_has_only_this_machine() -> None:
    (host,) = open_hosts(spec("local"))
    assert (host.name, host.host_dir, host.settings) == ("local", "/home/.mngr", None)


async def test_created_host_is_added_and_removed() -> None:
    access = HostSettings(name="s-1.docker", provider="docker", address="127.0.0.1", host_dir="/mngr")
    hosts = open_hosts(spec("docker"), [access])
    assert hosts["s-1.docker"].host_dir == "/mngr"
    await hosts.remove("s-1.docker")
    with pytest.raises(HostUnreachable, match=r"not a host of this sweep: s-1\.docker"):
        hosts["s-1.docker"]


class SlowHost(FakeHost):
    """A host with one agent that answers after `answer` is set."""

    def __init__(self, root: Path, name: str) -> None:
        self.mngr = FakeMngr(root)
        super().__init__(self.mngr, name)
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def begin(self) -> None:
        await self.mngr.create(CreateRequest(name=f"agent-{self.name}", command=("true",), source=self.mngr.root))

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        self.asked.set()
        await self.answer.wait()
        return await super().statuses()


async def slow_hosts(root: Path, *names: str) -> dict[str, SlowHost]:
    hosts = {name: SlowHost(root / name, name) for name in names}
    for host in hosts.values():
        await host.begin()
    return hosts


async def test_host_removed_during_poll_is_left_out(tmp_path: Path) -> None:
    slow = await slow_hosts(tmp_path, "a", "b")
    hosts = Hosts(slow.values())
    asking = asyncio.create_task(hosts.statuses())
    await slow["b"].asked.wait()
    await hosts.remove("b")
    slow["a"].answer.set()
    slow["b"].answer.set()
    assert list((await asking).by_name) == ["agent-a"]


async def test_host_added_during_poll_is_asked_too(tmp_path: Path) -> None:
    slow = await slow_hosts(tmp_path, "a", "b")
    hosts = Hosts([slow["a"]])
    asking = asyncio.create_task(hosts.statuses())
    await slow["a"].asked.wait()
    hosts.add(slow["b"])
    slow["a"].answer.set()
    slow["b"].answer.set()
    assert list((await asking).by_name) == ["agent-a", "agent-b"]


async def test_removed_host_hides_no_files_of_others(tmp_path: Path) -> None:
    hosts = Hosts((await slow_hosts(tmp_path, "a")).values())
    (tmp_path / "log").write_text("1\n")
    agents = [AgentAddress(name, name, name, str(tmp_path), str(tmp_path), name) for name in ("gone", "a")]
    requests = [ReadRequest(AgentFile(agent, "log"), limit=9) for agent in agents]
    assert await hosts.read_files(requests, follow=True) == [None, FileSlice(2, 0, b"1\n")]
    found = await hosts.find_files(agents, ["log"], follow=True)
    assert [[file.path for file in files] for files in found] == [[], ["log"]]
    assert await hosts.capture_screens(agents) == {"gone": None, "a": None}
    with pytest.raises(HostUnreachable, match="not a host of this sweep: gone"):
        await hosts.read_files(requests)
