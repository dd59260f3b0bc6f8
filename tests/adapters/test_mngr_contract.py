"""What every mngr adapter keeps to: the same tests on the fake and on the real mngr."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_messages import AgentDetails, CreateRequest
from swarm_tui.errors import AgentExists, UsageError
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentStatus, Host
from tests.fake_mngr import FakeAgent, FakeMngr
from tests.hosts.fake_host import FakeHost
from tests.isolation import IsolatedMngr
from tests.waiting import eventually

STATES = {"waits": "WAITING", "works": "RUNNING", "ended": "DONE", "stopped": "STOPPED", "other": "REPLACED"}
TOLD = {"works": "work", "ended": "quit", "other": "become sleep 600"}


@dataclass(frozen=True)
class World:
    """A adapter, and the outside ways in which its agents are seen."""

    adapter: MngrAdapter
    host: Host
    repository: Path
    agent: Path
    trap: Path
    """A file that nothing may ever make."""

    def request(self, name: str, **changes: Any) -> CreateRequest:
        wanted: dict[str, Any] = {"command": (str(self.agent), "one"), "source": self.repository, "base": "main"}
        return CreateRequest(**({"name": name, "branch": f"swarm/{name}"} | wanted | changes))

    async def status(self, name: str) -> AgentStatus:
        return (await self.host.statuses()).by_name[name]

    async def until_state(self, name: str, state: str) -> AgentStatus:
        async def is_so() -> bool:
            status = (await self.host.statuses()).by_name.get(name)
            return status is not None and status.state == state

        await eventually(is_so, f"{name} to be {state}")
        return await self.status(name)

    async def until_shown(self, name: str, text: str) -> None:
        async def is_shown() -> bool:
            return text in ((await self.host.tmux.capture([f"mngr-{name}"]))[f"mngr-{name}"] or "")

        await eventually(is_shown, f"{name} shows {text!r}")


def react_as_scripted(agent: FakeAgent, text: str) -> None:
    """Do in memory what the scripted agent does with the lines it reads."""
    for line in text.splitlines():
        match line.partition(" ")[0]:
            case "work":
                agent.state = "RUNNING"
            case "rest":
                agent.state = "WAITING"
            case "quit":
                agent.state = "DONE"
            case "become":
                agent.state = "REPLACED"
            case _:
                agent.screen.append(f"heard: {line}")


def real_world(isolated: IsolatedMngr) -> World:
    return World(
        isolated.adapter, LocalHost(isolated.settings), isolated.repository, isolated.agent, isolated.root / "trap"
    )


@pytest.fixture(scope="module", params=["fake", pytest.param("real", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a adapter with one agent in each state, named as in STATES; tests that change one make their own."""
    if request.param == "real":
        world = real_world(request.getfixturevalue("isolated_mngr"))
    else:
        root = tmp_path_factory.mktemp("fake")
        fake = FakeMngr(root, react_as_scripted)
        world = World(fake, FakeHost(fake), root, Path("/bin/scripted"), root / "trap")
    asyncio.run(settle(world))
    yield world
    asyncio.run(world.adapter.destroy(list(STATES), is_branch_deleted=True))


async def settle(world: World) -> None:
    """Create one agent in each state."""

    async def create(name: str) -> None:
        labels = {"kind": "settled", "test": f'tests/a.py::test_{name}[$(touch {world.trap})-"\\`touch {world.trap}`]'}
        await world.adapter.create(world.request(name, labels=labels))
        # While the shell starts the program it still has the terminal: the Return of a message sent now is lost.
        await world.until_state(name, "WAITING")
        await world.adapter.message([name], TOLD.get(name, f"--hello $(touch {world.trap})"))

    for pair in (("waits", "works"), ("ended", "stopped"), ("other",)):
        await asyncio.gather(*map(create, pair))
    await world.adapter.stop(["stopped"])
    for name, state in STATES.items():
        await world.until_state(name, state)


async def listed(world: World) -> dict[str, AgentDetails]:
    return {agent.name: agent for agent in (await world.adapter.list_agents()).agents}


async def test_plugins_are_listed(world: World) -> None:
    plugins = {plugin.name: plugin for plugin in await world.adapter.plugins()}
    assert plugins["command"].is_enabled


async def test_statuses_agree_with_mngr_list(world: World) -> None:
    details = await listed(world)
    for name, state in STATES.items():
        agent = await world.status(name)
        assert (name, agent.state, details[name].state) == (name, state, state)
        assert (agent.address.agent_id, agent.address.work_dir) == (details[name].id, details[name].work_dir)
        assert agent.process_id == details[name].pid
        assert agent.branch == details[name].initial_branch == f"swarm/{name}"
        assert agent.labels["test"] == details[name].labels["test"]
        assert agent.reads_input is (name in ("waits", "works"))


