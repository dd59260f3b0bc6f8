"""Reading agents from mngr's files, even if these are invalid."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.hosts.local import LocalHost
from swarm_tui.model.spec import MngrSettings
from swarm_tui.watch.agents import agents_elsewhere, agents_here


def test_agent_with_values_of_other_types_is_listed(tmp_path: Path) -> None:
    records: list[object] = [
        {"id": "agent-1", "name": "\x1b[31mred\n", "labels": {"project": "a\x1b[2Jb"}, "type": "claude"},
        {"id": "agent-2", "name": 5, "create_time": 7, "labels": ["no"], "created_branch_name": [1], "type": {"a": 1}},
        ["no record"],
    ]
    for number, record in enumerate(records, 1):
        folder = tmp_path / "agents" / f"agent-{number}"
        folder.mkdir(parents=True)
        (folder / "data.json").write_text(json.dumps(record))
    host = LocalHost(MngrSettings(path="mngr", host_dir=str(tmp_path), tmux_tmpdir=str(tmp_path)))
    statuses = asyncio.run(host.statuses())
    found = {agent.address.agent_id: agent for agent in agents_here(statuses)}
    assert statuses.unreadable == ("agent-3",)
    assert (found["agent-1"].key, found["agent-1"].traits) == ("red", ("type claude", "project ab"))
    assert (found["agent-2"].key, found["agent-2"].branch, found["agent-2"].labels) == ("5", "", ())


def test_agents_of_other_providers_include_host() -> None:
    listed = [
        {"id": "agent-1", "name": "same", "host": {"name": "localhost", "provider_name": "local"}},
        {"id": "agent-2", "name": "same", "host": {"name": "box", "provider_name": "pool"}, "state": "waiting"},
    ]
    (far,) = agents_elsewhere([AgentDetails.model_validate(agent) for agent in listed], "mngr-")
    assert (far.key, far.state, far.address.host) == ("same@box.pool", "WAITING", "box.pool")
