"""Agents of mngr, here and elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from swarm_tui.adapters.file_notices import FileNotices
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.errors import SwarmError
from swarm_tui.hosts.protocol import AgentAddress, AgentStatus, AgentStatuses
from swarm_tui.model.spec import LOCAL_HOST
from swarm_tui.model.text import plain

ENDED: Final[Mapping[str, str]] = {
    "DONE": "its program exited",
    "STOPPED": "stopped; attach to start it again",
}
"""The states of agents that are not running, with their meaning."""
LABELS_SHOWN: Final = 40
_TEXT_LIMIT: Final = 200


@dataclass(frozen=True, slots=True)
class WatchedAgent:
    """One watched agent."""

    address: AgentAddress
    state: str
    """The state in mngr."""
    agent_type: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    branch: str = ""
    created_at: float = 0.0
    since: float = 0.0
    """When it entered its state; 0 if unknown."""

    @property
    def key(self) -> str:
        """The name in the journal. It includes the host, because agents on different hosts can have the same name."""
        return plain(self.address.mngr_name, _TEXT_LIMIT) or self.address.agent_id

    @property
    def is_alive(self) -> bool:
        return self.state not in ENDED

    @property
    def traits(self) -> tuple[str, ...]:
        """Properties that agents can have in common: `type claude`, `project shop`, `label run=7`."""
        words = [f"type {plain(self.agent_type, 80)}"] if self.agent_type else []
        for key, value in self.labels:
            name = "project " if key == "project" else f"label {plain(key, 80)}="
            words.append(f"{name}{plain(value, _TEXT_LIMIT)}")
        return tuple(words)

    @property
    def names(self) -> tuple[object, ...]:
        """The properties that the journal records only once."""
        return self.address, self.traits, self.branch


def agents_here(statuses: AgentStatuses) -> Iterator[WatchedAgent]:
    """Yield the agents of this machine."""
    for status in statuses.agents.values():
        created = _seconds(status.created_at)
        yield WatchedAgent(
            status.address,
            status.state,
            status.agent_type,
            _labels(status.labels),
            plain(status.branch or "", _TEXT_LIMIT),
            created,
            max(created, _last_change(status)),
        )


def agents_elsewhere(found: Iterable[AgentDetails], session_prefix: str) -> Iterator[WatchedAgent]:
    """Yield the agents that are not on this machine."""
    for details in found:
        if is_here(details):
            continue
        host = _host_of(details)
        address = AgentAddress(details.name, details.id, f"{session_prefix}{details.name}", "", details.work_dir, host)
        yield WatchedAgent(
            address,
            details.state.upper(),
            details.type,
            _labels(details.labels),
            plain(details.initial_branch or "", _TEXT_LIMIT),
            _seconds(details.create_time),
        )


def is_here(details: AgentDetails) -> bool:
    """Return whether an agent runs on this machine, so that its files can be read."""
    return details.host is None or details.host.provider_name in ("", LOCAL_HOST)


def _host_of(details: AgentDetails) -> str:
    """Return the host of an agent: `local` or HOST.PROVIDER."""
    host = details.host
    return f"{host.name}.{host.provider_name}" if host is not None else LOCAL_HOST


def _labels(labels: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    ordered = sorted(labels.items(), key=lambda label: (label[0] != "project", label[0]))
    return tuple((str(key), str(value)) for key, value in islice(ordered, LABELS_SHOWN))


def _last_change(status: AgentStatus) -> float:
    """Return when an agent's folder last changed. mngr adds and removes a file there when a turn starts and ends."""
    folder = status.address.state_dir
    with contextlib.suppress(OSError):
        return os.stat(f"{folder}/active" if status.state == "RUNNING" else folder).st_mtime
    return 0.0


def _seconds(text: str) -> float:
    """Return an ISO time in seconds since 1970; 0 if it is invalid."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0


@dataclass(frozen=True, slots=True)
class Conditions:
    """Filter expressions in the language of mngr (CEL)."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def are_there(self) -> bool:
        return bool(self.include or self.exclude)


PAUSE: Final = 15.0
LONELY_PAUSE: Final = 60.0
"""Seconds between calls of mngr if all agents are on this machine: their files show changes sooner."""
UNUSED_PAUSE: Final = 600.0
"""The maximum of the additional pause until mngr is used again."""
FIRST_PAUSE: Final = 1.5
SHARE: Final = 9.0
"""The ratio of the pause to the duration of the last call of mngr, which takes seconds of processor time."""


class RemoteAgents:
    """The last answer of mngr."""

    def __init__(self, mngr: Mngr, conditions: Conditions, host_dir: Path) -> None:
        self._mngr = mngr
        self._host_dir = host_dir
        self._conditions = conditions
        self.agents: tuple[AgentDetails, ...] = ()
        self.chosen: frozenset[str] | None = None
        """The ids of the agents that match the filters; None without filters."""
        self.problems: tuple[str, ...] = ()
        """Errors that mngr reported, one sentence each."""
        self.is_answered = False

    async def ask(self) -> None:
        """Call mngr once. Raise its error if a filter is invalid."""
        listing = await self._mngr.list_agents(None, self._conditions.include, self._conditions.exclude)
        silent = {problem.provider_name for problem in listing.errors if problem.provider_name}
        listed = {agent.id for agent in listing.agents}
        # Keep the agents of a provider that does not answer.
        kept = [agent for agent in self.agents if agent.id not in listed and _provider_of(agent) in silent]
        self.agents = (*listing.agents, *kept)
        if self._conditions.are_there:
            self.chosen = frozenset(agent.id for agent in self.agents)
        self.problems = tuple(_sentence(problem.provider_name, problem.message) for problem in listing.errors)
        self.is_answered = True

    async def ask_if_it_answers(self) -> None:
        """Call mngr once. Record an error as a problem, unless the filters have never been evaluated."""
        try:
            await self.ask()
        except SwarmError as error:
            if self._conditions.are_there and self.chosen is None:
                raise
            self.problems = (str(error),)

    async def ask_again_and_again(self, tell: Callable[[], object]) -> None:
        """Call mngr repeatedly, with pauses that limit the processor load, and call `tell` after each answer."""
        # mngr records all its operations in this folder.
        notices, is_used = FileNotices(), asyncio.Event()
        used = notices.follow(self._host_dir / "events" / "mngr" / "discovery" / "*", is_used.set)
        # Let the room draw its first frame before the slow call.
        await asyncio.sleep(PAUSE if self.is_answered else FIRST_PAUSE)
        while True:
            start = time.monotonic()
            await self.ask_if_it_answers()
            tell()
            is_used.clear()
            is_needed = self._conditions.are_there or any(not is_here(agent) for agent in self.agents)
            await asyncio.sleep(max(PAUSE if is_needed else LONELY_PAUSE, SHARE * (time.monotonic() - start)))
            if not is_needed and used.is_noticed:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(UNUSED_PAUSE):
                        await is_used.wait()


def _provider_of(agent: AgentDetails) -> str:
    return agent.host.provider_name if agent.host is not None else ""


def _sentence(provider: str | None, message: str) -> str:
    return plain(f"{provider}: {message}" if provider else message, 300)


def without_repeats(sentences: Sequence[str], reported: set[str]) -> list[str]:
    """Return the sentences that are not in `reported`, and add them to it."""
    new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in reported]
    reported.update(new)
    return new
