"""Records the terminal of every agent of a sweep that asks for it."""

from __future__ import annotations

from swarm_tui.adapters.cast_writer import SIZE_LIMIT
from swarm_tui.engine.context import EngineContext
from swarm_tui.errors import AdapterError
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.places.place import AgentAddress, AgentFile
from swarm_tui.places.ssh_recording import RECORDING


async def bring_recording(context: EngineContext, agent: AgentAddress, attempt: int) -> None:
    """Bring the recording of an agent on another host, where the recorder has written it."""
    cast = context.folder.recordings(agent.name) / f"agent-{attempt}.cast"
    if context.spec.is_recorded and agent.host != LOCAL_HOST:
        cast.parent.mkdir(parents=True, exist_ok=True)
        await context.place.fetch_file(AgentFile(agent, RECORDING), cast, limit=SIZE_LIMIT)


async def record_agent(context: EngineContext, agent: AgentAddress, attempt: int) -> None:
    """Record an agent's terminal from now to its end; an agent that cannot be recorded is still an agent."""
    cast = context.folder.recordings(agent.name) / f"agent-{attempt}.cast"
    if cast.exists():
        # An engine that was resumed took the agent up again: the recorder lives with the pane, not with the engine.
        return
    try:
        await context.place.record_terminal(agent, cast)
    except AdapterError as error:
        context.note(f"{agent.name} is not recorded: {error}", level="warning")
