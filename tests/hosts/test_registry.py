"""The dict of hosts, which changes while hosts are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, AgentStatuses, FileSlice, HostUnreachable, ReadRequest
from swarm_tui.hosts.registry import Hosts, open_hosts
from swarm_tui.model.hosts import HostSettings
from swarm_tui.model.spec import MngrSettings, SweepSpec
from tests.fake_mngr import FakeMngr
from tests.hosts.fake_place import FakePlace


def spec(provider: str) -> SweepSpec:
    settings = MngrSettings(path="mngr", host_dir="/home/.mngr")
    return SweepSpec(sweep="1", repository="/r", base="a", created_at=1.0, provider=provider, mngr=settings)


def test_local_agents_are_on_this_machine() -> None:
    place = open_hosts(spec("local"))
    assert isinstance(place, LocalHost)
    assert place.host_dir_of("local") == "/home/.mngr"


async def test_created_host_is_added_and_removed() -> None:
    access = HostSettings(name="s-1.docker", provider="docker", address="127.0.0.1", host_dir="/mngr")
    place = open_hosts(spec("docker"), [access])
    assert isinstance(place, Hosts)
    assert place.host_dir_of("s-1.docker") == "/mngr"
    await place.remove("s-1.docker")
    with pytest.raises(HostUnreachable, match=r"not a host of this sweep: s-1\.docker"):
        place.host_dir_of("s-1.docker")


class SlowHost(FakePlace):
    """A host with one agent that answers after `answer` is set."""

    def __init__(self, root: Path, name: str) -> None:
        self.mngr = FakeMngr(root)
        super().__init__(self.mngr)
        self.name = name
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def begin(self) -> None:
        await self.mngr.create(CreateRequest(name=f"agent-{self.name}", command=("true",), source=self.mngr.root))

    async def agent_statuses(self) -> AgentStatuses:
        self.asked.set()
        await self.answer.wait()
        return await super().agent_statuses()


async def slow_hosts(root: Path, *names: str) -> dict[str, SlowHost]:
    hosts = {name: SlowHost(root / name, name) for name in names}
    for host in hosts.values():
        await host.begin()
    return hosts


ASKED: dict[str, Callable[[Hosts], Any]] = {
    "now": lambda hosts: hosts.agent_statuses(),
    "latest": lambda hosts: hosts.latest_statuses(),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
async def test_host_removed_during_poll_is_left_out(tmp_path: Path, ask: Callable[[Hosts], Any]) -> None:
    slow = await slow_hosts(tmp_path, "a", "b")
    hosts = Hosts(slow)
    asking = asyncio.create_task(ask(hosts))
    await slow["b"].asked.wait()
    await hosts.remove("b")
    slow["a"].answer.set()
    slow["b"].answer.set()
    assert list((await asking).by_name) == ["agent-a"]


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
async def test_host_added_during_poll_is_asked_too(tmp_path: Path, ask: Callable[[Hosts], Any]) -> None:
    slow = await slow_hosts(tmp_path, "a", "b")
    hosts = Hosts({"a": slow["a"]})
    asking = asyncio.create_task(ask(hosts))
    await slow["a"].asked.wait()
    hosts.add("b", slow["b"])
    slow["a"].answer.set()
    slow["b"].answer.set()
    assert list((await asking).by_name) == ["agent-a", "agent-b"]


async def test_removed_host_hides_no_files_of_others(tmp_path: Path) -> None:
    hosts = Hosts(await slow_hosts(tmp_path, "a"))
    (tmp_path / "log").write_text("1\n")
    agents = [AgentAddress(name, name, name, str(tmp_path), str(tmp_path), name) for name in ("gone", "a")]
    requests = [ReadRequest(AgentFile(agent, "log"), limit=9) for agent in agents]
    assert await hosts.latest_files(requests) == [None, FileSlice(2, 0, b"1\n")]
    assert [[file.path for file in files] for files in await hosts.latest_found(agents, ["log"])] == [[], ["log"]]
    assert await hosts.capture_screens(agents) == {"gone": None, "a": None}
    with pytest.raises(HostUnreachable, match="not a host of this sweep: gone"):
        await hosts.read_files(requests)
