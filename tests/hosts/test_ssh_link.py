"""The connection to a host, over pipes instead of ssh: reports of files, broken connections and invalid messages."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.hosts import link as ssh_link
from swarm_tui.hosts.link import LineProcess, SshLink
from swarm_tui.hosts.preparation import HostCheckFailed, HostPreparation
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, FileSlice, HostUnreachable, ReadRequest
from swarm_tui.hosts.ssh import SshHost
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.spec import HostSettings, MngrSettings, SweepSpec
from tests.waiting import eventually

START = "import base64,os;exec(base64.b64decode(os.fdopen(0,'rb',0,closefd=False).readline()).decode())"

REFUSED = ["sh", "-c", "echo Connection refused >&2; exit 255"]
SEND = """
import base64, sys, time
print('{"t": "hello"}')
sys.stdout.buffer.write(base64.b64decode(sys.argv[1]) + b"\\n")
sys.stdout.flush()
time.sleep(60)
"""


class Line:
    """A connection to the host program on this machine that can be cut."""

    def __init__(self, root: Path) -> None:
        self.processes: list[LineProcess] = []
        self.is_up = True
        access = HostSettings(name="box1", provider="box1", address="127.0.0.1", host_dir=str(root / "mngr"))
        self.link = SshLink(access, self._start)
        self.host = SshHost(access, MngrSettings(path="mngr", host_dir=str(root), home=str(root)), None, self.link)
        self.state = root / "mngr/agents/agent-1"
        self.state.mkdir(parents=True)
        self.agent = AgentAddress("test", "agent-1", "mngr-test", str(self.state), str(root / "copy"), "box1")

    def _start(self, access: HostSettings) -> LineProcess:
        words = (
            [sys.executable, "-u", "-c", START] if self.is_up else ["sh", "-c", "echo Connection refused >&2; exit 255"]
        )
        process = LineProcess(words)
        self.processes.append(process)
        return process

    def cut(self) -> None:
        self.is_up = False
        self.processes[-1]._process.kill()

    def append(self, content: bytes, name: str = "log") -> None:
        with (self.state / name).open("ab") as file:
            file.write(content)

    def request(self, offset: int = 0, name: str = "log", *, limit: int = 1 << 20) -> ReadRequest:
        return ReadRequest(AgentFile(self.agent, name), offset, limit)

    async def until(self, request: ReadRequest, expected: FileSlice | None) -> None:
        async def is_so() -> bool:
            return await self.host.read_files([request], follow=True) == [expected]

        await eventually(is_so, f"{expected}")


@pytest.fixture
async def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    monkeypatch.setattr(ssh_link, "_RETRY_FIRST", 0.02)
    made = Line(tmp_path)
    yield made
    await made.host.close()


async def test_appended_text_is_reported_once(line: Line) -> None:
    await line.until(line.request(), None)
    line.append(b"one\ntw")
    await line.until(line.request(), FileSlice(6, 0, b"one\ntw"))
    await line.until(line.request(4), FileSlice(6, 4, b"tw"))
    line.append(b"o\n")
    await line.until(line.request(4), FileSlice(8, 4, b"two\n"))
    await line.until(line.request(8), FileSlice(8, 8))


async def test_replaced_file_is_read_from_its_beginning(line: Line) -> None:
    line.append(b"a long one\n")
    await line.until(line.request(11), FileSlice(11, 11))
    (line.state / "log").write_bytes(b"new\n")
    await line.until(line.request(11), FileSlice(4, 0, b"new\n"))
    (line.state / "log").unlink()
    await line.until(line.request(4), None)


async def test_changed_sizes_and_whole_files_are_reported(line: Line) -> None:
    size, whole = line.request(limit=0), ReadRequest(AgentFile(line.agent, "state"), limit=100, is_whole=True)
    line.append(b"12")
    (line.state / "state").write_bytes(b"busy")
    await line.until(size, FileSlice(2))
    await line.until(whole, FileSlice(4, 0, b"busy"))
    (line.state / "state").write_bytes(b"idle")
    os.utime(line.state / "state", (5, 5))
    await line.until(whole, FileSlice(4, 0, b"idle"))


async def test_flood_of_one_agent_is_limited(line: Line) -> None:
    line.append(b"x" * 8_000_000, "flood")
    line.append(b"quiet\n")

    async def flood() -> int:
        (found, quiet) = await line.host.read_files(
            [line.request(0, "flood", limit=8_000_000), line.request()], follow=True
        )
        return len(found.content) if found is not None and quiet is not None and quiet.content else 0

    async def has_begun() -> bool:
        return await flood() > 1 << 20

    await eventually(has_begun, "the beginning of the flood, and the quiet one")
    assert await flood() <= 5 << 18
    await asyncio.sleep(0.5)
    assert await flood() <= 5 << 18, "no more is sent before it was used"


async def test_reconnected_host_resumes_at_last_position(line: Line) -> None:
    line.append(b"one\n")
    await line.until(line.request(4), FileSlice(4, 4))
    line.cut()
    await eventually(lambda: "nothing listens" in line.link.reason, "the loss")
    assert "nothing listens" in (await line.host.statuses(follow=True)).lost["box1"]
    with pytest.raises(HostUnreachable, match="box1 does not answer: nothing listens"):
        await line.host.read_files([line.request()])
    line.append(b"two\n")
    line.is_up = True
    await line.until(line.request(4), FileSlice(8, 4, b"two\n"))
    assert line.link.is_there


async def test_request_fails_when_connection_breaks(line: Line) -> None:
    await line.host.read_files([line.request()])
    asked = asyncio.ensure_future(line.link.run(["sleep", "60"]))
    await asyncio.sleep(0.1)
    line.cut()
    with pytest.raises(HostUnreachable):
        await asked


async def test_slow_request_blocks_no_others(line: Line) -> None:
    asked = asyncio.ensure_future(line.link.run(["sleep", "60"], timeout=0.3))
    line.append(b"one\n")
    await line.until(line.request(), FileSlice(4, 0, b"one\n"))
    with pytest.raises(Exception, match="did not exit on box1"):
        await asked


@pytest.mark.parametrize(
    "said",
    [
        b"Welcome to box1!",
        b"[1, 2]",
        json.dumps({"t": "news", "files": {"1": ["x"]}}).encode(),
        json.dumps({"t": "beat"}).encode(),
        json.dumps({"t": "probe", "agents": 3}).encode(),
        b"[" * 100_000,
    ],
)
async def test_invalid_message_of_host_is_harmless(line: Line, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [sys.executable, "-u", "-c", SEND, base64.b64encode(said).decode()]
    monkeypatch.setattr(line.link, "_start", lambda access: LineProcess(words))
    await line.host.read_files([line.request()], follow=True)
    await eventually(lambda: line.link.heard_at or line.link.reason, "what it says")

    async def is_lost() -> bool:
        return bool((await line.host.statuses(follow=True)).lost)

    await eventually(is_lost, "the host to count as lost")
    assert (await line.host.statuses(follow=True)).agents == {}


async def test_host_with_greeting_shell_is_rejected(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["sh", "-c", 'echo "Welcome to box1"; exec "$@"', "sh", sys.executable, "-u", "-c", START]
    monkeypatch.setattr(line.link, "_start", lambda access: LineProcess(words))
    spec = SweepSpec(
        sweep="s1", repository="/r", base="0" * 40, created_at=1.0, agent_type="command", mngr=MngrSettings(path="mngr")
    )
    preparation = HostPreparation(spec, SweepFolder(line.state), Repository.open(Path.cwd()), print)
    with pytest.raises(HostCheckFailed, match=r"the shell of box1 prints 'Welcome to box1' before every command"):
        await preparation.prepared(line.host)
    assert not (line.state.parent.parent / "swarm").exists(), "nothing was made there"


async def test_silent_host_is_lost(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_link, "SILENCE", 0.3)
    monkeypatch.setattr(ssh_link, "FIRST_ANSWER", 0.3)
    script = 'import time; print(\'{"t":"hello"}\'); time.sleep(60)'
    monkeypatch.setattr(line.link, "_start", lambda access: LineProcess([sys.executable, "-u", "-c", script]))
    await line.host.statuses(follow=True)
    await eventually(lambda: "silent" in line.link.reason, "the loss")


async def test_agents_and_load_are_reported(line: Line) -> None:
    record = {"id": "agent-1", "name": "test", "type": "command", "command": "/bin/x", "work_dir": "/c", "labels": {}}
    (line.state / "data.json").write_text(json.dumps(record))

    async def is_said() -> bool:
        statuses = await line.host.statuses(follow=True)
        return [status.address for status in statuses.agents.values()] == [
            AgentAddress("test", "agent-1", "mngr-test", str(line.state), "/c", "box1")
        ]

    await eventually(is_said, "the agent")
    report = line.host.report()
    assert report.is_there
    assert report.processors > 0


async def test_own_pause_is_not_silence_of_host(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    # The host says something each second, on a busy machine somewhat later.
    monkeypatch.setattr(ssh_link, "SILENCE", 4.0)
    assert (await line.link.run(["echo", "before"])).text == "before\n"
    # As while a person's terminal is connected to an agent's: the event loop stands still.
    time.sleep(6.0)  # noqa: ASYNC251
    assert (await line.link.run(["echo", "after"])).text == "after\n"
    assert len(line.processes) == 1, "the connection is the same"
