"""The mngr type that runs any command line."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.agents.types import AgentType


class CommandType(AgentType):
    """Programs without a model."""

    AGENT_TYPES = ("command",)
    has_model = False

    @property
    def plugin(self) -> str:
        return ""

    def argument_problem(self, arguments: Sequence[str]) -> tuple[str, str]:
        if arguments:
            return "", ""
        return "--agent command requires a command", "give each of its arguments with --agent-argument"


AGENT_TYPE = CommandType
