"""The room's way to agents beside the engine, with a real mngr."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.model.state import TestRecord as Record
from swarm_tui.room.agent_access import AgentAccess
from swarm_tui.transcripts.entries import Role, parse_record
from swarm_tui.transcripts.window import MemorySource
from tests.conftest import IsolatedMngr
from tests.room.agent_sweeps import make_sweep
from tests.transcripts.records import call, result, step
from tests.waiting import eventually

pytestmark = pytest.mark.slow


async def test_a_transcript_is_followed_through_mngr_as_if_it_were_on_another_host(
    isolated_mngr: IsolatedMngr, tmp_path: Path
) -> None:
    request = CreateRequest(
        name="swarm-y-one", source=isolated_mngr.repository, command=(str(isolated_mngr.agent),), transfer="none"
    )
    created = await isolated_mngr.adapter.create(request)
    folder = isolated_mngr.host_dir / "agents" / created.agent_id / "events" / "offline" / "common_transcript"
    folder.mkdir(parents=True)
    first = [
        step("Do it", "user", event_id="1"),
        step("I go", event_id="2", model_name="offline"),
        call("ls").replace(b'"s"', b'"3"'),
        result("files").replace(b'"o"', b'"4"'),
    ]
    (folder / "events.jsonl").write_bytes(b"".join(first))
    sweep = make_sweep(tmp_path, ("one",), isolated_mngr.settings)
    adapter = AgentAccess(sweep.folder.read_spec(), sweep.folder)
    source = MemorySource()
    following = asyncio.create_task(adapter.follow_transcript(Record("t", agent="swarm-y-one"), source))

    try:
        await eventually(lambda: b"files" in source.content, "the files")
        with (folder / "events.jsonl").open("ab") as file:
            file.write(step("and later", event_id="5", model_name="offline"))
        await eventually(lambda: b"and later" in source.content, "what comes later")
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        await isolated_mngr.adapter.destroy(["swarm-y-one"])
    entries = [entry for line in bytes(source.content).splitlines() for entry in parse_record(line)]
    assert [entry.role for entry in entries] == [Role.USER, Role.AGENT, Role.CALL, Role.RESULT, Role.AGENT]


async def test_a_message_is_never_typed_where_nobody_reads(isolated_mngr: IsolatedMngr, tmp_path: Path) -> None:
    for name in ("alive", "ended"):
        request = CreateRequest(
            name=f"swarm-y-{name}",
            source=isolated_mngr.repository,
            command=(str(isolated_mngr.agent),),
            transfer="none",
        )
        await isolated_mngr.adapter.create(request)
    await isolated_mngr.adapter.message(["swarm-y-ended"], "quit")
    sweep = make_sweep(tmp_path, ("one",), isolated_mngr.settings)
    adapter = AgentAccess(sweep.folder.read_spec(), sweep.folder)

    async def has_ended() -> bool:
        return (await adapter.attacher.probe()).agents["swarm-y-ended"].state == "DONE"

    await eventually(has_ended, "its end")
    records = [Record(name, agent=f"swarm-y-{name}") for name in ("alive", "ended", "unknown")]
    outcome = await adapter.send(records, "one line\nand another")
    assert outcome == {
        "alive": "",
        "ended": "its agent has ended",
        "unknown": "mngr knows no such agent any more",
    }

    async def has_heard() -> bool:
        return "heard: and another" in ((await adapter.capture(records))["alive"] or "")

    await eventually(has_heard, "the message to arrive")
    screen = (await adapter.capture(records))["alive"] or ""
    assert screen.index("heard: one line") < screen.index("heard: and another")
    assert "one line" not in ((await adapter.capture(records))["ended"] or "")
    await isolated_mngr.adapter.destroy(["swarm-y-alive", "swarm-y-ended"])
