"""Records which agents are stuck and why, and nudges them once where that is wished."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.journal.record import TestRecord
from swarm_tui.limits.events import Stuck
from swarm_tui.limits.stuck import typical_agent, why_stuck
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.live_agents import LiveAgents
from swarm_tui.sweep.messages import AgentMessages

INTERVAL: Final = 5.0
NUDGE: Final = (
    "You seem to be stuck: {reason}. Try another way. If there is none, hand in what you have and say what blocks you."
)


@dataclass(slots=True)
class StuckAgents:
    """The agents of one sweep that are stuck."""

    context: SweepContext
    live_agents: LiveAgents
    messages: AgentMessages
    _due: float = 0.0
    _nudges: set[asyncio.Task[list[str]]] = field(default_factory=set)

    def work(self, group: asyncio.TaskGroup, clock: float) -> None:
        """Record who has got stuck, or goes on, since this was called last; `clock` is the time since 1970."""
        if 0 <= clock - self._due < INTERVAL:
            return
        self._due = clock
        state = self.context.state
        typical = typical_agent(state.tests())
        for test, watch in self.live_agents.watches.items():
            if test == INTEGRATOR_KEY:
                continue
            record, repeats = state.records[test], watch.repeats
            reason = why_stuck(record, typical, clock, repeated=repeats.call, times=repeats.times)
            # Numbers in a reason change; that somebody is stuck does not.
            if bool(reason) != bool(record.stuck):
                self._record(group, record, reason)

    def _record(self, group: asyncio.TaskGroup, record: TestRecord, reason: str) -> None:
        is_nudged = bool(reason) and self.context.spec.is_nudging and not record.is_nudged
        self.context.record(Stuck(test=record.test, reason=reason, is_nudged=is_nudged))
        if is_nudged:
            text = NUDGE.format(reason=reason)
            task = group.create_task(self.messages.send([record.test], text, by="swarm-tui"))
            self._nudges.add(task)
            task.add_done_callback(self._nudges.discard)
