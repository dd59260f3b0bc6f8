"""A disk that is full while work is pulled: nothing is judged by it, it is said, and done again when there is room."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.command import GitResult, error_of
from swarm_tui.agents.judging import AgentEnd
from swarm_tui.errors import ResourceShortage
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.integrator.branches import read_branches
from swarm_tui.journal.events import EngineEnded
from swarm_tui.journal.recover import recover_journal
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings
from swarm_tui.sweep.engine import run_engine
from swarm_tui.sweep.pull import fetch_agent_commits, unpack_archive
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.resume import Resumer
from swarm_tui.sweep.run import RunningSweep
from tests.git_project import GitProject
from tests.integrator.integrator_project import SWEEP, SweptProject
from tests.sweep.full_disk import little_space
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep

LARGE = 2_000_000


def large_archive() -> bytes:
    """Return an archive that is small, and large when it is unpacked."""
    outcome = json.dumps({"tests_passing_before": True, "tests_passing_after": True}).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as packed:
        for name, content in (("testing_agent_outcome.json", outcome), ("log.txt", bytes(LARGE))):
            entry = tarfile.TarInfo(f"test_output/{name}")
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def test_a_full_disk_is_no_fault_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(large_archive())
    (tmp_path / "out").mkdir()
    with little_space(LARGE // 2), pytest.raises(ResourceShortage, match=os.strerror(errno.EFBIG)):
        unpack_archive(tmp_path / "a", tmp_path / "out")


async def test_a_result_that_found_no_room_is_pulled_by_the_next_engine(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    mngr.archive = large_archive()
    context = scripted_sweep(tmp_path, 1, mngr)
    runner = RunningSweep(context, tick=0.0)
    with little_space(LARGE // 2):
        await runner.run(RequestHandler(context, runner))
    record = next(context.state.tests())
    assert (record.result, record.pulled.end) == (Result.ERROR, AgentEnd.OUT_OF_RESOURCES)
    assert "`swarm-tui resume` repeats it" in record.reason
    runner = RunningSweep(context, tick=0.0)
    await Resumer(context, runner).resume(recover_journal(context.folder.events).events)
    await runner.run(RequestHandler(context, runner))
    assert next(context.state.tests()).result is Result.CLEAN
    assert len(mngr.created) == 1


class CrowdedRepository(Repository):
    """A repository on a disk that takes nothing more."""

    def run(self, *arguments: str, **how: object) -> GitResult:
        if "index-pack" not in arguments:
            return super().run(*arguments, **how)  # type: ignore[arg-type]
        words = b"fatal: sha1 file '.git/objects/pack/tmp_pack_x' write error. Out of diskspace\n"
        raise error_of(GitResult(128, b"", words), arguments, self.root)


@pytest.mark.parametrize("has_bundle", [True, False])
async def test_commits_that_find_no_room_are_not_given_up(tmp_path: Path, has_bundle: bool) -> None:
    project, copy = GitProject(tmp_path / "project"), tmp_path / "copy"
    base = project.commit("Begin", {"a": "1\n"})
    project.git("clone", "--quiet", str(project.root), str(copy))
    theirs = GitProject(copy)
    theirs.git("checkout", "--quiet", "-b", "swarm/1/test")
    tip = theirs.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    bundle = tmp_path / "branch.bundle"
    theirs.git("bundle", "create", "--quiet", str(bundle), f"{base}..swarm/1/test")
    agent = AgentAddress("test", "agent-1", "mngr-test", str(tmp_path / "state"), str(copy))
    host = LocalHost(MngrSettings(path="mngr", host_dir=str(tmp_path)))
    wanted = {"base": base, "branch": "swarm/1/test", "ref": "refs/swarm/1/test", "held": "refs/swarm-held/1/test"}
    given = bundle if has_bundle else None
    with pytest.raises(ResourceShortage, match="Out of diskspace"):
        await fetch_agent_commits(CrowdedRepository.open(project.root), host, agent, bundle=given, **wanted)
    fetched = await fetch_agent_commits(Repository.open(project.root), host, agent, bundle=given, **wanted)
    assert fetched.tip == tip


@pytest.mark.parametrize(
    "words",
    [
        "error: cannot update ref 'refs/swarm/1/a': couldn't write '/r/.git/refs/swarm/1/a.lock'",
        "fatal: Unable to create '/r/.git/refs/swarm/1/a.lock': No space left on device",
    ],
)
def test_a_ref_that_finds_no_room_is_no_fault_of_the_commits(words: str) -> None:
    assert isinstance(error_of(GitResult(1, b"", words.encode()), ("fetch",), Path("/r")), ResourceShortage)


def test_unreadable_requests_end_the_engine_with_a_sentence(tmp_path: Path) -> None:
    mngr, tmux = QuickMngr(tmp_path / "mngr"), tmp_path / "t"
    (tmp_path / "mngr").mkdir()
    tmux.mkdir()
    context = scripted_sweep(tmp_path, 1, mngr)
    context.writer.close()
    settings = MngrSettings(path="mngr", host_dir=str(mngr.root), tmux_tmpdir=str(tmux))
    context.folder.write_spec(dataclasses.replace(context.spec, mngr=settings))
    context.folder.requests.unlink(missing_ok=True)
    context.folder.requests.mkdir()
    assert run_engine(context.folder.root) == 1
    *_, last = recover_journal(context.folder.events).events
    assert isinstance(last, EngineEnded)
    assert last.why == "failed"
    assert "it is a folder, not a file" in last.reason


def test_an_integration_that_finds_no_room_leaves_no_branch_out_for_it(tmp_path: Path) -> None:
    project = SweptProject(tmp_path / "project")
    source = project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": "add = sum\n"})])
    git, bundle = project.git, tmp_path / "branch.bundle"
    git.git("branch", source.branch, source.tip)
    git.git("bundle", "create", "--quiet", str(bundle), f"{project.base}..refs/heads/{source.branch}")
    for ref in (f"refs/heads/{source.branch}", f"refs/swarm/{SWEEP}/test-add"):
        git.git("update-ref", "-d", ref)
    git.git("reflog", "expire", "--expire=now", "--all")
    git.git("gc", "--quiet", "--prune=now")
    project.branches[0] = source.model_copy(update={"bundle": str(bundle)})
    with pytest.raises(ResourceShortage):
        read_branches(CrowdedRepository.open(git.root), project.inputs())
    commits, refused = read_branches(Repository.open(git.root), project.inputs())
    assert ([commit.id for commit in commits], refused) == ([source.tip], {})
