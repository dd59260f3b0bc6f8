"""What becomes of tests when their host is given up, and of agents when their host is back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.agents.judging import End
from swarm_tui.engine.names import agent_id_of
from swarm_tui.model.events import Harvested, Launched, Queued
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.states import Result, State
from swarm_tui.places.place import AgentFile, PlaceUnreachable, ReadRequest

if TYPE_CHECKING:
    from swarm_tui.engine.sweep_runner import SweepRunner

_LIVING: Final = frozenset({"RUNNING", "WAITING", "REPLACED"})


def leave_hosts(runner: SweepRunner, hosts: Sequence[str]) -> None:
    """Queue the tests again whose agents are on hosts that were given up; without any other host they fail."""
    context = runner.context
    lost = [test for test, watch in runner.live_agents.watches.items() if watch.address.host in hosts]
    for test in lost:
        if runner.is_busy_with(test):
            continue
        watch = runner.live_agents.watches.pop(test)
        host = context.state.hosts[watch.address.host]
        reason = f"{host.name} was given up: {host.reason}"
        if runner.pool.why_hopeless(runner.hosts.gone):
            report = HarvestReport(errored=True, end=End.GONE.value)
            context.record(Harvested(test=test, result=Result.FAILED, reason=reason, harvest=report))
            runner.is_integration_due = True
        else:
            context.record(Queued(test=test, reason=reason))
            runner.queue[test] = None


async def take_up_again(runner: SweepRunner, host: str) -> None:
    """Adopt the agents of queued tests that went on while their host was away; stop those that others replaced."""
    context = runner.context
    try:
        found = (await context.place.agent_statuses()).agents
        stale = runner.hosts.stale_agents(host, found)
        archives = await context.place.read_files([ReadRequest(AgentFile(one.address, ARCHIVE_PATH)) for one in stale])
    except PlaceUnreachable:
        # It is lost again.
        return
    test_of = {record.agent: record.test for record in context.state.tests()}
    for status, archive in zip(stale, archives, strict=True):
        record = context.state.record_of(test_of[status.name])
        is_last = status.address.agent_id == agent_id_of(context.spec, status.name, record.attempt)
        is_of_use = status.state in _LIVING or archive is not None
        if is_last and is_of_use and record.state is State.QUEUED and record.test in runner.queue:
            del runner.queue[record.test]
            context.record(
                Launched(
                    test=record.test,
                    agent_id=status.address.agent_id,
                    host=host,
                    work_dir=status.address.work_dir,
                    state_dir=status.address.state_dir,
                    is_adopted=True,
                )
            )
            task = runner.task_of(record.test)
            adopted = context.state.record_of(record.test)
            runner.live_agents.watch_agent(context.spec, task, adopted, is_adopted=True)
        elif status.state != "STOPPED":
            runner.live_agents.stop_later(status.address, is_working=True)
