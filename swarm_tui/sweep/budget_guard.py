"""Holds a sweep to its budget: records what is reached, and has agents that used up their own hand in their work."""

from __future__ import annotations

import asyncio
from typing import Final

from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.money.budget import due_budget_events
from swarm_tui.money.events import OverBudget, limit_text
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.live_agents import LiveAgents
from swarm_tui.sweep.messages import AgentMessages

GRACE: Final = 120.0
"""So many seconds an agent has to hand in its work when it has used up its budget."""
HAND_IN_NOW: Final = (
    "You have used up your budget of {budget}. Hand in now: commit what you have as it is, write the outcome, and "
    "do the last step of your task. Begin nothing new."
)


class BudgetGuard:
    """Compares what is spent with the budget."""

    def __init__(self, context: SweepContext, live_agents: LiveAgents, messages: AgentMessages) -> None:
        self.grace = GRACE
        self._context = context
        self._live_agents = live_agents
        self._messages = messages
        self._asked_at: dict[str, float] = {}
        """When each agent was asked, by the monotonic clock; after a resume, when this engine first saw it."""
        self._tasks: set[asyncio.Task[list[str]]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether an agent is being asked."""
        return bool(self._tasks)

    def work(self, group: asyncio.TaskGroup, now: float) -> list[str]:
        """Record what is reached, ask agents to hand in, and return the tests whose agents have not done so in time."""
        context = self._context
        working = [
            test
            for test, watch in self._live_agents.watches.items()
            if test != INTEGRATOR_KEY and not watch.has_archive
        ]
        for event in list(due_budget_events(context.state, working)):
            context.record(event)
            if isinstance(event, OverBudget):
                text = HAND_IN_NOW.format(budget=limit_text(event.budget))
                task = group.create_task(self._messages.send([event.test], text, by="the budget"))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        asked = [test for test in working if context.state.record_of(test).over_budget_at is not None]
        self._asked_at = {test: self._asked_at.get(test, now) for test in asked}
        return [test for test, since in self._asked_at.items() if now - since >= self.grace]
