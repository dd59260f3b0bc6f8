"""Notifications about changes of agents' states on this machine, from mngr's files and the terminals' processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from swarm_tui.hosts.local import StatusNotices
from tests.waiting import eventually


async def test_changes_of_agents_are_reported(tmp_path: Path) -> None:
    calls: list[int] = []
    changes = StatusNotices(tmp_path, lambda: calls.append(1))

    async def is_calls(what: str) -> None:
        await eventually(lambda: bool(calls), what)
        calls.clear()

    agent = tmp_path / "agents" / "agent-1"
    agent.mkdir(parents=True)
    await is_calls("a new agent")
    process = await asyncio.create_subprocess_exec("sleep", "60")
    changes.follow([agent], [process.pid])
    assert changes.is_complete
    await is_calls("what may have happened before it was followed")
    (agent / "active").touch()
    await is_calls("a turn that begins")
    (agent / "active").unlink()
    await is_calls("a turn that ends")
    (agent / "activity").mkdir()
    await is_calls("a folder of it")
    (agent / "activity" / "start").write_text("{}")
    await is_calls("that mngr has started it again")
    process.kill()
    await is_calls("the end of its process")
    await process.wait()
    changes.follow([], [])
    agent.rename(tmp_path / "agents" / "agent-2")
    await is_calls("an agent that is gone")
    changes.close()
