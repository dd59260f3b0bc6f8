"""Carry out what is due for agents with API errors: record events, send messages, launch tests again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.adapters.machine import read_machine
from swarm_tui.agents.login import check_login
from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.errors import UsageError
from swarm_tui.limits.events import DialTurned, LoginRestored
from swarm_tui.limits.recovery import Recovery, Relaunch, TellToContinue
from swarm_tui.sweep.agent_context import AgentWatches
from swarm_tui.sweep.context import SweepContext, agents_environment
from swarm_tui.sweep.messages import AgentMessages

OURS: Final = "swarm-tui"


@dataclass(slots=True)
class ThrottledAgents:
    """The agents of one sweep with API errors."""

    context: SweepContext
    live_agents: AgentWatches
    messages: AgentMessages
    relaunch: Callable[[str, str], None]
    """Queues a test again, with a reason."""
    recovery: Recovery = field(init=False)

    def __post_init__(self) -> None:
        self.recovery = Recovery(self.context.state)

    def work(self, group: asyncio.TaskGroup, clock: float) -> None:
        """Do what is due; `clock` is the time since 1970."""
        spec = self.context.spec
        machine = None if spec.is_load_ignored or spec.access else read_machine()
        for due in self.recovery.due(self.live_agents.watches.keys(), clock, machine):
            match due:
                case Relaunch():
                    self.relaunch(due.test, due.reason)
                case TellToContinue():
                    group.create_task(self._tell(due))
                case _:
                    self.context.record(due)

    async def release(self, by: str) -> str:
        """Continue after a lost login or a limit because the user requests it. Return why that is impossible, or ""."""
        state, spec = self.context.state, self.context.spec
        if state.access.lost:
            try:
                await check_login(agent_type_of_sweep(spec), agents_environment(spec, self.context.repository))
            except UsageError as error:
                return str(error)
        self.context.record(LoginRestored(by=by))
        if state.access.dial.until is not None:
            self.context.record(DialTurned(slots=state.access.dial.slots, cause=state.access.dial.cause))
        self.recovery.released()
        return ""

    async def _tell(self, due: TellToContinue) -> None:
        problem = "it was interrupted"
        try:
            problem = next(iter(await self.messages.send([due.test], due.text, by=OURS)), "")
        finally:
            relaunch = self.recovery.told(due.test, problem)
        if relaunch is not None:
            self.relaunch(relaunch.test, relaunch.reason)
