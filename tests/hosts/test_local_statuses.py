"""The states of agents on this machine, from mngr's records, one tmux call and one ps call; or why they are unknown."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.tmux import Pane
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress, AgentStatus, AgentStatuses, HostUnreachable
from swarm_tui.model.spec import MngrSettings
from tests.isolation import IsolatedMngr
from tests.waiting import eventually


def make_agent(host_dir: Path, name: str, **changes: Any) -> Path:
    """Create the files that mngr keeps about an agent."""
    folder = host_dir / "agents" / f"agent-{name}"
    (folder / "activity").mkdir(parents=True)
    record = {"id": f"agent-{name}", "name": name, "type": "command", "command": "/x/agent", "work_dir": "/w"}
    (folder / "data.json").write_text(json.dumps(record | changes))
    return folder


def local_host(host_dir: Path, **environment: str) -> LocalHost:
    """Return a host without a tmux server."""
    (host_dir / "t").mkdir(parents=True, exist_ok=True)
    settings = MngrSettings(path="mngr", host_dir=str(host_dir), tmux_tmpdir=str(host_dir / "t"))
    return LocalHost(settings, environment=environment)


async def test_no_agents_without_records(tmp_path: Path) -> None:
    assert await local_host(tmp_path / "home").statuses() == AgentStatuses({})


async def test_agents_without_server_are_stopped(tmp_path: Path) -> None:
    make_agent(tmp_path, "a", created_branch_name="x/a", labels={"k": "v"})
    statuses = await local_host(tmp_path).statuses()
    agent = statuses.by_name["a"]
    assert (agent.state, agent.address.session, agent.branch, agent.labels) == ("STOPPED", "mngr-a", "x/a", {"k": "v"})


async def test_wrong_tmux_server_is_unreachable(tmp_path: Path) -> None:
    folder = make_agent(tmp_path, "a")
    host = local_host(tmp_path)
    (folder / "activity" / "process").write_text(json.dumps({"pane_pid": os.getpid()}))
    with pytest.raises(HostUnreachable, match="another tmux server"):
        await host.statuses()
    long_ago = time.time() - 60
    os.utime(folder / "activity" / "process", (long_ago, long_ago))
    assert set((await host.statuses()).by_name) == {"a"}


async def test_note_about_exited_process_is_ignored(tmp_path: Path) -> None:
    folder = make_agent(tmp_path, "a")
    for note in (json.dumps({"pane_pid": 2**22 + 1}), "broken", "{}", "[]"):
        (folder / "activity" / "process").write_text(note)
        assert (await local_host(tmp_path).statuses()).by_name["a"].state == "STOPPED"


async def test_missing_ps_or_tmux_is_reported(tmp_path: Path) -> None:
    make_agent(tmp_path / "home", "a")
    for missing, other in (("ps", "tmux"), ("tmux", "ps")):
        (tmp_path / f"without-{missing}").mkdir()
        real = next(
            p for p in map(Path, ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin")) if (p / other).exists()
        )
        (tmp_path / f"without-{missing}" / other).symlink_to(real / other)
        home = tmp_path / f"home-{missing}"
        make_agent(home, "a")
        with pytest.raises(HostUnreachable) as raised:
            await local_host(home, PATH=str(tmp_path / f"without-{missing}")).statuses()
        assert raised.value.message == f"{missing} is not installed"
        assert raised.value.hint


async def test_ps_without_options_is_unreachable(tmp_path: Path) -> None:
    make_agent(tmp_path, "a")
    for number, script in enumerate(("exit 1", "echo 1 0 S init", "")):
        folder = tmp_path / f"bin{number}"
        folder.mkdir()
        (folder / "ps").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "ps").chmod(0o755)
        with pytest.raises(HostUnreachable, match="ps lists no processes"):
            await local_host(tmp_path, PATH=f"{folder}:{os.environ['PATH']}").statuses()


def with_tmux(folder: Path, script: str) -> str:
    """Return a PATH on which tmux is a script."""
    folder.mkdir()
    (folder / "tmux").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "tmux").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


async def test_pane_of_renamed_session_is_found(tmp_path: Path) -> None:
    make_agent(tmp_path, "a")
    line = f"0:{os.getpid()}:80:24:%1:%1:agent-a:renamed:5:agent:vim"
    path = with_tmux(tmp_path / "bin", f"echo '{line}'")
    assert (await local_host(tmp_path, PATH=path).statuses()).by_name["a"].state == "REPLACED"


async def test_missing_ps_waits_for_tmux(tmp_path: Path) -> None:
    make_agent(tmp_path, "a")
    with_tmux(tmp_path / "bin", f"{shutil.which('sleep')} 0.3; echo > {tmp_path}/ended")
    with pytest.raises(HostUnreachable, match="ps is not installed"):
        await local_host(tmp_path, PATH=str(tmp_path / "bin")).statuses()
    assert (tmp_path / "ended").exists()


async def test_torn_record_keeps_its_last_content(tmp_path: Path) -> None:
    folder = make_agent(tmp_path, "a")
    host = local_host(tmp_path)
    await host.statuses()
    (folder / "data.json").write_text('{"id": "agent-a", "na')
    make_agent(tmp_path, "b")
    (tmp_path / "agents" / "agent-b" / "data.json").write_text("[]")
    (tmp_path / "agents" / "agent-c").mkdir()
    statuses = await host.statuses()
    assert (set(statuses.by_name), statuses.unreadable) == ({"a"}, ("agent-b",))


async def test_record_with_other_types_is_harmless(tmp_path: Path) -> None:
    make_agent(tmp_path, "a", labels=["no", "labels"])
    deep = make_agent(tmp_path, "b")
    (deep / "data.json").write_text("[" * 100_000)
    statuses = await local_host(tmp_path).statuses()
    assert ({name: agent.labels for name, agent in statuses.by_name.items()}, statuses.unreadable) == (
        {"a": {}},
        ("agent-b",),
    )


async def test_destroyed_agent_is_missing_from_next_poll(tmp_path: Path) -> None:
    folder = make_agent(tmp_path, "a")
    host = local_host(tmp_path)
    assert (await host.statuses()) != AgentStatuses({})
    (folder / "data.json").unlink()
    assert await host.statuses() == AgentStatuses({})


@pytest.mark.slow
async def test_agent_on_other_tmux_server_fails_poll(isolated_mngr: IsolatedMngr) -> None:
    request = CreateRequest(name="elsewhere", command=(str(isolated_mngr.agent),), source=isolated_mngr.repository)
    await isolated_mngr.adapter.create(request)
    other = isolated_mngr.root / "other"
    other.mkdir()
    wrong = LocalHost(isolated_mngr.settings, environment={"TMUX_TMPDIR": str(other)})
    try:
        with pytest.raises(HostUnreachable) as raised:
            await wrong.statuses()
        assert str(other) in raised.value.hint
        right = await LocalHost(isolated_mngr.settings).statuses()
        assert right.by_name["elsewhere"].state == "WAITING"
    finally:
        await isolated_mngr.adapter.destroy(["elsewhere"])


@pytest.mark.slow
async def test_exited_agent_in_same_named_shell_reads_nothing(
    isolated_mngr: IsolatedMngr,
) -> None:
    command = ("bash", str(isolated_mngr.agent))
    await isolated_mngr.adapter.create(CreateRequest(name="a-bash", command=command, source=isolated_mngr.repository))
    host = LocalHost(isolated_mngr.settings)

    async def until_reading(is_reading: bool) -> AgentStatus:
        async def is_so() -> bool:
            return (await host.statuses()).by_name["a-bash"].reads_input is is_reading

        await eventually(is_so, "its shell to be in front or behind")
        return (await host.statuses()).by_name["a-bash"]

    try:
        await until_reading(True)
        await isolated_mngr.adapter.message(["a-bash"], "quit")
        # For mngr it goes on: what is left is a bash too.
        assert (await until_reading(False)).state == "WAITING"
    finally:
        await isolated_mngr.adapter.destroy(["a-bash"])


class OnePane:
    """A tmux server with the pane of one agent, whose program is the process that runs these tests."""

    environment: Mapping[str, str] = scrubbed_environment()

    async def list_panes(self) -> tuple[Pane, ...]:
        return (Pane("mngr-a", "agent", False, "agent", os.getpid(), 80, 24, "agent-a", True),)


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ((), "WAITING"),
        (("active",), "RUNNING"),
        (("active", "permissions_waiting"), "WAITING"),
        (("permissions_waiting",), "WAITING"),
    ],
)
async def test_active_agent_without_question_is_running(tmp_path: Path, files: tuple[str, ...], state: str) -> None:
    folder = make_agent(tmp_path, "a", work_dir="/copies/a")
    for name in files:
        (folder / name).touch()
    host = local_host(tmp_path)
    host.tmux = OnePane()  # type: ignore[assignment]
    address = AgentAddress("a", "agent-a", "mngr-a", str(folder), "/copies/a")
    assert (await host.statuses()).by_name == {
        "a": AgentStatus(address, state, agent_type="command")  # type: ignore[arg-type]
    }
