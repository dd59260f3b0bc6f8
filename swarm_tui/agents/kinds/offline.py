"""Offline: swarm-tui's own agent, which plays recorded work and which mngr runs as a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm_tui.agents.kinds import AgentKind, AgentStart

if TYPE_CHECKING:
    from swarm_tui.agents.observation import AgentObserver


class OfflineKind(AgentKind):
    """Agents without a model."""

    AGENT_TYPES = ("offline",)
    has_model = False
    can_integrate = False
    is_ours = True
    plays_records = True

    @property
    def mngr_type(self) -> str:
        return "command"

    @property
    def plugin(self) -> str:
        return ""

    def prepare_command(self, start: AgentStart) -> tuple[str, ...]:
        from swarm_tui.agents.shipped import write_offline_program

        return (write_offline_program(start.shelf), str(start.task_file))

    def message(self, prompt: str) -> str | None:
        """Return None: everything is in its task file."""
        return None

    def new_observer(self) -> AgentObserver | None:
        """Return None: it has no model that could refuse it."""
        return None


KIND = OfflineKind
