"""What an agent has not committed is kept whole or left where it is, and only its own copy is ever looked into."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.probe import LocalAgent
from swarm_tui.engine.cleaning import _lost_with
from swarm_tui.engine.commits import PATCH_LIMIT, bring_commits, keep_uncommitted, uncommitted_paths
from swarm_tui.errors import SwarmError
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.state import TestRecord as Record
from swarm_tui.model.states import State
from tests.git_project import GitProject


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "copy")
    project.commit("Begin", {"a": "1\n"})
    return project


def sparse(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


def test_a_patch_brings_back_what_was_not_committed(project: GitProject, tmp_path: Path) -> None:
    project.write({"a": "2\n", "new/b": b"\x00\xff", ".test_output/log": "x"})
    assert keep_uncommitted(project.root, tmp_path / "patch")
    project.git("checkout", "--quiet", "--", ".")
    project.git("clean", "--quiet", "-fd")
    project.git("apply", str(tmp_path / "patch"))
    assert (project.root / "a").read_text() == "2\n"
    assert (project.root / "new/b").read_bytes() == b"\x00\xff"
    assert not (project.root / ".test_output").exists()


def test_what_is_too_large_for_a_patch_is_said_and_left_where_it_is(project: GitProject, tmp_path: Path) -> None:
    sparse(project.root / "core/dump", PATCH_LIMIT + 1)
    with pytest.raises(SwarmError, match="larger than 32 MB: it stays in"):
        keep_uncommitted(project.root, tmp_path / "patch")
    assert not (tmp_path / "patch").exists()
    assert project.git("count-objects").startswith("3 objects")


def test_a_broken_copy_inside_another_repository_leads_nowhere_else(tmp_path: Path) -> None:
    outer = GitProject(tmp_path)
    base = outer.commit("Begin", {"thesis": "years of work\n"})
    outer.git("branch", "swarm/1/test")
    outer.write({"thesis": "not committed\n"})
    copy = GitProject(tmp_path / "copy")
    copy.commit("Begin", {"a": "1\n"})
    (copy.root / ".git/HEAD").unlink()
    for look in (uncommitted_paths, lambda path: keep_uncommitted(path, tmp_path / "patch")):
        with pytest.raises(SwarmError, match="no git repository any more"):
            look(copy.root)
    brought = bring_commits(
        Repository.open(tmp_path),
        base=base,
        branch="swarm/1/test",
        ref="refs/swarm/1/test",
        bundle=None,
        copy=copy.root,
    )
    assert "no git repository any more" in brought.problem


@pytest.mark.parametrize(("is_kept", "losses"), [(True, 0), (False, 1)])
def test_work_that_no_patch_holds_is_a_loss_also_of_a_finished_agent(
    project: GitProject, tmp_path: Path, is_kept: bool, losses: int
) -> None:
    project.write({"new": "not committed\n"})
    record = Record("t", agent="a", state=State.DONE, harvest=HarvestReport(has_uncommitted=is_kept))
    agent = LocalAgent("a", "agent-a", "STOPPED", None, "mngr-a", project.root, None, tmp_path / "state", {})
    told = _lost_with(agent, record)
    assert len(told) == losses
    assert all("uncommitted work" in loss for loss in told)
