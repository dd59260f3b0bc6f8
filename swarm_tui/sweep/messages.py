"""Send messages to agents: those of users, and in a demo the recorded answers."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.agents.offline.records import BadRecord, find_record
from swarm_tui.errors import SwarmError
from swarm_tui.hosts.protocol import AgentAddress, HostUnreachable
from swarm_tui.journal.events import MessageSent
from swarm_tui.sweep.agent_context import AgentContext, AgentWatches
from swarm_tui.sweep.watch import AgentFollower

_ATTEMPTS: Final = 3
_PAUSE: Final = 5.0
ASKS: Final = "it asks something: `swarm-tui pending` shows what, `swarm-tui answer` answers it"
_NO_ANSWER_RECORDED: Final = "Continue as you think best."


@dataclass(slots=True)
class AgentMessages:
    """Types texts into the terminals of agents."""

    context: AgentContext
    agents: AgentWatches

    def answer_question(self, group: asyncio.TaskGroup, watch: AgentFollower) -> None:
        """Start answering a question from the records, if this sweep does that."""
        spec = self.context.spec
        if spec.answers_itself and spec.records:
            text = recorded_answer(Path(spec.records), watch.task.key, watch.questions)
            group.create_task(self._send_quietly(watch.task.key, text))

    async def _send_quietly(self, test: str, text: str) -> None:
        for _ in range(_ATTEMPTS):
            watch = self.agents.watches.get(test)
            if watch is None or watch.waiting_since is None or not await self.send([test], text, by="the record"):
                return
            await asyncio.sleep(_PAUSE)

    async def send(self, tests: Sequence[str], text: str, *, by: str) -> list[str]:
        """Type a text into the terminals of agents; return the problems.

        This does not answer a question that an agent asks through a hook, because it may be meant for another one.
        """
        watches = {test: self.agents.watches[test] for test in tests if test in self.agents.watches}
        agent_of = {test: watch.address.name for test, watch in watches.items()}
        problems = [f"{test} has no living agent" for test in tests if test not in agent_of]
        errors = await self._why_unread([watch.address for watch in watches.values()])
        typed: dict[str, AgentFollower] = {}
        for watch in watches.values():
            agent, observer = watch.address.name, watch.observer
            if agent in errors:
                continue
            if observer is not None and (problem := ASKS if observer.open_questions else observer.typing_problem):
                errors[agent] = problem
            else:
                typed[agent] = watch
        if typed:
            errors |= await self._type(typed, text)
        for test, agent in agent_of.items():
            self.context.record(MessageSent(test=test, text=text, by=by, error=errors.get(agent, "")))
        return problems + [f"{agent}: {error}" for agent, error in errors.items()]

    async def _why_unread(self, agents: Sequence[AgentAddress]) -> dict[str, str]:
        """Return the agents that would not read a text, with the reason. A shell would run the text as a command."""
        try:
            statuses = await self.context.hosts.statuses(follow=True)
        except HostUnreachable as error:
            return {agent.name: f"its state is unknown: {error.message}" for agent in agents}
        reasons = {}
        for agent in agents:
            status = statuses.agents.get(agent.agent_id)
            if agent.host in statuses.lost:
                reasons[agent.name] = f"{agent.host} does not answer: {statuses.lost[agent.host]}"
            elif status is None or not status.reads_input:
                reasons[agent.name] = "its program is no longer running" if status is not None else "it is gone"
        return reasons

    async def _type(self, agents: Mapping[str, AgentFollower], text: str) -> dict[str, str]:
        """Let mngr type a text; return the problem of each agent that it did not reach."""
        for watch in agents.values():
            watch.note_typing(math.inf)
        try:
            report = await self.context.mngr.message(list(agents), text)
        except SwarmError as error:
            return dict.fromkeys(agents, str(error))
        finally:
            for watch in agents.values():
                watch.note_typing(time.time())
        errors = {failure.agent: failure.error for failure in (*report.failed, *report.blocked)}
        return errors | dict.fromkeys(report.missing, "mngr does not know this agent")


def recorded_answer(records: Path, test: str, question: int) -> str:
    """Return the recorded answer to the n-th question of a test."""
    try:
        record = find_record(records, test)
    except BadRecord:
        record = None
    asked = [step for step in (record.steps if record else ()) if step.name == "ask"]
    fitting = asked[question - 1 : question]
    return (fitting[0].more.get("answer") if fitting else None) or _NO_ANSWER_RECORDED
