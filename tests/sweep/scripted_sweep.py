"""A sweep without mngr, tmux or processes: agents in memory that submit their work immediately."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr_messages import Created, CreateRequest
from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.hosts.protocol import AgentAddress, AgentStatuses
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import EngineStarted, Launched, Launching
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.recover import take_up_journal
from swarm_tui.journal.state import SweepState
from swarm_tui.model.spec import MngrSettings, SweepSpec, derive_tests
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.engine import run_engine
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.launch import follow_agent
from swarm_tui.sweep.start import write_sweep
from swarm_tui.sweep.watch import AgentFollower
from tests.fake_mngr import FakeMngr
from tests.git_project import GitProject
from tests.hosts.fake_host import FakeHost


def packed_outcome(**fields: object) -> bytes:
    """Return an archive with an agent's report."""
    content = json.dumps({"tests_passing_before": True, "tests_passing_after": True} | fields).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as packed:
        entry = tarfile.TarInfo("test_output/testing_agent_outcome.json")
        entry.size = len(content)
        packed.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class QuickMngr(FakeMngr):
    """Creates agents that finish immediately. `refuse` can raise an error instead."""

    def __init__(self, root: Path, refuse: Callable[[CreateRequest], None] = lambda _: None) -> None:
        super().__init__(root)
        self.archive = packed_outcome()
        self.created: list[str] = []
        self._refuse = refuse

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        self._refuse(request)
        created = await super().create(request, timeout)
        self.created.append(request.name)
        archive = self.agents[request.name].state_dir / ARCHIVE_PATH
        archive.parent.mkdir(parents=True)
        archive.write_bytes(self.archive)
        return created


class IdleMngr(QuickMngr):
    """Creates agents that do nothing."""

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        created = await super().create(request, timeout)
        (self.agents[request.name].state_dir / ARCHIVE_PATH).unlink()
        return created


class QuietHost(FakeHost):
    """A host that reports each agent as running until it is stopped."""

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        statuses = (await super().statuses()).agents
        return AgentStatuses(
            {
                name: replace(status, state="STOPPED" if status.state == "STOPPED" else "RUNNING")
                for name, status in statuses.items()
            }
        )


def scripted_sweep(
    root: Path, tests: int, mngr: QuickMngr, clock: Callable[[], float] = time.time, /, **wishes: Any
) -> SweepContext:
    """Return a new sweep with this number of tests. It does not run until `run_engine_on`."""
    names = [f"tests/test_{number % 50}.py::test_{number}" for number in range(tests)]
    return scripted_sweep_of(root, {"README.md": "a project\n"}, names, mngr, clock, **wishes)


def scripted_sweep_of(
    root: Path,
    files: Mapping[str, str],
    tests: Sequence[str],
    mngr: QuickMngr,
    clock: Callable[[], float] = time.time,
    /,
    **wishes: Any,
) -> SweepContext:
    """Return a new sweep with these node ids in a project with these files."""
    project = GitProject(root / "project")
    base = project.commit("Begin", files)
    spec = msgspec.convert(
        {
            "sweep": "20261118-061200",
            "repository": str(project.root),
            "base": base,
            "created_at": time.time(),
            "agent_type": "offline",
            "integrator": "none",
            "slots": 50,
            "python": "python3",
            "mngr": MngrSettings(path="mngr", host_dir=str(mngr.root)),
        }
        | wishes,
        SweepSpec,
    )
    folder = SweepFolder(create_runs_folder(project.root) / spec.sweep)
    names = [(test, test.partition("::")[0], 1) for test in tests]
    write_sweep(folder, spec, derive_tests(spec.sweep, names))
    spec = folder.read_spec()
    taken_up = take_up_journal(folder, spec, clock)
    context = SweepContext(
        folder=folder,
        spec=spec,
        writer=taken_up.writer,
        state=taken_up.state,
        mngr=mngr,
        hosts=Hosts([QuietHost(mngr)]),
        repository=Repository.open(project.root),
        shortage_pauses=(0.0,),
    )
    context.record(EngineStarted(pid=1, slots=spec.slots))
    return context


@dataclass
class Watches:
    """Agents that are followed without an engine."""

    watches: dict[str, AgentFollower] = field(default_factory=dict)

    def follow(self, context: SweepContext, test: str, *, is_adopted: bool = False) -> AgentFollower:
        job, record = TestJob(test, context.spec), context.state.records[test]
        self.watches[test] = follow_agent(context, job, record, is_adopted=is_adopted)
        return self.watches[test]


def run_engine_on(context: SweepContext) -> int:
    """Run the engine of a scripted sweep to its end, and return its exit code."""
    context.writer.close()

    def reopened(folder: SweepFolder, spec: SweepSpec, writer: JournalWriter, state: SweepState) -> SweepContext:
        return replace(context, folder=folder, spec=spec, writer=writer, state=state)

    return run_engine(context.folder.root, open_context=reopened)


def record_launch(context: SweepContext, record: TestRecord, address: AgentAddress) -> None:
    """Record the launch of a test's agent at an address."""
    context.record(Launching(test=record.test, host=address.host))
    context.record(
        Launched(
            test=record.test,
            agent_id=address.agent_id,
            host=address.host,
            state_dir=address.state_dir,
            work_dir=address.work_dir,
        )
    )
