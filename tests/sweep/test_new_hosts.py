"""Hosts that are made for a sweep by a provider of the real mngr, and given back."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_settings import user_settings
from swarm_tui.adapters.ssh import run_script, target_of
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.hosts.creation import check_provider, check_provider_options
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.snapshot import read_snapshot, write_snapshot
from swarm_tui.model.options import RunOptions
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.host_creation import IDLE_TIMEOUT, LABEL_KEEPS, HostCreation, held_hosts, keeper_name
from swarm_tui.sweep.host_pool import HostPool
from tests.isolation import IsolatedMngr
from tests.loopback import loopback_hosts
from tests.loopback_provider import LoopbackPool, loopback_pool
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.needs("ssh", "sshd", "ssh-keygen")]

FIRST = "swarm-20261118-061200-1"


@pytest.fixture
def machines(isolated_mngr: IsolatedMngr) -> Iterator[LoopbackPool]:
    asyncio.run(isolated_mngr.adapter.plugins())
    settings = user_settings(isolated_mngr.host_dir)
    assert settings is not None
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with loopback_hosts(1, path=path) as hosts, loopback_pool(isolated_mngr, hosts, settings) as machines:
        yield machines


def context_of(tmp_path: Path, mngr: IsolatedMngr) -> SweepContext:
    wishes: dict[str, object] = {
        "new_host_dir": "/mngr",
        "provider": "loopback",
        "per_host": 2,
        "build_arguments": ("cpu=2",),
        "start_arguments": ("--cpus=2",),
    }
    context = scripted_sweep(tmp_path, 3, QuickMngr(tmp_path / "mngr"), **wishes)
    context.mngr = mngr.adapter
    return context


async def test_a_host_is_made_held_and_given_back(
    tmp_path: Path, isolated_mngr: IsolatedMngr, machines: LoopbackPool
) -> None:
    context = context_of(tmp_path, isolated_mngr)
    new = await check_provider(isolated_mngr.adapter, "loopback", isolated_mngr.host_dir, None)
    assert (new.backend, new.has_image) == ("loopback", False)
    context.spec = dataclasses.replace(context.spec, new_host_dir=new.host_dir)
    pool = HostPool(is_growing=True)
    hosts = HostCreation(context, pool)
    async with asyncio.TaskGroup() as group:
        hosts.work(group, 2, {})
        name = f"{FIRST}.loopback"
        assert context.state.hosts[name].stage == "making", "it is written down before mngr is asked"
        hosts.work(group, 2, {})
        await eventually(lambda: not hosts.is_busy, "the host")
    assert hosts.names() == [name], hosts.reason
    assert (machines.made, machines.free) == ([FIRST], [])
    asked = machines.asked(FIRST)
    assert (asked["build"], asked["start"]) == (["cpu=2"], ["--cpus=2"])
    assert asked["idle"]["idle_mode"] == "RUN"
    assert asked["idle"]["idle_timeout_seconds"] == IDLE_TIMEOUT
    assert asked["tags"] == {LABEL_KEEPS: context.spec.sweep}
    access = context.state.hosts[name].access
    assert access is not None
    assert pool.hosts == (name,)
    screen = await run_script(target_of(access), "tmux list-sessions -F '#{session_name}'")
    assert screen.text.strip() == f"mngr-{keeper_name(name)}"

    # A snapshot keeps what is known of it, and the next engine goes on with it.
    folder: SweepFolder = context.folder
    write_snapshot(folder.snapshot, folder.events, folder.events.stat().st_size, context.state)
    assert read_snapshot(folder.snapshot, folder.events)[0].hosts[name].access == access
    assert await held_hosts(isolated_mngr.adapter, context.spec) == [name], "as `clean` finds it"
    later = HostPool(is_growing=True)
    again = HostCreation(context, later)
    await again.take_up()
    assert later.hosts == (name,)

    await again.end()
    assert not later.hosts
    assert await held_hosts(isolated_mngr.adapter, context.spec) == []
    assert (machines.made, context.state.hosts[name].stage, again.names()) == ([], "ended", [])
    assert context.state.hosts[name].access is None

    async def has_no_server() -> bool:
        left = await run_script(target_of(access), "tmux list-sessions 2>&1 || true")
        return "no server" in left.text or "error connecting" in left.text

    await eventually(has_no_server, "the end of its tmux")


async def test_a_provider_that_makes_no_host_is_not_asked_for_ever(
    tmp_path: Path, isolated_mngr: IsolatedMngr, machines: LoopbackPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (machines.folder / "free").iterdir():
        path.unlink()
    monkeypatch.setattr("swarm_tui.sweep.host_creation.PAUSE_AFTER_REFUSAL", 0.0)
    monkeypatch.setattr("swarm_tui.sweep.host_creation.REFUSALS", 2)
    context = context_of(tmp_path, isolated_mngr)
    hosts = HostCreation(context, HostPool(is_growing=True))
    for _ in range(2):
        async with asyncio.TaskGroup() as group:
            hosts.work(group, 1, {})
    assert "no machine is left" in hosts.why_hopeless
    assert {host.stage for host in context.state.hosts.values()} == {"ended"}
    async with asyncio.TaskGroup() as group:
        hosts.work(group, 1, {})
        assert not hosts.is_busy


async def test_a_host_whose_making_was_interrupted_is_destroyed(
    tmp_path: Path, isolated_mngr: IsolatedMngr, machines: LoopbackPool
) -> None:
    context = context_of(tmp_path, isolated_mngr)
    hosts = HostCreation(context, HostPool(is_growing=True))
    async with asyncio.TaskGroup() as group:
        hosts.work(group, 1, {})
        await eventually(lambda: machines.made, "the host")
        for task in list(hosts._busy.values()):
            task.cancel()
    assert context.state.hosts[f"{FIRST}.loopback"].stage == "making"
    await HostCreation(context, HostPool(is_growing=True)).take_up()
    assert context.state.hosts[f"{FIRST}.loopback"].stage == "ended"
    assert machines.made == []


async def test_a_provider_that_cannot_be_used_is_one_sentence(isolated_mngr: IsolatedMngr, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown provider: nosuch.*imbue-mngr-nosuch"):
        await check_provider(isolated_mngr.adapter, "nosuch", isolated_mngr.host_dir, None)
    project = tmp_path / ".mngr" / "settings.toml"
    project.parent.mkdir()
    project.write_text('[providers.box1]\nbackend = "ssh"\n')
    with pytest.raises(UsageError, match="use its hosts with --host"):
        await check_provider(isolated_mngr.adapter, "box1", isolated_mngr.host_dir, tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RunOptions(provider="-x"), "invalid name of a provider: '-x'"),
        (RunOptions(provider="docker", hosts=("box1",)), "conflicts with --provider"),
        (RunOptions(provider="docker", transfer="worktree"), "--transfer worktree"),
        (RunOptions(build_arguments=("cpu=2",)), "--build-arg requires hosts that are created"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: RunOptions, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check_provider_options(options)


async def test_without_daemon_the_provider_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unusable:
        async def plugins(self) -> tuple[object, ...]:
            from swarm_tui.adapters.mngr_messages import Plugin

            return (Plugin(name="docker", enabled=True),)

        async def list_agents(self, provider: str | None = None) -> object:
            from swarm_tui.adapters.mngr_messages import AgentListing, ListProblem

            problem = ListProblem(message="Provider 'docker' is not available", help_text="start its daemon")
            return AgentListing(errors=(problem,))

    with pytest.raises(AdapterError, match=r"Provider 'docker' is not available \(start its daemon\)"):
        await check_provider(Unusable(), "docker", Path("/nowhere"), None)  # type: ignore[arg-type]
