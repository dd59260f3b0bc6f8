"""Record what is due for the budget, and ask agents that reached their limit to submit."""

from __future__ import annotations

import asyncio
from typing import Final

from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.money.budget import SUBMIT_NOW, due_events
from swarm_tui.money.events import OverBudget, limit_text
from swarm_tui.sweep.agent_context import AgentWatches
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.messages import AgentMessages

GRACE: Final = 120.0
"""Seconds that an agent has to submit after it reached its limit."""


class BudgetGuard:
    """The budget of one sweep and of its agents."""

    def __init__(self, context: SweepContext, live_agents: AgentWatches, messages: AgentMessages) -> None:
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
        """Record the events that are due. Return the tests whose agents were asked to submit and did not in time."""
        context = self._context
        working = [
            test
            for test, watch in self._live_agents.watches.items()
            if test != INTEGRATOR_KEY and not watch.has_archive
        ]
        for event in list(due_events(context.state, working)):
            context.record(event)
            if isinstance(event, OverBudget):
                text = SUBMIT_NOW.format(budget=limit_text(event.budget))
                task = group.create_task(self._messages.send([event.test], text, by="the budget"))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        asked = [test for test in working if context.state.record_of(test).over_budget_at is not None]
        self._asked_at = {test: self._asked_at.get(test, now) for test in asked}
        return [test for test, since in self._asked_at.items() if now - since >= self.grace]
