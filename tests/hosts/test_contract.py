"""What every place keeps to; another place joins with a line in MAKERS."""

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

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.errors import AdapterError, SwarmError
from swarm_tui.hosts.link import SshLink
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, FileSlice, FoundFile, Host, ReadRequest
from swarm_tui.hosts.registry import Hosts
from swarm_tui.hosts.ssh import SshHost
from swarm_tui.model.hosts import LOCAL_HOST, HostSettings
from swarm_tui.model.spec import MngrSettings
from swarm_tui.sweep.pull import fetch_agent_commits
from tests.fake_mngr import FakeMngr
from tests.git_project import GitProject
from tests.hosts.fake_place import FakePlace
from tests.isolation import IsolatedMngr
from tests.loopback import LoopbackHost, loopback_hosts
from tests.waiting import eventually, until

BRANCH: Final = "swarm/1/test"
REF: Final = "refs/swarm/1/test"


def make_local(root: Path) -> Host:
    return LocalHost(MngrSettings(path="mngr", host_dir=str(root), home=str(root)))


def make_fake(root: Path) -> Host:
    return FakePlace(FakeMngr(root))


MAKERS: Final[dict[str, Callable[[Path], Host]]] = {"local": make_local, "fake": make_fake}
# What is asked of one host among several is as if it was asked of it alone.
MAKERS_OF_HOSTS: Final = ("ssh", "many")


@pytest.fixture(scope="module")
def ssh_host() -> Iterator[LoopbackHost]:
    with loopback_hosts() as (host,):
        yield host


def make_ssh(access: HostSettings, root: Path, *, is_among_many: bool = False) -> Host:
    access = access.model_copy(update={"host_dir": str(root)})
    settings = MngrSettings(path="mngr", host_dir=str(root), home=str(root))
    place = SshHost(access, settings, None, SshLink(access))
    return Hosts({LOCAL_HOST: make_local(root / "here"), access.name: place}) if is_among_many else place


@pytest.fixture(params=[*MAKERS, *(pytest.param(name, marks=pytest.mark.needs("sshd")) for name in MAKERS_OF_HOSTS)])
def made(request: pytest.FixtureRequest) -> tuple[Callable[[Path], Host], str]:
    """Return what makes a place with this folder of mngr's, and the name of its host."""
    if request.param in MAKERS:
        return MAKERS[request.param], LOCAL_HOST
    access = request.getfixturevalue("ssh_host").access
    return partial(make_ssh, access, is_among_many=request.param == "many"), access.name


@dataclass(frozen=True)
class Inhabited:
    """A place, an agent in it, and what the agent sees of itself."""

    place: Host
    agent: AgentAddress
    state: Path
    copy: GitProject
    base: str

    def write(self, path: str, content: bytes) -> AgentFile:
        (self.state / path).parent.mkdir(parents=True, exist_ok=True)
        (self.state / path).write_bytes(content)
        return AgentFile(self.agent, path)

    async def read(self, *requests: ReadRequest) -> list[FileSlice | None]:
        return await self.place.read_files(requests)


@pytest.fixture
def home(made: tuple[Callable[[Path], Host], str], tmp_path: Path) -> Inhabited:
    maker, host = made
    place = maker(tmp_path / "mngr")
    state, copy = tmp_path / "mngr/agents/agent-1", GitProject(tmp_path / "mngr/copies/test-1")
    state.mkdir(parents=True)
    base = copy.commit("Begin", {"a": "1\n"})
    copy.git("checkout", "--quiet", "-b", BRANCH)
    agent = AgentAddress("test", "agent-1", "mngr-test", str(state), str(copy.root), host)
    return Inhabited(place, agent, state, copy, base)


async def test_the_folder_of_mngr_is_named_and_its_absence_seen(
    made: tuple[Callable[[Path], Host], str], tmp_path: Path
) -> None:
    maker, host = made
    place = maker(tmp_path / "nowhere")
    assert (place.host_dir_of(host), await place.has_mngr()) == (str(tmp_path / "nowhere"), False)
    (tmp_path / "here").mkdir()
    assert await maker(tmp_path).has_mngr()


