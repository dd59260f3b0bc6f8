"""What an agent is launched for, and the harvest of what it hands in: the same for a test and for the integrator."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.agents.judging import End
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.pull import Pulled, pull_work
from swarm_tui.engine.recording import bring_recording
from swarm_tui.engine.surroundings import Surroundings
from swarm_tui.engine.watch import WatchedTask
from swarm_tui.model.events import Harvesting
from swarm_tui.model.state import TestRecord
from swarm_tui.places.place import AgentAddress, Place


class AgentTask(WatchedTask, Protocol):
    """The job of one agent. The runner launches, watches, harvests and stops the agents of all tasks alike."""

    @property
    def timeout(self) -> float:
        """How many seconds the agent may work."""

    @property
    def launch_attempts(self) -> int: ...

    def folder(self, context: EngineContext) -> Path:
        """Return the folder of the sweep into which the agent's work is pulled; it exists."""

    def commits_ref(self, context: EngineContext) -> str:
        """Return the ref under which the agent's commits are fetched into the user's repository."""

    def create_request(
        self, context: EngineContext, record: TestRecord, address: AgentAddress, around: Surroundings
    ) -> CreateRequest:
        """Return what mngr is asked for; the files that it names are written."""

    async def finish(self, context: EngineContext, pulled: Pulled, end: End) -> AgentTask | None:
        """Judge and record what the agent has handed in; return the task that is to be done instead, if any."""

    async def give_up(self, context: EngineContext, attempt: int, reason: str) -> AgentTask | None:
        """Record that the agent could not be launched; return the task that is to be done instead, if any."""

    def record_stop(self, context: EngineContext, reason: str) -> None:
        """Record that the agent was stopped before its end."""


async def harvest(
    context: EngineContext, task: AgentTask, agent: AgentAddress, end: End, place: Place | None = None
) -> AgentTask | None:
    """Pull and judge the work of an agent; return the task that is to be done instead, if any."""
    context.record(Harvesting(test=task.key, source=end.value))
    pulled = await pull_for(context, task, agent, place)
    for note in pulled.notes:
        context.note(note, level="warning", test=task.key)
    # An agent that is gone may have handed in its work to an engine that then died.
    return await task.finish(context, pulled, End.ARCHIVE if pulled.has_output else end)


async def pull_for(context: EngineContext, task: AgentTask, agent: AgentAddress, place: Place | None = None) -> Pulled:
    """Pull what an agent has made for a task; it lives in the sweep's place unless another is named."""
    if place is None:
        await bring_recording(context, agent, context.state.record_of(task.key).attempt)
    return await pull_work(
        place or context.place,
        agent,
        task.folder(context),
        repository=context.repository,
        base=context.spec.base,
        branch=context.state.record_of(task.key).branch,
        ref=task.commits_ref(context),
        sources=task.kind.transcript_sources,
    )
