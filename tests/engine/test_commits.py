"""What an agent has not committed is kept whole or left where it is, and only its own copy is ever looked into."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.agents.contract import OUTPUT_FOLDER
from swarm_tui.engine.cleaning import losses_with
from swarm_tui.engine.commits import fetch_agent_commits
from swarm_tui.engine.pull import PATCH_LIMIT
from swarm_tui.errors import SwarmError
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.state import TestRecord as Record
from swarm_tui.model.states import State
from swarm_tui.model.sweep import MngrSettings
from swarm_tui.places.local import LocalPlace
from swarm_tui.places.place import AgentAddress, AgentStatus
from tests.git_project import GitProject


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "copy")
    project.commit("Begin", {"a": "1\n"})
    return project


def address(copy: Path) -> AgentAddress:
    return AgentAddress("a", "agent-a", "mngr-a", str(copy.parent / "state"), str(copy))


def sparse(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


async def test_what_is_too_large_for_a_patch_is_said_and_left_where_it_is(project: GitProject) -> None:
    sparse(project.root / "core/dump", PATCH_LIMIT + 1)
    place = LocalPlace(MngrSettings(path="mngr", host_dir=str(project.root)))
    with pytest.raises(SwarmError, match="larger than 32 MB: it stays in"):
        await place.uncommitted_patch(address(project.root), without=OUTPUT_FOLDER, limit=PATCH_LIMIT)
    assert project.git("count-objects").startswith("3 objects")


async def test_a_broken_copy_inside_another_repository_leads_nowhere_else(tmp_path: Path) -> None:
    outer = GitProject(tmp_path)
    base = outer.commit("Begin", {"thesis": "years of work\n"})
    outer.git("branch", "swarm/1/test")
    outer.write({"thesis": "not committed\n"})
    copy = GitProject(tmp_path / "copy")
    copy.commit("Begin", {"a": "1\n"})
    (copy.root / ".git/HEAD").unlink()
    place, agent = LocalPlace(MngrSettings(path="mngr", host_dir=str(tmp_path))), address(copy.root)
    fetched = await fetch_agent_commits(
        Repository.open(tmp_path),
        place,
        agent,
        base=base,
        branch="swarm/1/test",
        ref="refs/swarm/1/test",
        bundle=None,
    )
    assert "no git repository any more" in fetched.problem


@pytest.mark.parametrize(("is_kept", "losses"), [(True, 0), (False, 1)])
async def test_work_that_no_patch_holds_is_a_loss_also_of_a_finished_agent(
    project: GitProject, tmp_path: Path, is_kept: bool, losses: int
) -> None:
    project.write({"new": "not committed\n"})
    record = Record("t", agent="a", state=State.DONE, harvest=HarvestReport(has_uncommitted=is_kept))
    place = LocalPlace(MngrSettings(path="mngr", host_dir=str(tmp_path)))
    found = await losses_with(place, AgentStatus(address(project.root), "STOPPED"), record)
    assert len(found) == losses
    assert all("uncommitted work" in loss for loss in found)
