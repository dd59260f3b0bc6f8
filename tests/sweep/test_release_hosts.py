"""Hosts that mngr destroys for a sweep, or reports as ended, without a provider."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import AgentDetails, AgentListing, HostDetails, ListProblem, SshDetails
from swarm_tui.cli.follow import is_whole
from swarm_tui.errors import AdapterError
from swarm_tui.hosts.events import HostAbandoned, HostCreated, HostDestroyed, HostLost, HostNotReleased
from swarm_tui.hosts.lines import host_lines, text_of_host
from swarm_tui.journal.events import EngineEnded
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.spec import HostSettings
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.host_creation import LABEL_KEEPS, HostCreation, held_hosts, release_host, why_ended
from swarm_tui.sweep.host_pool import HostPool
from tests.fake_mngr import FakeMngr
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep

ACCESS = HostSettings(name="h1.docker", provider="docker", address="127.0.0.1", host_dir="/mngr", port=32768)


def keeper(host: str, state: str, port: int = 32768, *, sweep: str = "1") -> AgentDetails:
    ssh = SshDetails(user="root", host="127.0.0.1", port=port)
    labels = {LABEL_KEEPS: sweep}
    return AgentDetails(
        id=f"agent-{host}", name=f"{host}-keeper", labels=labels, host=HostDetails(name=host, state=state, ssh=ssh)
    )


class ProviderMngr(FakeMngr):
    """A mngr whose provider destroys hosts, except for `refusals` times."""

    def __init__(self, root: Path, *keepers: AgentDetails, refusals: int = 0, stays: bool = False) -> None:
        super().__init__(root)
        self.keepers = {one.host.name: one for one in keepers if one.host is not None}
        self.refusals, self.stays = refusals, stays
        self.destroyed: list[str] = []
        self.problem = ""
        self.running = self.most_at_once = 0

    async def list_agents(self, provider: str | None = "local") -> AgentListing:
        problems = (ListProblem(message=self.problem, help_text="start it"),) if self.problem else ()
        return AgentListing(agents=tuple(self.keepers.values()), errors=problems)

    async def destroy_host(self, name: str, provider: str) -> None:
        self.destroyed.append(name)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        if self.refusals:
            self.refusals -= 1
            raise AdapterError("mngr destroy failed: 404 Client Error: No such container")
        if name in self.keepers and not self.stays:
            self.keepers[name] = keeper(name, "DESTROYED")


async def test_released_host_is_checked_and_retried(tmp_path: Path) -> None:
    mngr = ProviderMngr(tmp_path, keeper("h1", "RUNNING"), keeper("h2", "RUNNING"), refusals=1)
    await release_host(mngr, "h1.docker", pauses=(0.0,))
    assert mngr.destroyed == ["h1", "h1"]
    stubborn = ProviderMngr(tmp_path, keeper("h1", "RUNNING"), stays=True)
    with pytest.raises(AdapterError, match=r"h1\.docker could not be destroyed: mngr still lists it") as raised:
        await release_host(stubborn, "h1.docker", pauses=(0.0,))
    assert raised.value.hint == "run `mngr destroy --force @h1.docker`"


async def test_provider_without_answer_releases_nothing(tmp_path: Path) -> None:
    mngr = ProviderMngr(tmp_path)
    mngr.problem = "Provider 'docker' is not available"
    with pytest.raises(AdapterError, match="Provider 'docker' is not available"):
        await release_host(mngr, "h1.docker", pauses=())


async def test_destroyed_host_is_not_held(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"), provider="docker", new_host_dir="/mngr")
    own = context.spec.sweep
    keepers = [keeper("h1", "DESTROYED", sweep=own), keeper("h2", "CRASHED", sweep=own), keeper("h3", "RUNNING")]
    assert await held_hosts(ProviderMngr(tmp_path, *keepers), context.spec) == ["h2.docker"]


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        (keeper("h1", "RUNNING"), ""),
        (keeper("h1", "UNKNOWN"), ""),
        (keeper("h1", "PAUSED"), ""),
        (keeper("h1", "CRASHED"), "mngr reports it as crashed"),
        (keeper("h1", "STOPPED"), "mngr reports it as stopped"),
        (keeper("h1", "RUNNING", port=40000), "it was restarted, which ends its agents"),
        (None, "mngr does not list it any more"),
    ],
)
def test_lost_host_ends_if_mngr_says_so(listed: AgentDetails | None, reason: str) -> None:
    assert why_ended(listed, ACCESS) == reason


def with_hosts(tmp_path: Path, mngr: FakeMngr, names: Sequence[str]) -> SweepContext:
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"), provider="docker", new_host_dir="/mngr")
    context.mngr = mngr
    for name in names:
        access = {"name": name, "provider": "docker", "address": "127.0.0.1", "host_dir": "/mngr", "port": 32768}
        context.record(HostCreated(host=name, keeper=f"agent-{name.partition('.')[0]}", access=access))
    return context


async def test_host_that_stays_is_an_error(tmp_path: Path) -> None:
    mngr = ProviderMngr(tmp_path, keeper("h1", "RUNNING"), keeper("h2", "RUNNING"), stays=True)
    context = with_hosts(tmp_path, mngr, ["h1.docker"])
    await HostCreation(context, HostPool(is_growing=True), release_pauses=(0.0,)).end()
    (line,) = host_lines(context.spec, context.state.hosts, ())
    assert line.word == "not released"
    assert "run `mngr destroy --force @h1.docker`" in text_of_host(line, 0.0)
    assert [entry.level for entry in context.state.log if "may still exist" in entry.text] == ["error"]
    context.record(EngineEnded(why="finished"))
    context.writer.sync()
    assert not is_whole(open_sweep(context.folder))

    # The next engine tries again.
    mngr.stays = False
    await HostCreation(context, HostPool(is_growing=True), release_pauses=()).take_up()
    assert context.state.hosts["h1.docker"].stage == "ended"


async def test_lost_hosts_are_released_one_at_a_time(tmp_path: Path) -> None:
    names = ["h1.docker", "h2.docker", "h3.docker"]
    mngr = ProviderMngr(tmp_path, *(keeper(name.partition(".")[0], "CRASHED") for name in names))
    context = with_hosts(tmp_path, mngr, names)
    hosts = HostCreation(context, HostPool(is_growing=True))
    for name in names:
        context.record(HostAbandoned(host=name, reason="mngr reports it as crashed"))
    async with asyncio.TaskGroup() as group:
        hosts.work(group, 0, {})
    assert (sorted(mngr.destroyed), mngr.most_at_once) == (["h1", "h2", "h3"], 1)
    assert {host.stage for host in context.state.hosts.values()} == {"ended"}


async def test_crashed_host_is_given_up_at_once(tmp_path: Path) -> None:
    mngr = ProviderMngr(tmp_path, keeper("h1", "RUNNING"), keeper("h2", "CRASHED"))
    context = with_hosts(tmp_path, mngr, ["h1.docker", "h2.docker"])
    hosts = HostCreation(context, HostPool(is_growing=True))
    for name in ("h1.docker", "h2.docker"):
        context.record(HostLost(host=name, reason="the connection was closed"))
        await hosts.inquire(name)
    assert [context.state.hosts[name].is_gone for name in ("h1.docker", "h2.docker")] == [False, True]
    words = {line.name: line.word for line in host_lines(context.spec, context.state.hosts, ())}
    assert words == {"h1.docker": "silent", "h2.docker": "lost"}


def test_failed_release_keeps_reason_and_command(tmp_path: Path) -> None:
    context = with_hosts(tmp_path, ProviderMngr(tmp_path), ["h1.docker"])
    context.record(HostNotReleased(host="h1.docker", reason="404", command="mngr destroy --force @h1.docker"))
    assert context.state.hosts["h1.docker"].reason == "404; run `mngr destroy --force @h1.docker`"
    assert context.state.hosts["h1.docker"].access is None
    context.record(HostDestroyed(host="h1.docker"))
    assert context.state.hosts["h1.docker"].stage == "ended"
