"""Access to agents without the engine, with a real mngr."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.journal.record import TestRecord as Record
from swarm_tui.room.agent_access import AgentAccess
from tests.isolation import IsolatedMngr
from tests.room.agent_sweeps import make_sweep
from tests.waiting import eventually

pytestmark = pytest.mark.slow


async def test_message_is_not_typed_into_finished_agent(isolated_mngr: IsolatedMngr, tmp_path: Path) -> None:
    ids = {}
    for name in ("alive", "exited"):
        request = CreateRequest(
            name=f"swarm-y-{name}",
            source=isolated_mngr.repository,
            command=(str(isolated_mngr.agent),),
            transfer="none",
        )
        ids[name] = (await isolated_mngr.adapter.create(request)).agent_id
    await isolated_mngr.adapter.message(["swarm-y-exited"], "quit")
    sweep = make_sweep(tmp_path, ("one",), isolated_mngr.settings)
    adapter = AgentAccess(sweep.folder.read_spec(), sweep.folder)

    async def has_exited() -> bool:
        return (await adapter.hosts.statuses()).by_name["swarm-y-exited"].state == "DONE"

    await eventually(has_exited, "the agent to exit")
    records = [
        Record(name, agent=f"swarm-y-{name}", agent_id=ids.get(name, "")) for name in ("alive", "exited", "unknown")
    ]
    outcome = await adapter.send(records, "one line\nand another")
    assert outcome == {
        "alive": "",
        "exited": "the agent has exited",
        "unknown": "mngr does not list this agent any more",
    }

    async def has_heard() -> bool:
        return "heard: and another" in ((await adapter.capture(records))["alive"] or "")

    await eventually(has_heard, "the message to arrive")
    screen = (await adapter.capture(records))["alive"] or ""
    assert screen.index("heard: one line") < screen.index("heard: and another")
    assert "one line" not in ((await adapter.capture(records))["exited"] or "")
    await isolated_mngr.adapter.destroy(["swarm-y-alive", "swarm-y-exited"])