async def test_a_new_file_is_written_whole_and_never_over_another(home: Inhabited) -> None:
    file = AgentFile(home.agent, "plugin/swarm/answers/1.json")
    await home.place.write_file(file, b"yes", is_new=True)
    with pytest.raises(FileExistsError):
        await home.place.write_file(file, b"no", is_new=True)
    assert await home.read(ReadRequest(file, limit=10)) == [FileSlice(3, 0, b"yes")]
    assert [path.name for path in (home.state / "plugin/swarm/answers").iterdir()] == ["1.json"]


async def test_many_files_are_read_at_once_each_from_its_offset(home: Inhabited) -> None:
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


async def test_a_file_that_has_become_shorter_is_read_from_its_beginning(home: Inhabited) -> None:
    assert await home.read(ReadRequest(home.write("log", b"new"), 10, 100)) == [FileSlice(3, 0, b"new")]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
async def test_what_only_has_the_name_of_a_file_is_none(
    home: Inhabited, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(home.state / "log")
    file = AgentFile(home.agent, "log")
    assert await home.read(ReadRequest(file, 0, 10), ReadRequest(file)) == [None, None]
    assert await home.place.find_files([home.agent], ["log", "l*"]) == [[]]
    assert not await home.place.fetch_file(file, tmp_path / "copy", limit=10)
    assert not (tmp_path / "copy").exists()


async def test_files_are_found_by_patterns_one_name_deep_and_links_are_left_out(home: Inhabited) -> None:
    for path in ("events/b/log", "events/a/log", "events/a/more/log", "log"):
        home.write(path, b"12")
    (home.state / "events/a/link").symlink_to(home.state / "log")
    other = replace(home.agent, agent_id="agent-2", state_dir=str(home.state / "no-such"))
    found = await home.place.find_files([home.agent, other], ["log", "events/*/log", "events/a/l*", "none/*"])
    assert [[file.path for file in files] for files in found] == [
        ["log", "events/a/log", "events/b/log", "events/a/log"],
        [],
    ]
    os.utime(home.state / "log", (5, 5))
    assert await home.place.find_files([home.agent], ["log"]) == [[FoundFile("log", 2, 5.0)]]


async def test_a_file_is_fetched_up_to_its_limit_and_replaces_another_whole(home: Inhabited, tmp_path: Path) -> None:
    large = home.write("large", b"x" * 3_000_000)
    target = tmp_path / "target"
    target.write_bytes(b"old")
    assert not await home.place.fetch_file(AgentFile(home.agent, "missing"), target, limit=5)
    assert target.read_bytes() == b"old"
    assert await home.place.fetch_file(large, target, limit=2_500_000)
    assert target.read_bytes() == b"x" * 2_500_000
    assert await home.place.fetch_file(home.write("empty", b""), target, limit=5)
    assert target.read_bytes() == b""
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["target"]
    with pytest.raises(OSError, match="No such file or directory"):
        await home.place.fetch_file(large, tmp_path / "no-folder" / "target", limit=5)


async def test_a_command_runs_in_the_agents_copy(home: Inhabited) -> None:
    finished = await home.place.run(home.agent, ["sh", "-c", "pwd; echo no >&2; exit 3"])
    assert (finished.code, finished.text, finished.error_text) == (3, f"{home.copy.root}\n", "no\n")
    with pytest.raises(AdapterError, match="no-such-program"):
        await home.place.run(home.agent, ["no-such-program"])


async def test_commits_are_fetched_under_a_ref_and_none_without_any(home: Inhabited, tmp_path: Path) -> None:
    home.copy.git("clone", "--quiet", "--branch", "main", str(home.copy.root), str(tmp_path / "user"))
    repository = Repository.open(tmp_path / "user")
    wanted = {"base": home.base, "ref": REF}
    assert await home.place.fetch_commits(home.agent, repository, tip=home.base, **wanted) == ""
    tip = home.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    assert await home.place.fetch_commits(home.agent, repository, tip=tip, **wanted) == tip
    assert repository.ref(REF) == tip
    with pytest.raises(SwarmError):
        await home.place.fetch_commits(home.agent, repository, tip="1" * 40, **wanted)
    gone = replace(home.agent, agent_id="agent-2", work_dir=str(tmp_path / "gone"))
    assert await home.place.fetch_commits(gone, repository, tip=tip, **wanted) == ""


async def test_commits_that_are_not_on_the_branch_are_fetched(home: Inhabited, tmp_path: Path) -> None:
    home.copy.git("clone", "--quiet", "--branch", "main", str(home.copy.root), str(tmp_path / "user"))
    repository = Repository.open(tmp_path / "user")
    home.copy.git("checkout", "--quiet", "--detach")
    tip = home.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    names = {"branch": BRANCH, "ref": REF, "held": "refs/swarm-held/1/test"}
    fetched = await fetch_agent_commits(repository, home.place, home.agent, base=home.base, bundle=None, **names)
    (left,) = fetched.elsewhere
    assert (left.where, left.tip, repository.ref(left.ref)) == ("a detached HEAD", tip, tip)
    home.copy.git("checkout", "--quiet", "-b", "feature")
    again = await fetch_agent_commits(repository, home.place, home.agent, base=home.base, bundle=None, **names)
    assert (again.tip, again.used_branch, repository.ref(REF)) == (tip, "the branch feature", tip)
    shutil.rmtree(home.copy.root / ".git")
    lost = await fetch_agent_commits(repository, home.place, home.agent, base=home.base, bundle=None, **names)
    assert "its copy has no .git directory any more" in lost.problem


async def test_uncommitted_work_is_one_whole_patch_without_the_folder_named(home: Inhabited, tmp_path: Path) -> None:
    limit = 1_000_000
    assert await home.place.uncommitted_paths(home.agent, without=".out") == ()
    assert await home.place.uncommitted_patch(home.agent, without=".out", limit=limit) == b""
    home.copy.write({"a": "2\n", "new/b": b"\x00\xff", ".out/log": "x", "new/__pycache__/b.pyc": "bytecode"})
    index = home.copy.git("status", "--porcelain")
    assert set(await home.place.uncommitted_paths(home.agent, without=".out")) == {"a", "new/"}
    patch = await home.place.uncommitted_patch(home.agent, without=".out", limit=limit)
    assert home.copy.git("status", "--porcelain") == index
    home.copy.git("checkout", "--quiet", "--", ".")
    home.copy.git("clean", "--quiet", "-fd")
    (tmp_path / "patch").write_bytes(patch)
    home.copy.git("apply", str(tmp_path / "patch"))
    assert (home.copy.root / "new/b").read_bytes() == b"\x00\xff"
    assert b"pyc" not in patch
    assert not (home.copy.root / ".out").exists()
    with pytest.raises(SwarmError, match="it is larger than 0 MB"):
        await home.place.uncommitted_patch(home.agent, without=".out", limit=3)
    gone = replace(home.agent, agent_id="agent-2", work_dir=str(tmp_path / "gone"))
    assert await home.place.uncommitted_paths(gone, without=".out") == ()
    assert await home.place.uncommitted_patch(gone, without=".out", limit=limit) == b""


def test_a_copy_that_is_broken_leads_into_no_other_repository(
    made: tuple[Callable[[Path], Host], str], tmp_path: Path
) -> None:
    outer = GitProject(tmp_path)
    base = outer.commit("Begin", {"thesis": "years of work\n"})
    outer.git("branch", BRANCH)
    outer.write({"thesis": "not committed\n"})
    copy = GitProject(tmp_path / "copy")
    copy.commit("Begin", {"a": "1\n"})
    (copy.root / ".git/HEAD").unlink()
    maker, host = made
    agent = AgentAddress("test", "agent-1", "mngr-test", "", str(copy.root), host)
    place = maker(tmp_path / "mngr")
    for work in (
        place.uncommitted_paths(agent, without=".out"),
        place.uncommitted_patch(agent, without=".out", limit=1_000_000),
        place.fetch_commits(agent, Repository.open(tmp_path), base=base, tip="1" * 40, ref=REF),
    ):
        with pytest.raises(SwarmError, match="no git repository any more"):
            asyncio.run(work)


@pytest.fixture(params=["fake", pytest.param("local", marks=pytest.mark.slow)])
def lively(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    """Return a place with the living agent `lively`, which shows `heard: hello`."""
    if request.param == "fake":
        mngr = FakeMngr(tmp_path)
        asyncio.run(mngr.create(CreateRequest(name="lively", source=tmp_path, labels={"k": "v"})))
        mngr.agents["lively"].screen.append("heard: hello")
        return FakePlace(mngr)
    isolated: IsolatedMngr = request.getfixturevalue("isolated_mngr")
    command = (str(isolated.agent),)
    wished = CreateRequest(name="lively", command=command, source=isolated.repository, labels={"k": "v"})
    asyncio.run(isolated.adapter.create(wished))
    place = LocalHost(isolated.settings)
    # While the shell starts the program it still has the terminal: the Return of a message sent now is lost.
    until(lambda: asyncio.run(place.agent_statuses()).by_name["lively"].reads_input, "the agent's program to start")
    asyncio.run(isolated.adapter.message(["lively"], "hello"))
    return place


async def test_an_agent_is_seen_with_its_terminal(lively: Host, tmp_path: Path) -> None:
    place = lively
    status = (await place.agent_statuses()).by_name["lively"]
    assert (status.name, status.state, status.reads_input, status.labels["k"]) == ("lively", "WAITING", True, "v")
    assert status.address.state_dir == f"{place.host_dir_of('local')}/agents/{status.address.agent_id}"
    agent, none = status.address, AgentAddress("none", "", "mngr-none", "", "")

    async def shows_hello() -> bool:
        return "heard: hello" in ((await place.capture_screens([agent, none]))[agent.session] or "")

    await eventually(shows_hello, "the agent's screen")
    assert (await place.capture_screens([agent, none]))["mngr-none"] is None
    assert await place.capture_screens([]) == {}
    await place.protect_session(agent)
    await place.record_terminal(agent, tmp_path / "agent.cast")
    assert (tmp_path / "agent.cast").is_file()


async def test_what_an_agent_writes_is_told_and_what_another_writes_is_not(home: Inhabited) -> None:
    told: list[str] = []
    home.place.on_news(told.append)
    file = home.write("plugin/swarm/tries.jsonl", b"1\n")

    async def is_read(expected: FileSlice | None, request: ReadRequest) -> bool:
        return await home.place.latest_files([request]) == [expected]

    await eventually(lambda: is_read(FileSlice(2, 0, b"1\n"), ReadRequest(file, 0, 100)), "the first line")
    assert home.place.tells_all_news()
    told.clear()
    home.write("plugin/other", b"of nobody's interest")
    home.write("plugin/swarm/tries.jsonl", b"1\n2\n")
    await eventually(lambda: told, "the news of the second line")
    assert set(told) == {home.agent.agent_id}
    await eventually(lambda: is_read(FileSlice(4, 2, b"2\n"), ReadRequest(file, 2, 100)), "the second line")
    await home.place.close()


async def test_an_agent_whose_folders_are_not_there_yet_is_told_of(home: Inhabited) -> None:
    told: list[str] = []
    home.place.on_news(told.append)
    request = ReadRequest(AgentFile(home.agent, "plugin/swarm/tries.jsonl"), 0, 100)

    async def is_read() -> bool:
        return await home.place.latest_files([request]) == [FileSlice(2, 0, b"1\n")]

    assert await home.place.latest_files([request]) == [None]
    home.write("plugin/swarm/tries.jsonl", b"1\n")
    await eventually(lambda: told, "the news of the file")
    await eventually(is_read, "the line")
    await home.place.close()
