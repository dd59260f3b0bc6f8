"""Agents begin at any commit: also at one that no branch and no tag holds, and whose history was cut off."""

from __future__ import annotations

import asyncio
import dataclasses
import subprocess
from pathlib import Path

import pytest

from swarm_tui.adapters.git.names import branch_ref
from swarm_tui.journal.events import EngineEnded
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.recover import recover_journal
from swarm_tui.sweep.clean import find_leftovers, remove_leftovers
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.copies import base_branch
from swarm_tui.sweep.resume import Resumer
from swarm_tui.sweep.run import RunningSweep
from tests.git_project import GitProject, quiet_environment
from tests.isolation import IsolatedMngr
from tests.sweep.endings import FILE, make_endings
from tests.sweep.scripted_sweep import QuickMngr, run_engine_on, scripted_sweep
from tests.sweep.sweeping import Program, offline
from tests.waiting import until


def detached(tmp_path: Path, **wishes: object) -> tuple[SweepContext, GitProject]:
    """Return a sweep whose base no branch holds."""
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"), **wishes)
    project = GitProject(tmp_path / "project")
    project.git("checkout", "--quiet", "--detach")
    project.git("commit", "--quiet", "--amend", "--message=Elsewhere")
    context.spec = dataclasses.replace(context.spec, base=project.git("rev-parse", "HEAD"))
    context.__post_init__()
    return context, project


def branches(project: GitProject) -> list[str]:
    return project.git("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags").split()


async def test_the_branch_is_there_only_while_somebody_holds_it(tmp_path: Path) -> None:
    context, project = detached(tmp_path)
    ours = base_branch(context.spec)
    async with context.copy_source.held("git-mirror"):
        async with context.copy_source.held("git-mirror"):
            assert branches(project) == ["main", ours]
        assert branches(project) == ["main", ours]
    assert branches(project) == ["main"]


@pytest.mark.parametrize("holder", ["branch", "tag"])
async def test_a_base_that_is_in_a_branch_or_a_tag_needs_none(tmp_path: Path, holder: str) -> None:
    context, project = detached(tmp_path)
    project.git(holder, "holder")
    async with context.copy_source.held("git-mirror"):
        assert branches(project) == sorted(["main", "holder"], reverse=holder == "tag")


async def test_worktrees_need_none(tmp_path: Path) -> None:
    context, project = detached(tmp_path)
    async with context.copy_source.held("git-worktree"):
        assert branches(project) == ["main"]


async def test_it_goes_when_a_create_fails_or_is_cancelled(tmp_path: Path) -> None:
    context, project = detached(tmp_path)

    async def create() -> None:
        async with context.copy_source.held("git-mirror"):
            await asyncio.Event().wait()

    creating = asyncio.create_task(create())
    await asyncio.to_thread(until, lambda: len(branches(project)) == 2, "the branch")
    creating.cancel()
    await asyncio.wait([creating])
    assert branches(project) == ["main"]


async def test_that_of_a_killed_engine_goes_with_the_next_one_or_with_clean(tmp_path: Path) -> None:
    context, project = detached(tmp_path)
    context.folder.write_spec(context.spec)
    project.git("update-ref", branch_ref(base_branch(context.spec)), context.spec.base)
    await Resumer(context, RunningSweep(context)).resume([])
    assert branches(project) == ["main"]
    project.git("update-ref", branch_ref(base_branch(context.spec)), context.spec.base)
    opened = open_sweep(context.folder)
    leftovers = await find_leftovers(opened)
    assert (dict(leftovers.refs), leftovers.losses) == ({branch_ref(base_branch(context.spec)): context.spec.base}, ())
    assert await remove_leftovers(opened, leftovers) == []
    assert branches(project) == ["main"]


async def test_a_branch_of_that_name_that_somebody_moved_is_left_alone(tmp_path: Path) -> None:
    context, project = detached(tmp_path)
    project.git("update-ref", branch_ref(base_branch(context.spec)), "main")
    async with context.copy_source.held("git-mirror"):
        pass
    assert project.git("rev-parse", branch_ref(base_branch(context.spec))) == project.git("rev-parse", "main")


def forget_unreachable(project: GitProject) -> None:
    project.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    project.git("gc", "--quiet", "--prune=now")


def test_base_outlives_amend_and_gc_until_clean(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1, mngr)
    project, base = GitProject(tmp_path / "project"), context.spec.base
    assert run_engine_on(context) == 0
    project.git("commit", "--quiet", "--amend", "--message=Begin again")
    forget_unreachable(project)
    assert project.git("rev-parse", f"{base}^{{commit}}") == base
    opened = open_sweep(context.folder)
    leftovers = asyncio.run(find_leftovers(opened))
    assert leftovers.losses == ()
    assert asyncio.run(remove_leftovers(opened, leftovers)) == []
    forget_unreachable(project)
    assert project.git("cat-file", "-t", base, codes=(128,)) == ""


def test_missing_base_ends_engine_with_reason(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1, mngr)
    project = GitProject(tmp_path / "project")
    project.git("commit", "--quiet", "--amend", "--message=Begin again")
    forget_unreachable(project)
    assert run_engine_on(context) == 1
    *_, last = recover_journal(context.folder.events).events
    assert isinstance(last, EngineEnded)
    assert "is no longer in" in last.reason


@pytest.mark.slow
def test_a_sweep_of_a_detached_commit(isolated_mngr: IsolatedMngr, tmp_path: Path) -> None:
    origin = make_endings(tmp_path / "origin", ["test_fixed"])
    origin.git("checkout", "--quiet", "--detach")
    origin.git("commit", "--quiet", "--amend", "--message=A pull request")
    origin.git("update-ref", "refs/pull/1/head", "HEAD")
    origin.git("checkout", "--quiet", "main")
    clone = ["git", "clone", "--quiet", "--depth=1", f"file://{origin.root}", str(tmp_path / "clone")]
    subprocess.run(clone, env=quiet_environment(), check=True)
    project = GitProject(tmp_path / "clone")
    project.git("fetch", "--quiet", "--depth=1", "origin", "refs/pull/1/head")
    project.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    words = offline(str(origin.root / "records"), "--speed", "50", "--", "-k", "test_fixed")
    done = program.call("run", "--headless", *words)
    assert done.returncode == 0, done.stderr
    status = program.status()
    assert [(test["test"], test["result"]) for test in status["tests"]] == [(f"{FILE}::test_fixed", "impl_fix")]
    assert project.git("log", "-1", "--format=%s", status["integrated"] + "~1") == "A pull request"
    assert branches(project) == ["main", status["integrated"]]
