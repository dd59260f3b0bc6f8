"""Record which agents are stuck, and send each of them one message if the user wants that."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.limits.stuck import NUDGE, due_events
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.sweep.agent_context import AgentWatches
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.messages import AgentMessages

INTERVAL: Final = 5.0


@dataclass(slots=True)
class StuckAgents:
    """The agents of one sweep that are stuck."""

    context: SweepContext
    live_agents: AgentWatches
    messages: AgentMessages
    _due: float = 0.0
    _nudges: set[asyncio.Task[list[str]]] = field(default_factory=set)

    def work(self, group: asyncio.TaskGroup, clock: float) -> None:
        """Record the events that are due; `clock` is the time since 1970."""
        if 0 <= clock - self._due < INTERVAL:
            return
        self._due = clock
        watches = self.live_agents.watches.items()
        calls = {test: (watch.repeats.call, watch.repeats.times) for test, watch in watches if test != INTEGRATOR_KEY}
        for event in list(due_events(self.context.state, calls, clock, is_nudging=self.context.spec.is_nudging)):
            self.context.record(event)
            if event.is_nudged:
                text = NUDGE.format(reason=event.reason)
                task = group.create_task(self.messages.send([event.test], text, by="swarm-tui"))
                self._nudges.add(task)
                task.add_done_callback(self._nudges.discard)
