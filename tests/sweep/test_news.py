"""What agents write reaches the journal, whether the system tells of it or one has to look."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from swarm_tui.agents.contract import TRIES_PATH
from swarm_tui.hosts.protocol import AgentAddress, AgentStatus, AgentStatuses
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.run import RunningSweep
from tests.fake_mngr import FakeMngr
from tests.hosts.fake_host import FakeHost
from tests.sweep.scripted_sweep import QuickMngr, record_launch, scripted_sweep
from tests.waiting import eventually


class AtWork(FakeHost):
    """A host with one agent, which is always running."""

    def __init__(self, mngr: FakeMngr) -> None:
        super().__init__(mngr)
        self.address: AgentAddress | None = None

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        assert self.address is not None
        return AgentStatuses({self.address.agent_id: AgentStatus(self.address, "RUNNING")})


class Untold(AtWork):
    """The same on a disk without notifications."""

    def on_change(self, tell: Callable[[str], object]) -> None:
        """Tell nothing."""

    def reports_changes(self) -> bool:
        return False


def begin(root: Path, kind: type[AtWork]) -> tuple[SweepContext, RunningSweep, Path]:
    """Return a sweep with one agent at work, and the file of its tries."""
    mngr = QuickMngr(root / "mngr")
    context = scripted_sweep(root, 1, mngr)
    host = kind(mngr)
    context.hosts = Hosts([host])
    (record,) = context.state.tests()
    host.address = address = context.address_of(record.agent, 1)
    record_launch(context, record, address)
    runner = RunningSweep(context, tick=1.0 if kind is AtWork else 0.02)
    runner.adopt(TestJob(record.test, context.spec))
    return context, runner, Path(address.state_dir) / TRIES_PATH


@pytest.mark.parametrize("kind", [AtWork, Untold])
async def test_tries_and_requests_are_seen_whether_told_or_not(kind: type[AtWork], tmp_path: Path) -> None:
    context, runner, tries = begin(tmp_path, kind)
    (test,) = context.state.records
    working = asyncio.ensure_future(runner.run(RequestHandler(context, runner)))
    for number in range(1, 4):
        tries.parent.mkdir(parents=True, exist_ok=True)
        with tries.open("a") as file:
            file.write(json.dumps({"kind": "start", "run": str(number)}) + "\n")
        await eventually(lambda number=number: len(context.state.records[test].tries) == number, f"try {number}")  # type: ignore[misc]
    request = append_request(context.folder, RequestKind.SLOTS, slots=7)
    await eventually(lambda: request.id in context.state.answers, "the answer")
    assert context.state.slots == 7
    working.cancel()
    await asyncio.wait([working])
    await context.hosts.close()
