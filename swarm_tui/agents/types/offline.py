"""The offline agent, which replays recorded work. mngr runs it as a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm_tui.agents.types import AgentStart, AgentType

if TYPE_CHECKING:
    from swarm_tui.agents.observer import AgentObserver


class OfflineType(AgentType):
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
        from swarm_tui.agents.packaged import write_offline_program

        return (write_offline_program(start.package_dir), str(start.task_file))

    def message(self, prompt: str) -> str | None:
        """Return None, because everything is in the task file."""
        return None

    def new_observer(self) -> AgentObserver | None:
        """Return None, because only a model could fail."""
        return None


AGENT_TYPE = OfflineType
