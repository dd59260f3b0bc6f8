"""Attaching to an agent on another host, and looking at its screen and transcript there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.attach import Attacher
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.terminal import TerminalProgram
from swarm_tui.model.state import TestRecord as Record
from swarm_tui.room.agent_access import AgentAccess
from swarm_tui.transcripts.window import MemorySource
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.remote_host import RemoteHost, remote_host
from tests.room.agent_sweeps import make_sweep
from tests.transcripts.records import step
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.needs("ssh", "sshd")]

NAME = "swarm-far-one"


class Far:
    """An agent on the far host."""

    def __init__(self, mngr: IsolatedMngr, host: RemoteHost) -> None:
        self.mngr = mngr
        self.host = host
        request = CreateRequest(
            name=NAME,
            provider="pool",
            host="box",
            source=mngr.repository,
            command=(str(mngr.agent),),
            transfer="git-mirror",
            base="main",
            branch="swarm/far",
        )
        self.agent_id = asyncio.run(mngr.adapter.create(request)).agent_id


@pytest.fixture(scope="module")
def far(mngr_path: str) -> Iterator[Far]:
    with isolate_mngr(mngr_path) as mngr, remote_host(mngr) as host:
        yield Far(mngr, host)


def test_a_person_is_brought_there_and_the_deadly_keys_do_nothing(far: Far) -> None:
    attacher = Attacher(far.mngr.settings, "pool", far.mngr.repository, own={})
    approach = asyncio.run(attacher.look(NAME))
    assert not approach.is_local
    prepared = asyncio.run(attacher.prepare(approach))
    assert prepared.warning == ""
    assert far.host.tmux("show-options", "-v", "-t", f"=mngr-{NAME}:", "key-table") == "swarm"
    words = [*far.mngr.adapter.connect_command(NAME), "--no-start"]
    terminal = TerminalProgram(
        words, rows=30, columns=100, environment=far.mngr.environment | {"TERM": "xterm-256color"}
    )
    until(lambda: bool(far.host.tmux("list-clients", "-t", f"=mngr-{NAME}")), "a client on the far host")
    far.host.tmux("set-option", "-g", "assume-paste-time", "0")
    terminal.send(b"\x11\x14hello over there\r")
    until(lambda: "hello over there" in far.host.tmux("capture-pane", "-p", "-t", f"=mngr-{NAME}:agent"), "its answer")
    terminal.send(b"\x02d")
    until(lambda: terminal.read() is None, "the way back")
    terminal.close()
    assert far.host.tmux("list-sessions", "-F", "#{session_name}") == f"mngr-{NAME}"


def test_its_screen_and_its_transcript_are_seen_from_here(far: Far, tmp_path: Path) -> None:
    far.host.tmux("send-keys", "-t", f"=mngr-{NAME}:agent", "something to see", "Enter")
    sweep = make_sweep(tmp_path, ("one",), far.mngr.settings)
    spec = sweep.folder.read_spec().model_copy(update={"provider": "pool"})
    adapter = AgentAccess(spec, sweep.folder)
    record = Record("t", agent=NAME)
    folder = far.mngr.root / "far" / "mngr" / "agents" / far.agent_id / "events" / "offline" / "common_transcript"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.jsonl").write_bytes(step("written over there", event_id="1", model_name="offline"))

    async def follow() -> bytes:
        source = MemorySource()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(20):
                await adapter.follow_transcript(record, source)
        return bytes(source.content)

    until(lambda: "heard: something to see" in (asyncio.run(adapter.capture([record]))["t"] or ""), "its screen")
    assert b"written over there" in asyncio.run(follow())


def test_a_message_reaches_it_and_one_to_a_stopped_one_is_not_sent(far: Far, tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path, ("one",), far.mngr.settings)
    spec = sweep.folder.read_spec().model_copy(update={"provider": "pool"})
    adapter = AgentAccess(spec, sweep.folder)
    record = Record("t", agent=NAME)
    assert asyncio.run(adapter.send([record], "a far word")) == {"t": ""}
    until(lambda: "heard: a far word" in far.host.tmux("capture-pane", "-p", "-t", f"=mngr-{NAME}:agent"), "the word")
    asyncio.run(far.mngr.adapter.stop([NAME]))
    assert asyncio.run(adapter.send([record], "anybody"))["t"] == "its agent is stopped"
