"""The integrator lives as every agent does: launched with an environment, retried, adopted, asked, stopped."""

from __future__ import annotations

import asyncio
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr_messages import Created, CreateRequest
from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.hosts.registry import Hosts
from swarm_tui.integrator.events import IntegrationStarted
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import EngineEnded, EngineStarted, Launched, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.recover import recover_journal
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.pulled import PulledChange, PulledWork
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.engine import integrate_sweep
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.resume import Resumer
from swarm_tui.sweep.run import RunningSweep
from tests.fake_mngr import FakeMngr
from tests.integrator.integrator_project import CODE, SWEEP, TEST_FILE, SweptProject, changed
from tests.sweep.scripted_sweep import QuietHost
from tests.waiting import PATIENCE, eventually

NAME = f"swarm-{SWEEP}-integrator"
BRANCH = f"swarm/{SWEEP}/integrator"


class ProjectMngr(FakeMngr):
    """Creates agents that do nothing; `refuse` may keep one from being created."""

    def __init__(self, root: Path, refuse: Callable[[CreateRequest], None] = lambda _: None) -> None:
        super().__init__(root)
        self.requests: list[CreateRequest] = []
        self._refuse = refuse

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        self.requests.append(request)
        self._refuse(request)
        return await super().create(request, timeout)


class Sweep:
    """A sweep of one fix, whose agents are done and whose integrator is a coding agent."""

    def __init__(self, root: Path, mngr: FakeMngr, **changes: object) -> None:
        self.project, self.mngr = SweptProject(root / "project"), mngr
        fields = {
            "sweep": SWEEP,
            "repository": str(self.project.git.root),
            "base": self.project.base,
            "created_at": 1.0,
            "agent_type": "claude",
            "integrator": "agent",
            "identity": ("Ada Lovelace", "ada@example.org"),
            "import_roots": ("src",),
            "mngr": MngrSettings(path="mngr", host_dir=str(mngr.root)),
        }
        self.folder = SweepFolder(self.project.git.root / ".swarm" / "runs" / SWEEP)
        self.folder.write_spec(msgspec.convert(fields | changes, SweepSpec))
        (self.folder.root.parent.parent / ".gitignore").write_text("*\n")
        self.context = self.open()
        self.context.record(EngineStarted(pid=1, slots=2))
        fixed = changed(CODE, "first - second", "first + second")
        self.source = self.project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": fixed})])
        agent, branch = self.source.agent, self.source.branch
        self.context.record(Queued(test=self.source.test, agent=agent, branch=branch, file=TEST_FILE))
        change = PulledChange(kind="FIX_IMPL", status="SUCCEEDED")
        report = PulledWork(tip=self.source.tip, changes=(change,), passing_after=True)
        self.context.record(Pulled(test=self.source.test, result=Result.IMPL_FIX, pulled=report))

    def open(self) -> SweepContext:
        """Return a context as an engine has it that has just read the journal."""
        events = recover_journal(self.folder.events).events if self.folder.events.exists() else []
        state = SweepState().apply_all(events)
        writer = JournalWriter(self.folder.events, last_seq=state.last_seq, last_at=state.last_at)
        return SweepContext(
            folder=self.folder,
            spec=self.folder.read_spec(),
            writer=writer,
            state=state,
            mngr=self.mngr,
            hosts=Hosts([QuietHost(self.mngr)]),
            repository=Repository.open(self.project.git.root),
        )

    def hand_in(self) -> None:
        """Let the integrator that lives now hand in the fix as its branch."""
        bundle = self.mngr.root / "integrated.bundle"
        self.project.git.git("update-ref", f"refs/heads/{BRANCH}", self.source.tip)
        self.project.git.git("bundle", "create", "--quiet", str(bundle), f"{self.project.base}..{BRANCH}")
        self.project.git.git("update-ref", "-d", f"refs/heads/{BRANCH}")
        outcome = json.dumps({"impl_commit_hashes": {self.source.branch: self.source.tip}}).encode()
        archive = self.mngr.agents[NAME].state_dir / ARCHIVE_PATH
        archive.parent.mkdir(parents=True)
        with tarfile.open(archive.with_suffix(".draft"), "w:gz") as packed:
            packed.add(bundle, "branch.bundle")
            entry = tarfile.TarInfo("test_output/integrator_outcome.json")
            entry.size = len(outcome)
            packed.addfile(entry, io.BytesIO(outcome))
        archive.with_suffix(".draft").rename(archive)

    async def run(self, runner: RunningSweep) -> None:
        async with asyncio.timeout(PATIENCE):
            await runner.run(RequestHandler(runner.context, runner))

    async def until_launched(self, context: SweepContext) -> None:
        await eventually(lambda: context.state.record_of(INTEGRATOR_KEY).state is State.RUNNING, "the integrator")

    async def until_measured(self) -> None:
        """Wait until the built-in integrator has begun to measure what the agent has submitted."""
        ref = f"refs/swarm-fetched/{SWEEP}"
        await eventually(lambda: self.context.repository.ref(ref), "the submitted commits")
        await eventually((self.folder.integrator / "run-inputs.json").exists, "the measurement")


