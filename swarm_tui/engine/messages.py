"""Sends messages to agents: those that people ask for, and in a demo without people the answers that records hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from swarm_tui.adapters.probe import Probe, Probed
from swarm_tui.agents.offline.records import BadRecord, find_record
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.live_agents import LiveAgents
from swarm_tui.engine.watch import Watch
from swarm_tui.errors import SwarmError
from swarm_tui.model.events import MessageSent

_ATTEMPTS: Final = 3
_PAUSE: Final = 5.0
_NO_ANSWER_RECORDED: Final = "Go on as you think best."


class MessageSender:
    """Talks to the living agents of a fleet."""

    def __init__(self, context: EngineContext, fleet: LiveAgents, probe: Probe) -> None:
        self._context = context
        self._fleet = fleet
        self._probe = probe
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether a message is on its way."""
        return bool(self._tasks)

    def consider(self, group: asyncio.TaskGroup, watch: Watch) -> None:
        """Answer a question, when this sweep answers itself."""
        spec = self._context.spec
        if spec.answers_itself and spec.records:
            text = recorded_answer(Path(spec.records), watch.test, watch.questions)
            task = group.create_task(self._send_quietly(watch.test, text))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send_quietly(self, test: str, text: str) -> None:
        for _ in range(_ATTEMPTS):
            watch = self._fleet.watches.get(test)
            if watch is None or watch.waiting_since is None or not await self.send([test], text, by="the record"):
                return
            await asyncio.sleep(_PAUSE)

    async def send(self, tests: Sequence[str], text: str, *, by: str) -> list[str]:
        """Type a text into the agents' terminals; give why it did not reach some of them."""
        agent_of = {test: self._context.state.records[test].agent for test in tests if test in self._fleet.watches}
        problems = [f"{test} has no living agent" for test in tests if test not in agent_of]
        errors = await self._why_deaf(agent_of.values())
        hearing = [agent for agent in agent_of.values() if agent not in errors]
        if hearing:
            errors |= await self._type(hearing, text)
        for test, agent in agent_of.items():
            self._context.record(MessageSent(test=test, text=text, by=by, error=errors.get(agent, "")))
        return problems + [f"{agent}: {error}" for agent, error in errors.items()]

    async def _why_deaf(self, agents: Iterable[str]) -> dict[str, str]:
        """Return why a text would not reach some of the agents: a shell that they left would take it for a command."""
        found = await self._probe.probe()
        if not isinstance(found, Probed):
            return dict.fromkeys(agents, f"whether it lives cannot be seen: {found.reason}")
        seen = {agent: found.agents.get(agent) for agent in agents}
        return {
            agent: "its program does not run any more" if one is not None else "it is gone"
            for agent, one in seen.items()
            if one is None or not one.can_hear
        }

    async def _type(self, agents: Sequence[str], text: str) -> dict[str, str]:
        """Have mngr type a text; give why it did not reach some of the agents."""
        try:
            report = await self._context.mngr.message(agents, text)
        except SwarmError as error:
            return dict.fromkeys(agents, str(error))
        errors = {failure.agent: failure.error for failure in (*report.failed, *report.blocked)}
        return errors | dict.fromkeys(report.missing, "mngr does not know this agent")


def recorded_answer(records: Path, test: str, question: int) -> str:
    """Return what the record of a test says to its n-th question."""
    try:
        record = find_record(records, test)
    except BadRecord:
        record = None
    asked = [step for step in (record.steps if record else ()) if step.name == "ask"]
    fitting = asked[question - 1 : question]
    return (fitting[0].more.get("answer") if fitting else None) or _NO_ANSWER_RECORDED
