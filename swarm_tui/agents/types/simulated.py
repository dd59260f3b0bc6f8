"""The agents of a simulated sweep, which exist only as events."""

from __future__ import annotations

from swarm_tui.agents.types import AgentType


class SimulatedType(AgentType):
    """Agents that are never launched."""

    AGENT_TYPES = ("simulated",)
    is_simulated = True


AGENT_TYPE = SimulatedType
