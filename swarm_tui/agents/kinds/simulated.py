"""Simulated: the agents of a simulated sweep, which are events and nothing else."""

from __future__ import annotations

from swarm_tui.agents.kinds import AgentKind


class SimulatedKind(AgentKind):
    """Agents that do not exist."""

    AGENT_TYPES = ("simulated",)
    is_simulated = True


KIND = SimulatedKind
