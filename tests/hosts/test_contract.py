"""The contract of all hosts."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.errors import AdapterError, SwarmError
from swarm_tui.hosts.copies import fetch_commits, uncommitted_patch, uncommitted_paths
from swarm_tui.hosts.link import SshLink
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, FileSlice, FoundFile, Host, ReadRequest
from swarm_tui.hosts.ssh import SshHost
from swarm_tui.model.spec import HostSettings, MngrSettings
from swarm_tui.sweep.pull import fetch_agent_commits
from tests.fake_mngr import FakeMngr
from tests.git_project import GitProject
from tests.hosts.fake_host import FakeHost
from tests.isolation import IsolatedMngr
from tests.loopback import LoopbackHost, loopback_hosts
from tests.waiting import eventually, until

BRANCH: Final = "swarm/1/test"
REF: Final = "refs/swarm/1/test"


def make_local(root: Path) -> Host:
    return LocalHost(MngrSettings(path="mngr", host_dir=str(root), home=str(root)))


def make_fake(root: Path) -> Host:
    return FakeHost(FakeMngr(root))


def make_ssh(access: HostSettings, root: Path) -> Host:
    access = structs.replace(access, host_dir=str(root))
    settings = MngrSettings(path="mngr", host_dir=str(root), home=str(root))
    return SshHost(access, settings, None, SshLink(access))


MAKERS: Final[dict[str, Callable[[Path], Host]]] = {"local": make_local, "fake": make_fake}


@pytest.fixture(scope="module")
def ssh_host() -> Iterator[LoopbackHost]:
    with loopback_hosts() as (host,):
        yield host


@pytest.fixture(params=[*MAKERS, pytest.param("ssh", marks=pytest.mark.needs("sshd"))])
def made(request: pytest.FixtureRequest) -> Callable[[Path], Host]:
    """Return a function that creates a host with this folder of mngr."""
    if request.param in MAKERS:
        return MAKERS[request.param]
    return partial(make_ssh, request.getfixturevalue("ssh_host").access)


@dataclass(frozen=True)
class Inhabited:
    """A host with an agent, and the folders of the agent."""

    host: Host
    agent: AgentAddress
    state: Path
    copy: GitProject
    base: str

    def write(self, path: str, content: bytes) -> AgentFile:
        (self.state / path).parent.mkdir(parents=True, exist_ok=True)
        (self.state / path).write_bytes(content)
        return AgentFile(self.agent, path)

    async def read(self, *requests: ReadRequest) -> list[FileSlice | None]:
        return await self.host.read_files(requests)


@pytest.fixture
def home(made: Callable[[Path], Host], tmp_path: Path) -> Inhabited:
    host = made(tmp_path / "mngr")
    state, copy = tmp_path / "mngr/agents/agent-1", GitProject(tmp_path / "mngr/copies/test-1")
    state.mkdir(parents=True)
    base = copy.commit("Begin", {"a": "1\n"})
    copy.git("checkout", "--quiet", "-b", BRANCH)
    agent = AgentAddress("test", "agent-1", "mngr-test", str(state), str(copy.root), host.name)
    return Inhabited(host, agent, state, copy, base)


def test_host_has_folder_of_mngr(made: Callable[[Path], Host], tmp_path: Path) -> None:
    assert made(tmp_path / "mngr").host_dir == str(tmp_path / "mngr")


async def test_new_file_replaces_no_other(home: Inhabited) -> None:
    file = AgentFile(home.agent, "plugin/swarm/answers/1.json")
    await home.host.write_file(file.full_path, b"yes", is_new=True)
    with pytest.raises(FileExistsError):
        await home.host.write_file(file.full_path, b"no", is_new=True)
    assert await home.read(ReadRequest(file, limit=10)) == [FileSlice(3, 0, b"yes")]
    assert [path.name for path in (home.state / "plugin/swarm/answers").iterdir()] == ["1.json"]


async def test_files_are_read_from_their_offsets(home: Inhabited) -> None:
    log, other = home.write("log", b"0123456789"), home.write("plugin/other", b"")
    missing = AgentFile(home.agent, "missing")
    assert await home.read(
        ReadRequest(log, 0, 100),
        ReadRequest(log, 4, 3),
        ReadRequest(log, 10, 100),
        ReadRequest(log),
        ReadRequest(other, 0, 5),
        ReadRequest(missing, 0, 5),
        ReadRequest(AgentFile(home.agent, "a", "work"), 0, 5),
    ) == [
        FileSlice(10, 0, b"0123456789"),
        FileSlice(10, 4, b"456"),
        FileSlice(10, 10),
        FileSlice(10),
        FileSlice(0),
        None,
        FileSlice(2, 0, b"1\n"),
    ]
    assert await home.read() == []


async def test_shorter_file_is_read_from_its_beginning(home: Inhabited) -> None:
    assert await home.read(ReadRequest(home.write("log", b"new"), 10, 100)) == [FileSlice(3, 0, b"new")]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
async def test_folder_or_pipe_is_not_read(home: Inhabited, tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(home.state / "log")
    file = AgentFile(home.agent, "log")
    assert await home.read(ReadRequest(file, 0, 10), ReadRequest(file)) == [None, None]
    assert await home.host.find_files([home.agent], ["log", "l*"]) == [[]]
    assert not await home.host.fetch_file(file.full_path, tmp_path / "copy", limit=10)
    assert not (tmp_path / "copy").exists()


async def test_patterns_match_files_but_not_links(home: Inhabited) -> None:
    for path in ("events/b/log", "events/a/log", "events/a/more/log", "log"):
        home.write(path, b"12")
    (home.state / "events/a/link").symlink_to(home.state / "log")
    other = replace(home.agent, agent_id="agent-2", state_dir=str(home.state / "no-such"))
    found = await home.host.find_files([home.agent, other], ["log", "events/*/log", "events/a/l*", "none/*"])
    assert [[file.path for file in files] for files in found] == [
        ["log", "events/a/log", "events/b/log", "events/a/log"],
        [],
    ]
    os.utime(home.state / "log", (5, 5))
    assert await home.host.find_files([home.agent], ["log"]) == [[FoundFile("log", 2, 5.0)]]


async def test_fetched_file_is_limited_and_replaces_target(home: Inhabited, tmp_path: Path) -> None:
    large = home.write("large", b"x" * 3_000_000)
    target = tmp_path / "target"
    target.write_bytes(b"old")
    assert not await home.host.fetch_file(str(home.state / "missing"), target, limit=5)
    assert target.read_bytes() == b"old"
    assert await home.host.fetch_file(large.full_path, target, limit=2_500_000)
    assert target.read_bytes() == b"x" * 2_500_000
    assert await home.host.fetch_file(home.write("empty", b"").full_path, target, limit=5)
    assert target.read_bytes() == b""
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["target"]
    with pytest.raises(OSError, match="No such file or directory"):
        await home.host.fetch_file(large.full_path, tmp_path / "no-folder" / "target", limit=5)


async def test_command_runs_in_folder_with_input(home: Inhabited) -> None:
    finished = await home.host.run(
        ["sh", "-c", "pwd; cat; echo no >&2; exit 3"], cwd=str(home.copy.root), stdin=b"in\n"
    )
    assert (finished.code, finished.text, finished.error_text) == (3, f"{home.copy.root}\nin\n", "no\n")
    with pytest.raises(AdapterError, match="no-such-program"):
        await home.host.run(["no-such-program"])


async def test_commits_are_fetched_as_ref(home: Inhabited, tmp_path: Path) -> None:
    home.copy.git("clone", "--quiet", "--branch", "main", str(home.copy.root), str(tmp_path / "user"))
    repository = Repository.open(tmp_path / "user")
    wanted = {"base": home.base, "ref": REF}
    assert await fetch_commits(home.host, home.agent.work_dir, repository, tip=home.base, **wanted) == ""
    tip = home.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    assert await fetch_commits(home.host, home.agent.work_dir, repository, tip=tip, **wanted) == tip
    assert repository.ref(REF) == tip
    with pytest.raises(SwarmError):
        await fetch_commits(home.host, home.agent.work_dir, repository, tip="1" * 40, **wanted)
    gone = str(tmp_path / "gone")
    assert await fetch_commits(home.host, gone, repository, tip=tip, **wanted) == ""


async def test_commits_on_other_branches_are_fetched(home: Inhabited, tmp_path: Path) -> None:
    home.copy.git("clone", "--quiet", "--branch", "main", str(home.copy.root), str(tmp_path / "user"))
    repository = Repository.open(tmp_path / "user")
    home.copy.git("checkout", "--quiet", "--detach")
    tip = home.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    names = {"branch": BRANCH, "ref": REF, "held": "refs/swarm-held/1/test"}
    fetched = await fetch_agent_commits(repository, home.host, home.agent, base=home.base, bundle=None, **names)
    (left,) = fetched.elsewhere
    assert (left.where, left.tip, repository.ref(left.ref)) == ("a detached HEAD", tip, tip)
    home.copy.git("checkout", "--quiet", "-b", "feature")
    again = await fetch_agent_commits(repository, home.host, home.agent, base=home.base, bundle=None, **names)
    assert (again.tip, again.used_branch, repository.ref(REF)) == (tip, "the branch feature", tip)
    shutil.rmtree(home.copy.root / ".git")
    lost = await fetch_agent_commits(repository, home.host, home.agent, base=home.base, bundle=None, **names)
    assert "its copy has no .git directory any more" in lost.problem


async def test_uncommitted_work_is_one_patch(home: Inhabited, tmp_path: Path) -> None:
    limit = 1_000_000
    assert await uncommitted_paths(home.host, home.agent.work_dir, without=".out") == ()
    assert await uncommitted_patch(home.host, home.agent.work_dir, without=".out", limit=limit) == b""
    home.copy.write({"a": "2\n", "new/b": b"\x00\xff", ".out/log": "x", "new/__pycache__/b.pyc": "bytecode"})
    index = home.copy.git("status", "--porcelain")
    assert set(await uncommitted_paths(home.host, home.agent.work_dir, without=".out")) == {"a", "new/"}
    patch = await uncommitted_patch(home.host, home.agent.work_dir, without=".out", limit=limit)
    assert home.copy.git("status", "--porcelain") == index
    home.copy.git("checkout", "--quiet", "--", ".")
    home.copy.git("clean", "--quiet", "-fd")
    (tmp_path / "patch").write_bytes(patch)
    home.copy.git("apply", str(tmp_path / "patch"))
    assert (home.copy.root / "new/b").read_bytes() == b"\x00\xff"
    assert b"pyc" not in patch
    assert not (home.copy.root / ".out").exists()
    with pytest.raises(SwarmError, match="too large to be copied"):
        await uncommitted_patch(home.host, home.agent.work_dir, without=".out", limit=3)
    gone = str(tmp_path / "gone")
    assert await uncommitted_paths(home.host, gone, without=".out") == ()
    assert await uncommitted_patch(home.host, gone, without=".out", limit=limit) == b""


def test_broken_copy_is_not_taken_for_outer_repository(made: Callable[[Path], Host], tmp_path: Path) -> None:
    outer = GitProject(tmp_path)
    base = outer.commit("Begin", {"thesis": "years of work\n"})
    outer.git("branch", BRANCH)
    outer.write({"thesis": "not committed\n"})
    copy = GitProject(tmp_path / "copy")
    copy.commit("Begin", {"a": "1\n"})
    (copy.root / ".git/HEAD").unlink()
    host, folder = made(tmp_path / "mngr"), str(copy.root)
    for work in (
        uncommitted_paths(host, folder, without=".out"),
        uncommitted_patch(host, folder, without=".out", limit=1_000_000),
        fetch_commits(host, folder, Repository.open(tmp_path), base=base, tip="1" * 40, ref=REF),
    ):
        with pytest.raises(SwarmError, match="not a git repository any more"):
            asyncio.run(work)


async def test_worktree_is_read_like_a_clone(home: Inhabited, tmp_path: Path) -> None:
    copy = tmp_path / "worktree"
    home.copy.git("worktree", "add", "--quiet", "--detach", str(copy))
    (copy / "a").write_text("2\n")
    assert await uncommitted_paths(home.host, str(copy), without=".out") == ("a",)
    assert b"+2" in await uncommitted_patch(home.host, str(copy), without=".out", limit=1_000)


@pytest.fixture(params=["fake", pytest.param("local", marks=pytest.mark.slow)])
def lively(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    """Return a host with the running agent `lively`, which shows `heard: hello`."""
    if request.param == "fake":
        mngr = FakeMngr(tmp_path)
        asyncio.run(mngr.create(CreateRequest(name="lively", source=tmp_path, labels={"k": "v"})))
        mngr.agents["lively"].screen.append("heard: hello")
        return FakeHost(mngr)
    isolated: IsolatedMngr = request.getfixturevalue("isolated_mngr")
    command = (str(isolated.agent),)
    wished = CreateRequest(name="lively", command=command, source=isolated.repository, labels={"k": "v"})
    asyncio.run(isolated.adapter.create(wished))
    host = LocalHost(isolated.settings)
    # While the shell starts the program it still has the terminal: the Return of a message sent now is lost.
    until(lambda: asyncio.run(host.statuses()).by_name["lively"].reads_input, "the agent's program to start")
    asyncio.run(isolated.adapter.message(["lively"], "hello"))
    return host


async def test_agent_has_status_and_terminal(lively: Host, tmp_path: Path) -> None:
    status = (await lively.statuses()).by_name["lively"]
    assert (status.name, status.state, status.reads_input, status.labels["k"]) == ("lively", "WAITING", True, "v")
    assert status.address.state_dir == f"{lively.host_dir}/agents/{status.address.agent_id}"
    agent = status.address

    async def shows_hello() -> bool:
        return "heard: hello" in ((await lively.tmux.capture([agent.session, "mngr-none"]))[agent.session] or "")

    await eventually(shows_hello, "the agent's screen")
    assert (await lively.tmux.capture([agent.session, "mngr-none"]))["mngr-none"] is None
    assert await lively.tmux.capture([]) == {}
    await lively.tmux.protect_session(agent.session)
    await lively.record_terminal(agent, tmp_path / "agent.cast")
    assert (tmp_path / "agent.cast").is_file()


async def test_only_changes_of_followed_files_are_reported(home: Inhabited) -> None:
    told: list[str] = []
    home.host.on_change(told.append)
    file = home.write("plugin/swarm/tries.jsonl", b"1\n")

    async def is_read(expected: FileSlice | None, request: ReadRequest) -> bool:
        return await home.host.read_files([request], follow=True) == [expected]

    await eventually(lambda: is_read(FileSlice(2, 0, b"1\n"), ReadRequest(file, 0, 100)), "the first line")
    assert home.host.reports_changes()
    told.clear()
    home.write("plugin/other", b"not followed")
    home.write("plugin/swarm/tries.jsonl", b"1\n2\n")
    await eventually(lambda: told, "the notification about the second line")
    assert set(told) == {home.agent.agent_id}
    await eventually(lambda: is_read(FileSlice(4, 2, b"2\n"), ReadRequest(file, 2, 100)), "the second line")
    await home.host.close()


async def test_followed_file_may_be_created_later(home: Inhabited) -> None:
    told: list[str] = []
    home.host.on_change(told.append)
    request = ReadRequest(AgentFile(home.agent, "plugin/swarm/tries.jsonl"), 0, 100)

    async def is_read() -> bool:
        return await home.host.read_files([request], follow=True) == [FileSlice(2, 0, b"1\n")]

    assert await home.host.read_files([request], follow=True) == [None]
    home.write("plugin/swarm/tries.jsonl", b"1\n")
    await eventually(lambda: told, "the notification about the file")
    await eventually(is_read, "the line")
    await home.host.close()
