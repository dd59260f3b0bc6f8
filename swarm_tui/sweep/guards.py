"""Carry out what the guards find due: budget, alerts, stuck agents, API errors. Their decisions are pure functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.adapters.machine import read_machine
from swarm_tui.agents.login import check_login
from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.errors import UsageError
from swarm_tui.failures import alerts
from swarm_tui.limits import stuck
from swarm_tui.limits.events import LoginRestored, ThrottleChanged
from swarm_tui.limits.recovery import Recovery, Relaunch, TellToContinue
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.formatting import counted
from swarm_tui.money import budget
from swarm_tui.money.events import AgentOverBudget, limit_text
from swarm_tui.sweep.agent_context import AgentWatches
from swarm_tui.sweep.context import SweepContext, agents_environment
from swarm_tui.sweep.messages import AgentMessages

ALERT_INTERVAL: Final = 1.0
STUCK_INTERVAL: Final = 5.0
OURS: Final = "swarm-tui"
GRACE: Final = 120.0
"""Seconds that an agent has to submit after it reached its limit."""


@dataclass(slots=True)
class BudgetGuard:
    """The budget of one sweep and of its agents."""

    context: SweepContext
    agents: AgentWatches
    messages: AgentMessages
    grace: float = GRACE
    _asked_at: dict[str, float] = field(default_factory=dict)
    """When each agent was asked, by the monotonic clock; after a resume, when this engine first saw it."""

    def work(self, group: asyncio.TaskGroup, now: float) -> list[str]:
        """Record the events that are due. Return the tests whose agents were asked to submit and did not in time."""
        context = self.context
        working = [
            test for test, watch in self.agents.watches.items() if test != INTEGRATOR_KEY and not watch.has_archive
        ]
        for event in list(budget.due_events(context.state, working)):
            context.record(event)
            if isinstance(event, AgentOverBudget):
                text = budget.SUBMIT_NOW.format(budget=limit_text(event.budget))
                group.create_task(self.messages.send([event.test], text, by="the budget"))
        asked = [test for test in working if context.state.record_of(test).over_budget_at is not None]
        self._asked_at = {test: self._asked_at.get(test, now) for test in asked}
        return [test for test, since in self._asked_at.items() if now - since >= self.grace]


@dataclass(slots=True)
class PatternGuard:
    """The alerts of one sweep, and the tests that are held because of them."""

    context: SweepContext
    _counts: alerts.CauseCounts = field(default_factory=alerts.CauseCounts)
    _due: float = 0.0
    _idle_since: float | None = None

    def work(self, now: float) -> None:
        """Record the events that are due."""
        if now < self._due:
            return
        self._due = now + ALERT_INTERVAL
        context = self.context
        for event in list(
            alerts.due_events(context.state, self._counts, context.spec.alert, context.spec.hold_similar)
        ):
            context.record(event)

    def unreleased(self, now: float, queue: list[str], *, is_idle: bool) -> list[str]:
        """Return the tests to stop: held tests, if the sweep has waited too long for nothing but their release."""
        records = self.context.state.records
        if not (is_idle and queue and all(records[test].held_for for test in queue)):
            self._idle_since = None
            return []
        if self._idle_since is None:
            self._idle_since = now
            tests = counted(len(queue), "test")
            self.context.note(
                f"only {tests} held because of similar failures are left; release or stop them", level="warning"
            )
        return queue if now - self._idle_since >= self.context.spec.wait_timeout else []


@dataclass(slots=True)
class StuckAgents:
    """The agents of one sweep that are stuck."""

    context: SweepContext
    agents: AgentWatches
    messages: AgentMessages
    _due: float = 0.0

    def work(self, group: asyncio.TaskGroup, clock: float) -> None:
        """Record the events that are due; `clock` is the time since 1970."""
        if 0 <= clock - self._due < STUCK_INTERVAL:
            return
        self._due = clock
        watches = self.agents.watches.items()
        calls = {test: (watch.repeats.call, watch.repeats.times) for test, watch in watches if test != INTEGRATOR_KEY}
        for event in list(stuck.due_events(self.context.state, calls, clock, is_nudging=self.context.spec.is_nudging)):
            self.context.record(event)
            if event.is_nudged:
                text = stuck.NUDGE.format(reason=event.reason)
                group.create_task(self.messages.send([event.test], text, by=OURS))


@dataclass(slots=True)
class ThrottledAgents:
    """The agents of one sweep with API errors."""

    context: SweepContext
    agents: AgentWatches
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
        for due in self.recovery.due(self.agents.watches.keys(), clock, machine):
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
                environment = agents_environment(spec, self.context.repository)
                await check_login(agent_type_of_sweep(spec), environment, spec.agent_arguments)
            except UsageError as error:
                return str(error)
        self.context.record(LoginRestored(by=by))
        if state.access.throttle.until is not None:
            self.context.record(ThrottleChanged(slots=state.access.throttle.slots, cause=state.access.throttle.cause))
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
