"""Asks mngr again and again for what its own files on this machine do not tell: other machines, and conditions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from swarm_tui.adapters.file_notices import FileNotices
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.errors import SwarmError
from swarm_tui.model.text import plain
from swarm_tui.watching.agents import is_here
from swarm_tui.watching.conditions import Conditions

PAUSE: Final = 15.0
LONELY_PAUSE: Final = 60.0
"""The pause where all agents are on this machine, whose files tell everything sooner."""
UNUSED_PAUSE: Final = 600.0
"""So long more it is waited there, until somebody uses mngr."""
FIRST_PAUSE: Final = 1.5
SHARE: Final = 9.0
"""A call of mngr's takes seconds of a processor: the pause after it is so many times as long."""


class FarAgents:
    """What mngr answered last."""

    def __init__(self, mngr: Mngr, conditions: Conditions, host_dir: Path) -> None:
        self._mngr = mngr
        self._host_dir = host_dir
        self._conditions = conditions
        self.agents: tuple[AgentDetails, ...] = ()
        self.chosen: frozenset[str] | None = None
        """The ids of the agents that fit the conditions; None without conditions, when all are wanted."""
        self.problems: tuple[str, ...] = ()
        """What mngr met, in sentences."""
        self.is_answered = False

    async def ask(self) -> None:
        """Ask once; raise what mngr says against the conditions."""
        listing = await self._mngr.list_agents(None, self._conditions.include, self._conditions.exclude)
        silent = {problem.provider_name for problem in listing.errors if problem.provider_name}
        found = {agent.id for agent in listing.agents}
        # A provider that does not answer says nothing of its agents, not even that they are gone.
        kept = [agent for agent in self.agents if agent.id not in found and _provider_of(agent) in silent]
        self.agents = (*listing.agents, *kept)
        if self._conditions.are_there:
            self.chosen = frozenset(agent.id for agent in self.agents)
        self.problems = tuple(_sentence(problem.provider_name, problem.message) for problem in listing.errors)
        self.is_answered = True

    async def ask_if_it_answers(self) -> None:
        """Ask once; where mngr fails, all but what it judges by conditions is known all the same."""
        try:
            await self.ask()
        except SwarmError as error:
            if self._conditions.are_there and self.chosen is None:
                raise
            self.problems = (str(error),)

    async def ask_again_and_again(self, tell: Callable[[], object]) -> None:
        """Ask for ever, with pauses that leave the machine to others, and tell of each answer."""
        # Whatever somebody does with mngr, it is written down there.
        notices, is_used = FileNotices(), asyncio.Event()
        used = notices.follow(self._host_dir / "events" / "mngr" / "discovery" / "*", is_used.set)
        # The first frame comes before all that takes long.
        await asyncio.sleep(PAUSE if self.is_answered else FIRST_PAUSE)
        while True:
            begun = time.monotonic()
            await self.ask_if_it_answers()
            tell()
            is_used.clear()
            is_needed = self._conditions.are_there or any(not is_here(agent) for agent in self.agents)
            await asyncio.sleep(max(PAUSE if is_needed else LONELY_PAUSE, SHARE * (time.monotonic() - begun)))
            if not is_needed and used.is_noticed:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(UNUSED_PAUSE):
                        await is_used.wait()


def _provider_of(agent: AgentDetails) -> str:
    return agent.host.provider_name if agent.host is not None else ""


def _sentence(provider: str | None, message: str) -> str:
    return plain(f"{provider}: {message}" if provider else message, 300)


def without_repeats(sentences: Sequence[str], said: set[str]) -> list[str]:
    """Return the sentences that were not said before, and take note of them."""
    new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in said]
    said.update(new)
    return new
