"""The room's way to agents beside the engine, with a real mngr."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from swarm_tui.doors.mngr_words import CreateRequest
from swarm_tui.model.state import TestRecord as Record
from swarm_tui.room.agent_door import AgentDoor
from swarm_tui.transcripts.entries import Role, parse_record
from swarm_tui.transcripts.window import MemorySource
from tests.conftest import IsolatedMngr
from tests.room.agent_sweeps import make_sweep
from tests.transcripts.records import call, result, step

pytestmark = pytest.mark.slow


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.05)


def is_true(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def ask() -> bool:
        return condition()

    return ask


async def test_a_transcript_is_followed_through_mngr_as_if_it_were_on_another_host(
    isolated_mngr: IsolatedMngr, tmp_path: Path
) -> None:
    request = CreateRequest(
        name="swarm-y-one", source=isolated_mngr.repository, command=(str(isolated_mngr.agent),), transfer="none"
    )
    created = await isolated_mngr.door.create(request)
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
    door = AgentDoor(sweep.folder.read_spec(), sweep.folder)
    source = MemorySource()
    following = asyncio.create_task(door.follow_transcript(Record("t", agent="swarm-y-one"), source))

    try:
        await until(is_true(lambda: b"files" in source.content))
        with (folder / "events.jsonl").open("ab") as file:
            file.write(step("and later", event_id="5", model_name="offline"))
        await until(is_true(lambda: b"and later" in source.content))
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        await isolated_mngr.door.destroy(["swarm-y-one"])
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
        await isolated_mngr.door.create(request)
    await isolated_mngr.door.message(["swarm-y-ended"], "quit")
    sweep = make_sweep(tmp_path, ("one",), isolated_mngr.settings)
    door = AgentDoor(sweep.folder.read_spec(), sweep.folder)

    async def has_ended() -> bool:
        return (await door.attacher.probe()).agents["swarm-y-ended"].state == "DONE"

    await until(has_ended)
    records = [Record(name, agent=f"swarm-y-{name}") for name in ("alive", "ended", "unknown")]
    outcome = await door.send(records, "one line\nand another")
    assert outcome == {
        "alive": "",
        "ended": "its agent has ended",
        "unknown": "mngr knows no such agent any more",
    }

    async def has_heard() -> bool:
        return "heard: and another" in ((await door.capture(records))["alive"] or "")

    await until(has_heard)
    screen = (await door.capture(records))["alive"] or ""
    assert screen.index("heard: one line") < screen.index("heard: and another")
    assert "one line" not in ((await door.capture(records))["ended"] or "")
    await isolated_mngr.door.destroy(["swarm-y-alive", "swarm-y-ended"])
