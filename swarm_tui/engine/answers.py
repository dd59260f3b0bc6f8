"""Sends messages to agents: those that people ask for, and in a demo without people the answers that records hold."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from swarm_tui.agents.offline.records import BadRecord, find_record
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.fleet import Fleet
from swarm_tui.engine.watch import Watch
from swarm_tui.errors import SwarmError
from swarm_tui.model.events import MessageSent

_ATTEMPTS: Final = 3
_PAUSE: Final = 5.0
_NO_ANSWER_RECORDED: Final = "Go on as you think best."


class Answers:
    """Talks to the living agents of a fleet."""

    def __init__(self, context: EngineContext, fleet: Fleet) -> None:
        self._context = context
        self._fleet = fleet
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
        if not agent_of:
            return problems
        try:
            report = await self._context.mngr.message(list(agent_of.values()), text)
        except SwarmError as error:
            errors = dict.fromkeys(agent_of.values(), str(error))
        else:
            errors = {failure.agent: failure.error for failure in (*report.failed, *report.blocked)}
            errors |= dict.fromkeys(report.missing, "mngr does not know this agent")
        for test, agent in agent_of.items():
            self._context.record(MessageSent(test=test, text=text, by=by, error=errors.get(agent, "")))
        return problems + [f"{agent}: {error}" for agent, error in errors.items()]


def recorded_answer(records: Path, test: str, question: int) -> str:
    """Give what the record of a test says to its n-th question."""
    try:
        record = find_record(records, test)
    except BadRecord:
        record = None
    asked = [step for step in (record.steps if record else ()) if step.name == "ask"]
    fitting = asked[question - 1 : question]
    return (fitting[0].more.get("answer") if fitting else None) or _NO_ANSWER_RECORDED
