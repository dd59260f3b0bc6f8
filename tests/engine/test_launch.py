"""How an agent is launched: written down first, adopted when an earlier engine made it, never taken from others."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.doors.fake_mngr import FakeMngr
from swarm_tui.doors.git import Repository
from swarm_tui.doors.mngr import mngr_environment
from swarm_tui.doors.mngr_words import Created, CreateRequest
from swarm_tui.doors.tmux import Tmux
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.launch import clear_debris, launch
from swarm_tui.engine.names import LABEL_SWEEP, LABEL_TEST, place_of
from swarm_tui.errors import AgentExists, DoorError
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.events import Queued
from swarm_tui.model.states import State
from swarm_tui.model.sweep import MngrSettings, SweepSpec
from tests.git_project import GitProject

TEST = 'tests/test_a.py::test_it[$(touch pwned)-"`x`"]'
AGENT = "swarm-s-test-it"


class FallingMngr(FakeMngr):
    """A mngr whose create dies half way: the agent is there, the answer is an error."""

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        await super().create(request)
        raise DoorError("mngr create failed: the host is locked")


def make_context(root: Path, mngr: FakeMngr, tmux_folder: Path) -> EngineContext:
    """Give a sweep with one queued test."""
    project = GitProject(root / "project")
    project.write({"README.md": "x\n"})
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message=Begin")
    settings = MngrSettings(path="mngr", host_dir=str(mngr.root), tmux_tmpdir=str(tmux_folder))
    spec = SweepSpec(
        sweep="s",
        repository=str(project.root),
        base=project.git("rev-parse", "HEAD"),
        created_at=1.0,
        python=sys.executable,
        mngr=settings,
    )
    folder = SweepFolder(project.root / ".swarm" / "runs" / "s")
    folder.write_spec(spec)
    tmux = Tmux(mngr_environment(settings))
    repository = Repository.open(project.root)
    context = EngineContext(folder, spec, JournalWriter(folder.events), SweepState(), mngr, tmux, repository)
    context.record(Queued(test=TEST, agent=AGENT, branch="swarm/s/test-it", file="tests/test_a.py"))
    return context


@pytest.fixture
def tmux_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="sw"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def context(tmp_path: Path, tmux_folder: Path) -> Iterator[EngineContext]:
    context = make_context(tmp_path, FakeMngr(tmp_path / "home"), tmux_folder)
    yield context
    context.writer.close()


def fake(context: EngineContext) -> FakeMngr:
    assert isinstance(context.mngr, FakeMngr)
    return context.mngr


async def test_a_launched_agent_is_found_where_its_names_say(context: EngineContext) -> None:
    await launch(context, TEST, 1)
    record, place = context.state.records[TEST], place_of(context.spec, AGENT, 1)
    assert (record.agent_id, record.work_dir) == (place.agent_id, str(place.work_dir))
    agent = fake(context).agents[AGENT]
    assert (agent.agent_id, agent.work_dir) == (place.agent_id, place.work_dir)
    assert agent.request.base == context.spec.base
    assert agent.request.labels[LABEL_SWEEP] == "s"


async def test_what_a_test_id_holds_reaches_no_shell(context: EngineContext) -> None:
    await launch(context, TEST, 1)
    request = fake(context).agents[AGENT].request
    assert request.labels[LABEL_TEST] == TEST
    assert not any("pwned" in value for value in request.environment.values())
    assert not any("pwned" in word for word in request.command)


async def test_an_agent_that_a_dead_engine_made_is_adopted_and_stays_as_it_is(context: EngineContext) -> None:
    await launch(context, TEST, 1)
    fake(context).agents[AGENT].state = "RUNNING"
    await launch(context, TEST, 1)
    assert fake(context).agents[AGENT].state == "RUNNING"
    assert context.state.records[TEST].agent_id == place_of(context.spec, AGENT, 1).agent_id


async def test_an_agent_of_the_same_name_that_is_not_ours_is_left_alone(context: EngineContext, tmp_path: Path) -> None:
    await fake(context).create(CreateRequest(name=AGENT, source=tmp_path))
    with pytest.raises(AgentExists):
        await launch(context, TEST, 1)
    await clear_debris(context, AGENT, 1)
    assert AGENT in fake(context).agents
    assert context.state.records[TEST].state is State.LAUNCHING


async def test_a_create_that_falls_half_way_leaves_nothing_behind(tmp_path: Path, tmux_folder: Path) -> None:
    context = make_context(tmp_path, FallingMngr(tmp_path / "home"), tmux_folder)
    with pytest.raises(DoorError, match="the host is locked"):
        await launch(context, TEST, 1)
    assert AGENT in fake(context).agents
    await clear_debris(context, AGENT, 1)
    assert fake(context).agents == {}
    context.writer.close()