@pytest.fixture
def mngr(tmp_path: Path) -> ProjectMngr:
    (tmp_path / "mngr").mkdir()
    return ProjectMngr(tmp_path / "mngr")


@pytest.fixture
def sweep(tmp_path: Path, mngr: ProjectMngr) -> Iterator[Sweep]:
    sweep = Sweep(tmp_path, mngr)
    yield sweep
    sweep.context.writer.close()


async def kill_while_integrating(sweep: Sweep) -> None:
    """Run an engine until its integrator works, and end it without a word, as kill -9 does."""
    runner = RunningSweep(sweep.context, tick=0.01)
    running = asyncio.ensure_future(sweep.run(runner))
    await sweep.until_launched(sweep.context)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    sweep.context.writer.close()
    sweep.context = sweep.open()


async def test_the_integrator_of_a_killed_engine_is_adopted_and_launched_only_once(
    sweep: Sweep, mngr: ProjectMngr
) -> None:
    await kill_while_integrating(sweep)
    context = sweep.context
    context.record(EngineStarted(pid=2, slots=2, is_resumed=True))
    runner = RunningSweep(context, tick=0.01)
    await Resumer(context, runner).resume(recover_journal(sweep.folder.events).events)
    assert not runner.is_integration_due
    sweep.hand_in()
    await sweep.run(runner)
    assert [request.name for request in mngr.requests] == [NAME]
    assert (context.state.integration.state, context.state.integration.tip) == ("done", sweep.source.tip)
    events = recover_journal(sweep.folder.events).events
    assert [event.by for event in events if isinstance(event, IntegrationStarted)] == ["agent"]
    assert [event.is_adopted for event in events if isinstance(event, Launched)] == [False, True]
    assert mngr.agents[NAME].state == "STOPPED"
    assert sweep.project.git.git("for-each-ref", "--format=%(refname)", "refs/swarm-fetched") == ""


async def test_an_integrator_that_ended_while_no_engine_lived_is_begun_anew(sweep: Sweep, mngr: ProjectMngr) -> None:
    await kill_while_integrating(sweep)
    mngr.agents[NAME].state = "STOPPED"
    context = sweep.context
    runner = RunningSweep(context, tick=0.01)
    await Resumer(context, runner).resume(recover_journal(sweep.folder.events).events)
    running = asyncio.ensure_future(sweep.run(runner))
    await eventually(lambda: len(mngr.requests) == 2 and NAME in mngr.agents, "another integrator")
    await sweep.until_launched(context)
    sweep.hand_in()
    await running
    assert context.state.integration.state == "done"
    assert context.state.record_of(INTEGRATOR_KEY).launch == 2
    assert not sweep.folder.agent(NAME).exists(), "nothing of it is kept as if it were a test's"


async def test_it_gets_the_environment_of_an_agent(sweep: Sweep, mngr: ProjectMngr) -> None:
    await kill_while_integrating(sweep)
    (request,) = mngr.requests
    copy = sweep.context.address_of(NAME, 1).work_dir
    assert request.environment["PYTHONPATH"].split(os.pathsep)[0] == f"{copy}/src"
    assert request.environment["GIT_AUTHOR_NAME"] == "Ada Lovelace"
    assert "SWARM_TASK" not in request.environment
    assert (request.transfer, request.branch) == ("git-mirror", BRANCH)


async def test_a_launch_that_fails_is_repeated_and_an_impossible_one_leads_to_the_built_in_integrator(
    tmp_path: Path,
) -> None:
    def refuse(request: CreateRequest) -> None:
        if len(refusing.requests) == 1:
            raise AdapterError("no more disk")
        if len(refusing.requests) == 2:
            raise UsageError("this cannot be")

    (tmp_path / "mngr").mkdir()
    refusing = ProjectMngr(tmp_path / "mngr", refuse)
    sweep = Sweep(tmp_path, refusing)
    await sweep.run(RunningSweep(sweep.context, tick=0.01))
    assert [request.agent_type for request in refusing.requests] == ["claude", "claude"]
    integration = sweep.context.state.integration
    assert (integration.state, integration.by) == ("done", "builtin")
    assert integration.refused == "it could not be launched: this cannot be"
    sweep.context.writer.close()


