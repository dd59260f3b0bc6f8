"""Dict of hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from swarm_tui.adapters.processes.run import Finished
from swarm_tui.hosts.attach import Attacher
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import (
    AgentAddress,
    AgentFile,
    AgentStatus,
    AgentStatuses,
    FileSlice,
    FoundFile,
    Host,
    HostReport,
    HostUnreachable,
    ReadRequest,
)
from swarm_tui.model.hosts import LOCAL_HOST, HostSettings
from swarm_tui.model.spec import SweepSpec

if TYPE_CHECKING:
    from swarm_tui.adapters.git import Repository
    from swarm_tui.hosts.ssh import SshHost


def open_hosts(spec: SweepSpec, made: Iterable[HostSettings] = ()) -> Host:
    """Return the place in which the agents of a sweep run; `made` are the hosts that were made for it so far."""
    here = LocalHost(spec.mngr, Path(spec.repository))
    if not spec.access and spec.provider == LOCAL_HOST:
        return here

    hosts: dict[str, Host] = {access.name: place_on(access, spec) for access in (*spec.access, *made)}
    return Hosts({LOCAL_HOST: here, **hosts})


def place_on(access: HostSettings, spec: SweepSpec) -> SshHost:
    """Return one other host as a place."""
    from swarm_tui.hosts.link import SshLink
    from swarm_tui.hosts.ssh import SshHost

    return SshHost(access, spec.mngr, Path(spec.repository), SshLink(access))


_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


class Hosts:
    """The agents of this machine and of other hosts."""

    def __init__(self, places: Mapping[str, Host]) -> None:
        self.places = dict(places)
        """By the names of the hosts; this machine is LOCAL_HOST."""
        self._tell: Callable[[str], object] | None = None

    def of(self, host: str) -> Host:
        """Return one host; raise HostUnreachable if it was removed."""
        if host not in self.places:
            raise HostUnreachable(f"not a host of this sweep: {host}", f"its hosts are {', '.join(self.places)}")
        return self.places[host]

    def add(self, host: str, place: Host) -> None:
        """Take in a host that was made."""
        self.places.setdefault(host, place)
        if self._tell is not None:
            self.places[host].on_news(self._tell)

    async def remove(self, host: str) -> None:
        """Forget a host, which ends."""
        place = self.places.pop(host, None)
        if place is not None:
            await place.close()

    def host_dir_of(self, host: str) -> str:
        return self.of(host).host_dir_of(host)

    def reports(self) -> tuple[HostReport, ...]:
        return tuple(report for place in self.places.values() for report in place.reports())

    async def has_mngr(self) -> bool:
        return await self.of(LOCAL_HOST).has_mngr()

    async def agent_statuses(self) -> AgentStatuses:
        return await self._statuses(lambda place: place.agent_statuses())

    async def latest_statuses(self) -> AgentStatuses:
        return await self._statuses(lambda place: place.latest_statuses())

    async def _statuses(self, ask: Callable[[Host], Awaitable[AgentStatuses]]) -> AgentStatuses:
        answers: dict[str, AgentStatuses | BaseException] = {}
        # Hosts are added and removed while others answer.
        while new := {host: place for host, place in self.places.items() if host not in answers}:
            answers |= zip(new, await asyncio.gather(*map(ask, new.values()), return_exceptions=True), strict=True)
        agents: dict[str, AgentStatus] = {}
        unreadable: list[str] = []
        lost: dict[str, str] = {}
        for host, answer in answers.items():
            if host not in self.places:
                continue
            if isinstance(answer, HostUnreachable):
                lost[host] = str(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                agents |= answer.agents
                unreadable += answer.unreadable
                lost |= answer.lost
        return AgentStatuses(agents, tuple(unreadable), lost)

    async def latest_files(self, requests: Sequence[ReadRequest]) -> list[FileSlice | None]:
        return await self._each(requests, _host_of_request, lambda place, asked: place.latest_files(asked), None)

    async def latest_found(self, agents: Sequence[AgentAddress], patterns: Sequence[str]) -> list[list[FoundFile]]:
        nothing: list[FoundFile] = []
        return await self._each(
            agents, _host_of_agent, lambda place, asked: place.latest_found(asked, patterns), nothing
        )

    def on_news(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        for place in self.places.values():
            place.on_news(tell)

    def tells_all_news(self) -> bool:
        return all(place.tells_all_news() for place in self.places.values())

    async def read_files(self, requests: Sequence[ReadRequest]) -> list[FileSlice | None]:
        return await self._each(requests, _host_of_request, lambda place, asked: place.read_files(asked))

    async def find_files(self, agents: Sequence[AgentAddress], patterns: Sequence[str]) -> list[list[FoundFile]]:
        return await self._each(agents, _host_of_agent, lambda place, asked: place.find_files(asked, patterns))

    async def _each(
        self,
        asked: Sequence[_Asked],
        host_of: Callable[[_Asked], str],
        ask: Callable[[Host, Sequence[_Asked]], Awaitable[list[_Answer]]],
        *removed: _Answer,
    ) -> list[_Answer]:
        """Ask each host for its part, and return the answers in the order of the questions.

        `removed` is the answer for a host that was removed. Without it, raise HostUnreachable.
        """
        positions: dict[str, list[int]] = {}
        for position, one in enumerate(asked):
            host = host_of(one)
            if host in self.places or not removed:
                positions.setdefault(host, []).append(position)
        parts = await asyncio.gather(
            *(ask(self.of(host), [asked[position] for position in own]) for host, own in positions.items())
        )
        found = {
            position: answer
            for own, answers in zip(positions.values(), parts, strict=True)
            for position, answer in zip(own, answers, strict=True)
        }
        return [found[position] if position in found else removed[0] for position in range(len(asked))]

    async def fetch_file(self, file: AgentFile, target: Path, *, limit: int) -> bool:
        return await self.of(file.agent.host).fetch_file(file, target, limit=limit)

    async def write_file(self, file: AgentFile, content: bytes, *, is_new: bool = False) -> None:
        await self.of(file.agent.host).write_file(file, content, is_new=is_new)

    async def run(self, agent: AgentAddress, words: Sequence[str], *, timeout: float = 60.0) -> Finished:
        return await self.of(agent.host).run(agent, words, timeout=timeout)

    async def fetch_commits(self, agent: AgentAddress, repository: Repository, *, base: str, tip: str, ref: str) -> str:
        return await self.of(agent.host).fetch_commits(agent, repository, base=base, tip=tip, ref=ref)

    async def uncommitted_paths(self, agent: AgentAddress, *, without: str) -> tuple[str, ...]:
        return await self.of(agent.host).uncommitted_paths(agent, without=without)

    async def uncommitted_patch(self, agent: AgentAddress, *, without: str, limit: int) -> bytes:
        return await self.of(agent.host).uncommitted_patch(agent, without=without, limit=limit)

    async def capture_screens(self, agents: Sequence[AgentAddress], *, history: int = 0) -> dict[str, str | None]:
        """Return the screens of all hosts that answer."""
        by_host: dict[str, list[AgentAddress]] = {}
        for agent in agents:
            by_host.setdefault(agent.host, []).append(agent)

        async def capture(host: str, own: list[AgentAddress]) -> dict[str, str | None]:
            return await self.of(host).capture_screens(own, history=history)

        parts = await asyncio.gather(*(capture(*part) for part in by_host.items()), return_exceptions=True)
        screens: dict[str, str | None] = {agent.session: None for agent in agents}
        for part in parts:
            if isinstance(part, dict):
                screens |= part
        errors = [part for part in parts if isinstance(part, BaseException)]
        if errors and len(errors) == len(parts):
            raise errors[0]
        return screens

    async def protect_session(self, agent: AgentAddress) -> None:
        await self.of(agent.host).protect_session(agent)

    async def forget_variables(self, agent: AgentAddress, names: Sequence[str]) -> None:
        await self.of(agent.host).forget_variables(agent, names)

    async def record_terminal(self, agent: AgentAddress, cast: Path) -> None:
        await self.of(agent.host).record_terminal(agent, cast)

    def attacher(self, host: str = LOCAL_HOST, own: Mapping[str, str] | None = None) -> Attacher:
        return self.of(host).attacher(host, own)

    async def close(self) -> None:
        await asyncio.gather(*(place.close() for place in self.places.values()))


def _host_of_request(request: ReadRequest) -> str:
    return request.file.agent.host


def _host_of_agent(agent: AgentAddress) -> str:
    return agent.host