async def test_shell_code_in_labels_stays_text(world: World) -> None:
    hostile = f'tests/a.py::test_waits[$(touch {world.trap})-"\\`touch {world.trap}`]'
    assert (await listed(world))["waits"].labels["test"] == hostile
    await world.until_shown("waits", f"heard: --hello $(touch {world.trap})")
    assert not world.trap.exists()


async def test_used_name_differs_from_other_failures(world: World) -> None:
    with pytest.raises(AgentExists):
        await world.adapter.create(world.request("waits", branch="swarm/waits-again"))


async def test_message_reaches_running_agents_only(world: World) -> None:
    report = await world.adapter.message(["waits", "stopped", "no-such"], "second turn")
    assert report.sent == ("waits",)
    assert [(failure.agent, "not running" in failure.error) for failure in report.failed] == [("stopped", True)]
    assert report.missing == ("no-such",)
    await world.until_shown("waits", "heard: second turn")


async def test_message_with_several_lines_arrives_unchanged(world: World) -> None:
    await world.adapter.message(["waits"], "--first\n$(second) `third`\n'fourth' \"fifth\"")
    for line in ("--first", "$(second) `third`", "'fourth' \"fifth\""):
        await world.until_shown("waits", f"heard: {line}")


async def test_agent_changes_between_running_and_waiting(world: World) -> None:
    await world.adapter.message(["waits"], "work")
    await world.until_state("waits", "RUNNING")
    await world.adapter.message(["waits"], "rest")
    await world.until_state("waits", "WAITING")


async def test_exited_agent_keeps_screen(world: World) -> None:
    screens = await world.host.tmux.capture([f"mngr-{name}" for name in ("ended", "stopped", "no-such")])
    assert screens["mngr-ended"] is not None
    assert (screens["mngr-stopped"], screens["mngr-no-such"]) == (None, None)


async def test_start_stop_start_and_destroy(world: World) -> None:
    await world.adapter.create(world.request("passing", labels={"kind": "passing"}))
    assert (await world.adapter.stop(["passing", "no-such"])) == await world.adapter.stop(["passing", "no-such"])
    await world.until_state("passing", "STOPPED")
    started = await world.adapter.start(["passing", "no-such"])
    assert (started.done, started.failed, started.missing) == (("passing",), (), ("no-such",))
    agent = await world.until_state("passing", "WAITING")
    assert Path(agent.address.work_dir).is_dir()
    destroyed = await world.adapter.destroy(["passing", "no-such"])
    assert (destroyed.done, destroyed.missing) == (("passing",), ("no-such",))
    assert not Path(agent.address.work_dir).exists()
    assert not Path(agent.address.state_dir).exists()
    assert "passing" not in await listed(world)
    assert (await world.adapter.destroy(["passing"])).missing == ("passing",)


async def test_agent_gets_chosen_id_and_private_folders(world: World, tmp_path: Path) -> None:
    agent_id, folder = f"agent-{uuid.uuid4().hex}", tmp_path / "copy"
    state = Path((await world.status("waits")).address.state_dir).with_name(agent_id)
    state.mkdir(mode=0o700)
    chosen = ("--id", agent_id, "--target-path", str(folder))
    created = await world.adapter.create(world.request("chosen", extra_arguments=chosen))
    try:
        agent = (await world.status("chosen")).address
        assert (created.agent_id, agent.agent_id, agent.work_dir) == (agent_id, agent_id, str(folder))
        assert json.loads((Path(agent.state_dir) / "data.json").read_bytes())["name"] == "chosen"
        assert folder.is_dir()
        assert state.stat().st_mode & 0o777 == 0o700
    finally:
        await world.adapter.destroy(["chosen"], is_branch_deleted=True)
    assert not folder.exists()


async def test_user_setting_is_written(world: World) -> None:
    await world.adapter.set_config("headless", "true")


async def test_ambiguous_names_are_rejected(world: World) -> None:
    for name in ("-f", "--all", "a b", "a/b", "../a", "", "a;b", "a\nb", "_a", "$(a)"):
        with pytest.raises(UsageError):
            await world.adapter.stop([name])
        with pytest.raises(UsageError):
            world.adapter.connect_command(name)
    assert world.adapter.connect_command("waits")[1:] == ["connect", "waits"]
