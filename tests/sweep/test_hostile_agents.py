"""One bad agent costs one agent: the work of all others is integrated, and the bad one has a clear reason."""

from __future__ import annotations

import gc
import io
import json
import os
import resource
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import Created, CreateRequest
from swarm_tui.adapters.processes.group import spawn_errors
from swarm_tui.agents.judging import AgentEnd
from swarm_tui.errors import AdapterError, ResourceShortage, resource_shortage
from swarm_tui.journal.recover import recover_journal
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE
from swarm_tui.model.report import parse_integrator_report
from swarm_tui.model.results import Result
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.resume import Resumer
from swarm_tui.sweep.run import RunningSweep
from swarm_tui.transcripts.locate import SCREEN_NAME
from tests.git_project import GitProject
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep
from tests.sweep.test_archive import sparse

FIXED = {"tests_passing_before": False, "tests_passing_after": True, "changes": {"FIX_IMPL": {"status": "SUCCEEDED"}}}


class SubmittingMngr(QuickMngr):
    """Creates agents that submit at once what `archives` has for their branch."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, refuse=self._refuse_integrator)
        self.archives: dict[str, bytes] = {}

    @staticmethod
    def _refuse_integrator(request: CreateRequest) -> None:
        if request.name.endswith("-integrator"):
            raise AdapterError("no agent of that kind")

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        self.archive = self.archives.get(request.branch or "", self.archive)
        return await super().create(request, timeout)


def pack(*members: tuple[str, bytes] | tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as packed:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                packed.addfile(member)
            else:
                entry = tarfile.TarInfo(member[0])
                entry.size = len(member[1])
                packed.addfile(entry, io.BytesIO(member[1]))
    return buffer.getvalue()


class Copy:
    """The copy of one agent, in which it commits what it submits."""

    def __init__(self, folder: Path, project: GitProject, branch: str) -> None:
        self.branch = branch
        project.git("clone", "--quiet", str(project.root), str(folder))
        self.git = GitProject(folder)
        self.git.git("checkout", "--quiet", "-b", branch)

    def fix(self, name: str) -> None:
        self.git.commit(f"[FIX_IMPL] Add {name}", {name: f"{name}\n"})

    def add_entry(self, name: str) -> None:
        """Commit a tree that holds an entry of any name."""
        blob = self.git.git("hash-object", "-w", "--stdin", stdin=b"x\n")
        tree = bytes.fromhex(blob)
        made = self.git.git(
            "hash-object", "-t", "tree", "--literally", "-w", "--stdin", stdin=b"100644 " + name.encode() + b"\0" + tree
        )
        commit = self.git.git("commit-tree", made, "-p", "HEAD", "-m", "[FIX_IMPL] Mend")
        self.git.git("update-ref", f"refs/heads/{self.branch}", commit)

    def commit_often(self, count: int) -> None:
        """Make empty changes in many commits."""
        lines = ["from HEAD"]
        for number in range(count):
            commit = (
                f"commit refs/heads/{self.branch}",
                f"committer A <a@b> {number} +0000",
                "data 15",
                "[FIX_IMPL] Mend",
            )
            lines[-1:-1] = commit if not number else ()
            lines += (*(commit if number else ()), "M 644 inline a", "data 6", f"{number:06}")
        self.git.git("fast-import", "--quiet", "--force", stdin="\n".join([*lines, ""]).encode())

    def submit(self, outcome: Mapping[str, object] | bytes = FIXED) -> bytes:
        bundle = self.git.root.with_suffix(".bundle")
        self.git.git("bundle", "create", "--quiet", str(bundle), f"origin/main..{self.branch}")
        raw = outcome if isinstance(outcome, bytes) else json.dumps(outcome).encode()
        return pack(("test_output/testing_agent_outcome.json", raw), ("branch.bundle", bundle.read_bytes()))


def honest(copy: Copy) -> bytes:
    copy.fix(f"{copy.git.root.name}.txt")
    return copy.submit()


def submits_sparse_file(_: Copy) -> bytes:
    return pack(sparse(1 << 40))


def submits_entry(name: str) -> Callable[[Copy], bytes]:
    def submit(copy: Copy) -> bytes:
        copy.add_entry(name)
        return copy.submit()

    return submit


def submits_many_commits(copy: Copy) -> bytes:
    copy.commit_often(5_000)
    return copy.submit()


def submits_surrogate(copy: Copy) -> bytes:
    copy.fix("surrogate.txt")
    return copy.submit(json.dumps(FIXED | {"summary_markdown": "\ud800"}).encode())


def submits_no_archive(_: Copy) -> bytes:
    return b"no archive"


AGENTS: dict[str, tuple[Callable[[Copy], bytes], Result, str, str]] = {
    "honest": (honest, Result.IMPL_FIX, "", ""),
    "sparse": (submits_sparse_file, Result.ERROR, "its archive contains no report", ""),
    "git entry": (submits_entry(".git"), Result.UNRESOLVED, "invalid commits", ""),
    "parent entry": (submits_entry(".."), Result.UNRESOLVED, "invalid commits", ""),
    "slash entry": (submits_entry("a/b"), Result.UNRESOLVED, "invalid commits", ""),
    "long name": (submits_entry("n" * 300), Result.IMPL_FIX, "", "a file name that is too long to check out"),
    "many commits": (submits_many_commits, Result.IMPL_FIX, "", "it has 5,000 commits; the limit is 200"),
    "surrogate": (submits_surrogate, Result.IMPL_FIX, "", ""),
    "no archive": (submits_no_archive, Result.ERROR, "its archive is broken", ""),
    "last honest": (honest, Result.IMPL_FIX, "", ""),
}
"""What each agent submits, the result of its test with the reason, and why the integrator leaves its branch out."""


async def work(context: SweepContext) -> None:
    runner = RunningSweep(context, tick=0.0)
    await runner.run(RequestHandler(context, runner))


async def resume(context: SweepContext) -> None:
    runner = RunningSweep(context, tick=0.0)
    await Resumer(context, runner).resume(recover_journal(context.folder.events).events)
    await runner.run(RequestHandler(context, runner))


@pytest.mark.slow
async def test_bad_agent_costs_only_its_own_work(tmp_path: Path) -> None:
    mngr = SubmittingMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, len(AGENTS), mngr, integrator="builtin")
    project = GitProject(tmp_path / "project")
    records = list(context.state.tests())
    for number, ((submit, *_), record) in enumerate(zip(AGENTS.values(), records, strict=True)):
        mngr.archives[record.branch] = submit(Copy(tmp_path / f"copy-{number}", project, record.branch))
    await work(context)

    branches: dict[str, str] = {}
    for (name, (_, result, reason, left_out)), before in zip(AGENTS.items(), records, strict=True):
        record = context.state.record_of(before.test)
        assert record.result is result, (name, record.reason)
        assert reason in record.reason, name
        branches |= {record.branch: left_out} if left_out else {}
    integration = context.state.integration
    assert integration.state == "done", integration.detail
    assert project.git("ls-tree", "--name-only", integration.tip).split() == [
        "README.md",
        "copy-0.txt",
        "copy-9.txt",
        "surrogate.txt",
    ]
    outcome = parse_integrator_report((context.folder.integrator / INTEGRATOR_OUTCOME_FILE).read_bytes())
    given = {entry.branch: entry.reason for entry in outcome.failed}
    assert {branch: reason in given.get(branch, "") for branch, reason in branches.items()} == dict.fromkeys(
        branches, True
    )
    assert project.git("fsck", "--strict", codes=None) == ""


@contextmanager
def few_files(more: int) -> Iterator[None]:
    """Let this process open only so many more files."""
    # Otherwise Python may close files of earlier tests in the block.
    gc.collect()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + more, hard))
    taken = list[int]()
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(more):
            os.close(taken.pop())
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("more", [0, 1, 4])
async def test_lack_of_open_files_fails_no_agent_for_good(tmp_path: Path, more: int) -> None:
    mngr = SubmittingMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 2, mngr)
    project = GitProject(tmp_path / "project")
    for record in list(context.state.tests()):
        mngr.archives[record.branch] = honest(Copy(tmp_path / record.agent, project, record.branch))
    with few_files(more):
        await work(context)
    for record in list(context.state.tests()):
        assert record.result is Result.ERROR
        assert record.pulled.end == AgentEnd.OUT_OF_RESOURCES, record.reason
        assert "Too many open files" in record.reason
        assert "ulimit -n" in record.reason
    await resume(context)
    assert [record.result for record in context.state.tests()] == [Result.IMPL_FIX] * 2
    assert sorted(mngr.created) == sorted(record.agent for record in context.state.tests())


async def test_error_in_the_pull_of_one_agent_fails_that_agent(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 2, QuickMngr(tmp_path / "mngr"))
    first, second = (record for record in context.state.tests())
    # The agents run as the same user: each can write into the folder of its sweep.
    (context.folder.agent(first.agent) / SCREEN_NAME / "in the way").mkdir(parents=True)
    await work(context)

    first, second = (context.state.record_of(record.test) for record in (first, second))
    assert (first.result, first.pulled.end, second.result) == (Result.ERROR, AgentEnd.UNREADABLE, Result.CLEAN)
    assert "its work could not be processed" in first.reason


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BlockingIOError(11, "Resource temporarily unavailable"), "ulimit -u"),
        (OSError(12, "Cannot allocate memory"), "fewer slots"),
        (OSError(28, "No space left on device"), "free some disk space"),
    ],
)
def test_program_that_cannot_be_started_is_a_shortage(error: OSError, words: str) -> None:
    with pytest.raises(ResourceShortage, match=words), spawn_errors("git", None):
        raise error


def test_shortage_is_found_behind_other_errors() -> None:
    error = AdapterError("it failed")
    assert resource_shortage(error) is None
    error.__cause__ = MemoryError()
    assert resource_shortage(error) is not None
    assert resource_shortage(FileNotFoundError(2, "No such file")) is None
