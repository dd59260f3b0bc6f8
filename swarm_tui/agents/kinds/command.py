"""Command: mngr's type for any command line that a person gives."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.agents.kinds import AgentKind


class CommandKind(AgentKind):
    """Programs that do as they are written."""

    AGENT_TYPES = ("command",)
    has_model = False

    @property
    def plugin(self) -> str:
        return ""

    def argument_problem(self, arguments: Sequence[str]) -> tuple[str, str]:
        if arguments:
            return "", ""
        return "--agent command needs the command", "give its words with --agent-argument, one by one"


KIND = CommandKind
