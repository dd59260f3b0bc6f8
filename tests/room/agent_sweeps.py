"""Sweeps for tests of the Agent screen: few tests, with transcripts and files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from textual.pilot import Pilot

from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import AgentStateChanged, Launched, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.journal.work_events import TryFinished
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.room.agent.screen import AgentScreen
from swarm_tui.room.app import RoomApp
from swarm_tui.room.settings import Settings
from swarm_tui.room.store import Store

SWEEP = "20261118-061200"


@dataclass(frozen=True)
class AgentSweep:
    """A sweep of a few tests, and the folder with the states of their agents."""

    folder: SweepFolder
    states: Path

    def transcript(self, name: str) -> Path:
        """Return the transcript file of a test's agent. Its folder exists."""
        path = self.states / name / "events" / "offline" / "common_transcript" / "events.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def pulled(self, name: str) -> Path:
        """Return the folder with the files that were pulled from a test's agent."""
        path = self.folder.agent(f"swarm-x-{name}")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def journal(self) -> JournalWriter:
        return JournalWriter(self.folder.events)


def make_sweep(
    root: Path,
    names: tuple[str, ...] = ("one", "two", "three"),
    mngr: MngrSettings | None = None,
    ids: Mapping[str, str] = MappingProxyType({}),
) -> AgentSweep:
    """Write a sweep: the first test is running, the second waits with a question, all others are finished."""
    folder = SweepFolder(create_runs_folder(root) / SWEEP)
    settings = mngr or MngrSettings(path="/nowhere/mngr", host_dir=str(root / "mngr"), tmux_tmpdir=str(root / "t"))
    folder.write_spec(
        SweepSpec(sweep=SWEEP, repository=str(root), base="0" * 40, created_at=1_794_982_000.0, mngr=settings)
    )
    sweep = AgentSweep(folder, root / "states")
    with sweep.journal() as journal:
        for name in names:
            journal.append(Queued(test=f"tests/test_a.py::test_{name}", agent=f"swarm-x-{name}"))
        for name in names:
            test = f"tests/test_a.py::test_{name}"
            journal.append(
                Launched(test=test, agent_id=ids.get(name, f"agent-{name}"), state_dir=str(sweep.states / name))
            )
            journal.append(
                TryFinished(test=test, number=1, passed=False, seconds=1.5, failure="E   assert 1 == 2\nfull")
            )
        if len(names) > 1:
            test = f"tests/test_a.py::test_{names[1]}"
            journal.append(AgentStateChanged(test=test, state=State.WAITING, question="Which one is right?"))
        for name in names[2:]:
            journal.append(
                Pulled(
                    test=f"tests/test_a.py::test_{name}",
                    result=Result.CLEAN,
                    pulled=PulledWork(summary="All is well."),
                )
            )
    return sweep


@asynccontextmanager
async def room_on(sweep: AgentSweep, size: tuple[int, int] = (110, 30)) -> AsyncIterator[tuple[RoomApp, Pilot[str]]]:
    store = Store(sweep.folder)
    while store.read_new_events():
        pass
    app = RoomApp(store, Settings(notify="none"))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


def agent_screen(app: RoomApp) -> AgentScreen:
    screen = app.screen
    assert isinstance(screen, AgentScreen)
    return screen
