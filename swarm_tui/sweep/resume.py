"""Resume a sweep after its engine has exited: adopt living agents, and launch nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr_messages import is_agent_name
from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.agents.judging import ENDED_BY_ITSELF, AgentEnd
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, AgentStatus, HostUnreachable, ReadRequest
from swarm_tui.hosts.registry import open_hosts
from swarm_tui.journal.events import AgentsStopped, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder, runs_folder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.event import INTEGRATOR_KEY, Event
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import SweepSpec
from swarm_tui.sweep.agent import SWEEP_STOPPED
from swarm_tui.sweep.agent_context import agent_id_of, launched_event, recorded_address
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.integrator import continued_integration
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.launch import protect, pull_for, wait_for_creates
from swarm_tui.sweep.pull import was_pulled
from swarm_tui.sweep.run import RunningSweep
from swarm_tui.sweep.stop import destroy_agents

_LIVING: Final = frozenset({"RUNNING", "WAITING", "REPLACED"})
LOST_ENDS: Final = ENDED_BY_ITSELF | {AgentEnd.NOT_LAUNCHED}
"""Ends without information about the test: its agent was killed, closed, removed or never created."""


async def check_continued(folder: SweepFolder, spec: SweepSpec) -> None:
    """Raise UsageError for a sweep that cannot be resumed here: it was copied, or its agents are on another machine."""
    if spec.is_newer_format:
        raise UsageError(f"{folder.name} was created by a newer swarm-tui", "update swarm-tui to resume it")
    if not Path(spec.repository).is_dir():
        raise UsageError(f"the repository {spec.repository} does not exist any more", "restore it to resume the sweep")
    expected = (runs_folder(Path(spec.repository)) / spec.sweep).resolve()
    if folder.root.resolve() != expected:
        raise UsageError(f"{folder.root} is a copy of a sweep", f"resume the original: {expected}")
    local = open_hosts(spec).local
    # The sweep may be the first of all, and mngr creates its folder with its first agent.
    is_elsewhere = not spec.access and not Path(local.host_dir).is_dir()
    if is_elsewhere and any(record.agent_id for record in open_sweep(folder).state.tests()):
        raise UsageError(
            f"mngr's folder {local.host_dir} is not on this machine",
            "resume the sweep on the machine where it was started",
        )


@dataclass(frozen=True, slots=True)
class Resumer:
    """Compares the journal with the agents that exist."""

    context: SweepContext
    sweep: RunningSweep
    is_relaunching: bool = False
    _queued_again: list[tuple[TestRecord, AgentStatus | None, str]] = field(default_factory=list)
    """The tests to queue again, each with the agent to remove first, and the reason."""

    async def resume(self, events: Iterable[Event]) -> None:
        await wait_for_creates(self._records())
        await asyncio.to_thread(self.context.copy_source.remove_left_over)
        try:
            found = await self.context.hosts.statuses()
        except HostUnreachable as error:
            raise SwarmError(f"the state of the agents is unknown: {error.message}", error.hint) from error
        for record in self._records():
            if not is_agent_name(record.agent):
                self._give_up(record)
            elif record.host in found.lost:
                self._resume_unseen(record, found.lost[record.host])
            else:
                await self._resume_agent(record, found.agents)
        await self._queue_again()
        self._stop_left_over(events, found.agents)
        for host in self.sweep.pool.hosts:
            for agent in self.sweep.hosts.stale_agents(host, found.agents):
                if agent.state != "STOPPED" and not self.context.spec.keep_agents:
                    self.sweep.stopper.stop_left_over(agent.address, is_working=True)

    def _give_up(self, record: TestRecord) -> None:
        """Fail a test whose agent's name is missing in sweep.json and in the journal."""
        self.sweep.agents.pop(record.test, None)
        if not record.is_finished:
            report = PulledWork(errored=True, end=AgentEnd.NOT_LAUNCHED.value)
            reason = "lines of the journal are lost, so its agent is unknown"
            self.context.record(Pulled(test=record.test, result=Result.ERROR, reason=reason, pulled=report))

    def _resume_unseen(self, record: TestRecord, reason: str) -> None:
        """Resume a test whose agent's host does not answer. The journal's state counts until the host is back."""
        if record.state in (State.RUNNING, State.WAITING, State.PULLING):
            self._watch(record.test)
        elif record.state is State.LAUNCHING:
            self._queued_again.append((record, None, f"its launch was interrupted, and {reason}"))
        elif record.state is State.STOPPED and record.reason == SWEEP_STOPPED:
            self._queued_again.append((record, None, "the sweep was resumed"))

    def _records(self) -> list[TestRecord]:
        integrator = self.context.state.integrator
        return [*self.context.state.tests(), *([integrator] if integrator is not None else [])]

    async def _resume_agent(self, record: TestRecord, agents: Mapping[str, AgentStatus]) -> None:
        agent = self._own_agent(record, agents)
        match record.state:
            case State.QUEUED:
                if agent is not None:
                    self._queued_again.append((record, agent, ""))
            case State.LAUNCHING:
                is_living = agent is not None and agent.state != "STOPPED"
                await self._adopt_or_queue(record, agent, "its launch was interrupted", is_living=is_living)
            case State.RUNNING | State.WAITING | State.PULLING:
                await self._resume_working(record, agent)
            case State.STOPPED if record.reason == SWEEP_STOPPED:
                # It may have submitted its work after the stop was recorded.
                await self._adopt_or_queue(record, agent, "the sweep was resumed")
            case State.DONE if record.pulled.end == AgentEnd.OUT_OF_RESOURCES:
                await self._adopt_or_queue(record, agent, "this machine had run out of resources")
            case State.DONE if self.is_relaunching and record.pulled.end in LOST_ENDS:
                self._queued_again.append((record, agent, f"relaunched: {record.reason}"))

    async def _resume_working(self, record: TestRecord, agent: AgentStatus | None) -> None:
        is_over = await self._has_archive(recorded_address(self.context.spec, record))
        if agent is not None and (agent.state in _LIVING or is_over):
            await self._adopt(record, agent)
        elif (self.is_relaunching or record.test == INTEGRATOR_KEY) and not is_over:
            await self._keep_work(record)
            self._queued_again.append((record, agent, "its agent was gone"))
        else:
            # The next poll observes that the agent has exited, and its remaining work is pulled.
            self._watch(record.test)

    def _watch(self, key: str) -> None:
        if key != INTEGRATOR_KEY:
            self.sweep.adopt(TestJob(key, self.context.spec))
            return
        job = continued_integration(self.context)
        if job is None:
            # Its inputs are lost, so its work could not be checked.
            return
        self.sweep.is_integration_due = False
        self.sweep.adopt(job)

    def _own_agent(self, record: TestRecord, agents: Mapping[str, AgentStatus]) -> AgentStatus | None:
        """Return the agent of a test if this sweep has created it."""
        launches = range(record.launch, 0, -1)
        ids = (agent_id_of(self.context.spec, record.agent, launch_number) for launch_number in launches)
        return next((agents[agent_id] for agent_id in ids if agent_id in agents), None)

    async def _adopt_or_queue(
        self, record: TestRecord, agent: AgentStatus | None, reason: str, *, is_living: bool = False
    ) -> None:
        if agent is not None and (is_living or await self._has_archive(agent.address)):
            await self._adopt(record, agent)
        else:
            self._queued_again.append((record, agent, reason))

    async def _adopt(self, record: TestRecord, agent: AgentStatus) -> None:
        self.context.record(launched_event(record.test, agent.address, is_adopted=True))
        if record.state is State.LAUNCHING:
            await protect(self.context, agent.address)
        self._watch(record.test)

    async def _queue_again(self) -> None:
        """Remove the old agents with one call, and queue their tests."""
        agents = [agent.address for _, agent, _ in self._queued_again if agent is not None]
        if agents:
            is_branch_ours = self.context.spec.transfer == "worktree"
            for failure in await destroy_agents(
                self.context.mngr, self.context.hosts, agents, is_branch_deleted=is_branch_ours
            ):
                self.context.note(f"{failure.agent} could not be removed: {failure.error}", level="warning")
        for record, _, reason in self._queued_again:
            if reason and record.test != INTEGRATOR_KEY:
                self.context.record(Queued(test=record.test, reason=reason))
                self.sweep.add(record.test)

    async def _keep_work(self, record: TestRecord) -> None:
        """Pull the work of a lost agent, because the next agent starts in a fresh copy."""
        if record.test == INTEGRATOR_KEY:
            return
        job = TestJob(record.test, self.context.spec)
        pulled = await pull_for(self.context, job, recorded_address(self.context.spec, record))
        for note in pulled.notes:
            self.context.note(note, test=record.test)

    def _stop_left_over(self, events: Iterable[Event], agents: Mapping[str, AgentStatus]) -> None:
        """Stop agents whose work was pulled by an engine that was killed before it stopped them."""
        if self.context.spec.keep_agents:
            return
        stopped = {agent for event in events if isinstance(event, AgentsStopped) for agent in event.agents}
        for record in self._records():
            agent = self._own_agent(record, agents)
            if record.is_finished and agent is not None and agent.state != "STOPPED":
                self.sweep.stopper.stop_left_over(agent.address, is_working=record.agent not in stopped)

    async def _has_archive(self, agent: AgentAddress) -> bool:
        """Return whether an agent has submitted its work, even if an engine pulled it and was then killed."""
        (archive,) = await self.context.hosts.read_files([ReadRequest(AgentFile(agent, ARCHIVE_PATH))])
        return archive is not None or any(
            was_pulled(folder, agent.agent_id)
            for folder in (self.context.folder.agent(agent.name), self.context.folder.integrator)
        )
