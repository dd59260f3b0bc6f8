"""Carries out what a person asks of watched agents: a message, an answer, a stop. Nothing else is done to them."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from swarm_tui.engine.agent_context import AgentContext, AgentWatches
from swarm_tui.engine.answers import Answerer
from swarm_tui.engine.messages import MessageSender
from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.requests import RequestFollower
from swarm_tui.model.events import RequestAnswered
from swarm_tui.model.requests import Request, RequestKind
from swarm_tui.model.text import plain
from swarm_tui.watching.agents import WatchedAgent

NO_SWEEP: Final = "these agents are of no sweep: they can be written to, answered, attached to and stopped"
_DETAIL_LIMIT: Final = 500


class WatchContext(AgentContext, AgentWatches, Protocol):
    """What is watched, by its observer."""

    def agent_of(self, test: str) -> WatchedAgent | None:
        """Return the agent behind a test of the journal."""


class WatchRequests:
    """Carries out the requests of one room."""

    def __init__(self, context: WatchContext, folder: SweepFolder) -> None:
        self._context = context
        self._follower = RequestFollower(folder)
        self._messages = MessageSender(context, context)
        self._answers = Answerer(context, context, self._messages)

    def carry_out_new(self, group: asyncio.TaskGroup) -> None:
        """Begin what was asked for since the last call."""
        requests, _ = self._follower.read()
        for request in requests:
            if request.id in self._follower.foreign:
                self._answer(request, "no swarm-tui of this person wrote this request")
            else:
                group.create_task(self._carry_out(request))

    async def _carry_out(self, request: Request) -> None:
        by = plain(request.by, 80) or "someone"
        try:
            match request.kind:
                case RequestKind.MESSAGE:
                    problem = await self._send(request, by)
                case RequestKind.ANSWER:
                    outcome = await self._answers.answer(request.items, request.text or "", by=by)
                    problem = "" if outcome.answered == outcome.wanted else outcome.words
                case RequestKind.STOP:
                    problem = await self._stop(request)
                case _:
                    problem = NO_SWEEP
        except SwarmError as error:
            problem = str(error)
        self._answer(request, problem)

    def _answer(self, request: Request, problem: str) -> None:
        detail = plain(problem, _DETAIL_LIMIT)
        self._context.record(RequestAnswered(request=request.id, is_done=not problem, detail=detail))

    async def _send(self, request: Request, by: str) -> str:
        here = [test for test in request.tests if test in self._context.watches]
        far = [agent for test in request.tests if (agent := self._far_agent(test)) is not None]
        problems = await self._messages.send(here, request.text or "", by=by) if here else []
        if far:
            report = await self._context.mngr.message([agent.address.mngr_name for agent in far], request.text or "")
            problems += [f"{failure.agent}: {failure.error}" for failure in (*report.failed, *report.blocked)]
            problems += [f"mngr knows no {name}" for name in report.missing]
        missing = len(request.tests) - len(here) - len(far)
        problems += [f"{missing} of them do not run any more"] if missing else []
        return "; ".join(problems)

    def _far_agent(self, test: str) -> WatchedAgent | None:
        agent = self._context.agent_of(test)
        return agent if agent is not None and not agent.address.state_dir and agent.is_alive else None

    async def _stop(self, request: Request) -> str:
        agents = [agent for test in request.tests if (agent := self._context.agent_of(test)) is not None]
        report = await self._context.mngr.stop([agent.address.mngr_name for agent in agents])
        problems = [f"{failure.agent}: {failure.error}" for failure in report.failed]
        return "; ".join([*problems, *(f"mngr knows no {name}" for name in report.missing)])
