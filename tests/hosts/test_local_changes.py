"""What may change the status of an agent here is told: mngr's files, and the processes of its terminal."""

from __future__ import annotations

import asyncio
from pathlib import Path

from swarm_tui.hosts.local import StatusNotices
from tests.waiting import eventually


async def test_changes_of_agents_are_reported(tmp_path: Path) -> None:
    told: list[int] = []
    changes = StatusNotices(tmp_path, lambda: told.append(1))

    async def is_told(what: str) -> None:
        await eventually(lambda: bool(told), what)
        told.clear()

    agent = tmp_path / "agents" / "agent-1"
    agent.mkdir(parents=True)
    await is_told("a new agent")
    process = await asyncio.create_subprocess_exec("sleep", "60")
    changes.follow([agent], [process.pid])
    assert changes.is_complete
    await is_told("what may have happened before it was followed")
    (agent / "active").touch()
    await is_told("a turn that begins")
    (agent / "active").unlink()
    await is_told("a turn that ends")
    (agent / "activity").mkdir()
    await is_told("a folder of it")
    (agent / "activity" / "start").write_text("{}")
    await is_told("that mngr has started it again")
    process.kill()
    await is_told("the end of its process")
    await process.wait()
    changes.follow([], [])
    agent.rename(tmp_path / "agents" / "agent-2")
    await is_told("an agent that is gone")
    changes.close()
