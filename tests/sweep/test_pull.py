"""What was pulled before stays until something whole replaces it, and speaks for the agent that handed it in alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.sweep.agent_context import recorded_address
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.launch import launch, pull_for
from swarm_tui.sweep.pull import UNPACKED_FOLDER, was_pulled
from tests.sweep.scripted_sweep import QuickMngr, packed_outcome, scripted_sweep


class PulledAgent:
    """The one test of a sweep, and what is pulled of its agent's work."""

    def __init__(self, root: Path) -> None:
        self.mngr = QuickMngr(root / "mngr")
        self.context: SweepContext = scripted_sweep(root, 1, self.mngr)
        self.task = TestJob(next(self.context.state.tests()).test, self.context.spec)
        self.folder = self.context.work_folder(self.task.key)

    async def launch(self, launch_number: int) -> Path:
        """Launch the agent of a launch; return its archive."""
        self.mngr.agents.clear()
        await launch(self.context, self.task, launch_number)
        return self.mngr.agents[self.folder.name].state_dir / ARCHIVE_PATH

    async def pull(self) -> tuple[bool, str]:
        record = self.context.state.record_of(self.task.key)
        pulled = await pull_for(self.context, self.task, recorded_address(self.context.spec, record))
        return pulled.has_output, pulled.problem

    @property
    def output(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("test_output/*"))


@pytest.fixture
def pulling(tmp_path: Path) -> PulledAgent:
    return PulledAgent(tmp_path)


async def test_pulled_work_of_removed_agent_counts(pulling: PulledAgent) -> None:
    archive = await pulling.launch(1)
    assert await pulling.pull() == (True, "")
    shutil.rmtree(archive.parents[2])
    assert await pulling.pull() == (True, "")
    assert pulling.output == ["testing_agent_outcome.json"]
    assert was_pulled(pulling.folder, pulling.context.address_of(pulling.folder.name, 1).agent_id)
    assert not was_pulled(pulling.folder, "")


async def test_broken_archive_replaces_nothing(pulling: PulledAgent) -> None:
    archive = await pulling.launch(1)
    await pulling.pull()
    archive.write_bytes(packed_outcome(summary_markdown="x" * 10_000)[:-20])
    has_output, problem = await pulling.pull()
    assert not has_output
    assert problem.startswith("its archive is broken")
    assert pulling.output == ["testing_agent_outcome.json"]
    assert [path.name for path in pulling.folder.iterdir() if "pulling" in path.name] == []


async def test_work_of_earlier_launch_does_not_count(pulling: PulledAgent) -> None:
    await pulling.launch(1)
    await pulling.pull()
    (await pulling.launch(2)).unlink()
    assert await pulling.pull() == (False, "")
    assert pulling.output == ["testing_agent_outcome.json"], "nothing whole has replaced it"


async def test_interrupted_pull_is_completed(pulling: PulledAgent) -> None:
    archive = await pulling.launch(1)
    await pulling.pull()
    shutil.rmtree(archive.parents[2])
    folder, unpacked = pulling.folder, pulling.folder / UNPACKED_FOLDER
    agent_id = pulling.context.address_of(folder.name, 1).agent_id
    unpacked.mkdir()
    (folder / "test_output").rename(unpacked / "test_output")
    (folder / "branch.bundle").write_bytes(b"of an earlier launch")
    (folder / ".pulled-from").unlink()
    (unpacked / ".pulled-from").write_text(f"{agent_id}\ntest_output")
    assert was_pulled(folder, agent_id)
    for _ in range(2):
        assert await pulling.pull() == (True, "")
        assert pulling.output == ["testing_agent_outcome.json"]
        assert not (folder / "branch.bundle").exists()
        assert not unpacked.exists()