async def test_integrator_that_never_ends_is_stopped_and_replaced(tmp_path: Path, mngr: ProjectMngr) -> None:
    sweep = Sweep(tmp_path, mngr, timeout=0.5)
    await sweep.run(RunningSweep(sweep.context, tick=0.01))
    integration = sweep.context.state.integration
    assert (integration.state, integration.by, integration.fixes) == ("done", "builtin", 1)
    assert integration.refused == "it did not submit its work in time"
    assert mngr.agents[NAME].state == "STOPPED"
    sweep.context.writer.close()


async def test_engine_killed_while_it_measures_a_branch_measures_it_again(sweep: Sweep, mngr: ProjectMngr) -> None:
    running = asyncio.ensure_future(sweep.run(RunningSweep(sweep.context, tick=0.01)))
    await sweep.until_launched(sweep.context)
    sweep.hand_in()
    await sweep.until_measured()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    sweep.context.writer.close()
    context = sweep.context = sweep.open()
    runner = RunningSweep(context, tick=0.01)
    await Resumer(context, runner).resume(recover_journal(sweep.folder.events).events)
    await sweep.run(runner)
    assert (context.state.integration.state, context.state.integration.by) == ("done", "agent")
    assert context.state.integration.tip == sweep.source.tip
    assert [request.name for request in mngr.requests] == [NAME]


async def test_stop_while_a_branch_is_measured_keeps_it(sweep: Sweep, mngr: ProjectMngr) -> None:
    context = sweep.context
    running = asyncio.ensure_future(sweep.run(RunningSweep(context, tick=0.01)))
    await sweep.until_launched(context)
    sweep.hand_in()
    await sweep.until_measured()
    append_request(sweep.folder, RequestKind.STOP_SWEEP)
    await running
    assert (context.state.integration.state, context.state.integration.detail) == (
        "failed",
        "stopped; `swarm-tui resume` repeats it",
    )
    assert sweep.project.git.git("rev-parse", BRANCH) == sweep.source.tip


async def test_a_message_reaches_it_and_stopping_the_sweep_stops_it(sweep: Sweep, mngr: ProjectMngr) -> None:
    context = sweep.context
    running = asyncio.ensure_future(sweep.run(RunningSweep(context, tick=0.01)))
    await sweep.until_launched(context)
    asked = append_request(sweep.folder, RequestKind.MESSAGE, tests=[INTEGRATOR_KEY], text="Rank by risk.")
    await eventually(lambda: asked.id in context.state.answers, "the answer")
    assert context.state.answers[asked.id].is_done
    assert mngr.agents[NAME].received[-1] == "Rank by risk."
    append_request(sweep.folder, RequestKind.STOP_SWEEP)
    await running
    assert (context.state.integration.state, context.state.integration.detail) == (
        "failed",
        "stopped; `swarm-tui resume` repeats it",
    )
    assert mngr.agents[NAME].state == "STOPPED"


async def test_what_it_asks_and_says_is_in_the_log(sweep: Sweep, mngr: ProjectMngr) -> None:
    context = sweep.context
    running = asyncio.ensure_future(sweep.run(RunningSweep(context, tick=0.01)))
    await sweep.until_launched(context)
    transcript = mngr.agents[NAME].state_dir / "events/claude/common_transcript/events.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps({"source": "agent", "message": "Which one first?"}) + "\n")
    await eventually(lambda: context.state.integration.last_line == "Which one first?", "its words")
    assert "the integrator: Which one first?" in [line.text for line in context.state.log]
    sweep.hand_in()
    await running
    assert (sweep.folder.integrator / "transcript.jsonl").is_file()


async def test_integrating_again_removes_the_integrator_of_before(sweep: Sweep, mngr: ProjectMngr) -> None:
    # An older version launched it, and its journal does not say so.
    address = sweep.context.address_of(NAME, 1)
    words = ("--id", address.agent_id, "--target-path", address.work_dir)
    await mngr.create(CreateRequest(name=NAME, source=sweep.project.git.root, extra_arguments=words))
    sweep.context.record(EngineEnded())
    running = asyncio.ensure_future(integrate_sweep(sweep.context))
    await sweep.until_launched(sweep.context)
    assert sweep.context.state.record_of(INTEGRATOR_KEY).launch == 2
    sweep.hand_in()
    async with asyncio.timeout(PATIENCE):
        await running
    assert sweep.context.state.integration.state == "done"
