"""The hosts of a sweep by name, and questions to many hosts at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import (
    AgentAddress,
    AgentStatus,
    AgentStatuses,
    FileSlice,
    FoundFile,
    Host,
    HostReport,
    HostUnreachable,
    ReadRequest,
)
from swarm_tui.model.spec import LOCAL_HOST, HostSettings, SweepSpec

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


def open_hosts(spec: SweepSpec, created: Iterable[HostSettings] = ()) -> Hosts:
    """Return the hosts of a sweep: this machine, hosts of the settings, and hosts created during the sweep."""
    local = LocalHost(spec.mngr, Path(spec.repository))
    if spec.provider == LOCAL_HOST:
        created = ()
    return Hosts([local, *(open_host(settings, spec) for settings in (*spec.access, *created))])


def open_host(settings: HostSettings, spec: SweepSpec) -> Host:
    """Return a host that is reached by ssh. It is connected by the first call."""
    from swarm_tui.hosts.link import SshLink
    from swarm_tui.hosts.ssh import SshHost

    return SshHost(settings, spec.mngr, Path(spec.repository), SshLink(settings))


class Hosts:
    """A dict of hosts with questions to several of them. Hosts can be added and removed at any `await`."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._tell: Callable[[str], object] | None = None

    def __getitem__(self, name: str) -> Host:
        if name not in self._hosts:
            raise HostUnreachable(f"not a host of this sweep: {name}", f"its hosts are {', '.join(self._hosts)}")
        return self._hosts[name]

    def __contains__(self, name: str) -> bool:
        return name in self._hosts

    def __iter__(self) -> Iterator[Host]:
        return iter(list(self._hosts.values()))

    @property
    def local(self) -> Host:
        return self._hosts[LOCAL_HOST]

    @property
    def remote(self) -> list[Host]:
        return [host for host in self if host.settings is not None]

    def add(self, host: Host) -> None:
        """Add a host that was created."""
        if host.name not in self._hosts:
            self._hosts[host.name] = host
            if self._tell is not None:
                host.on_change(self._tell)

    async def remove(self, name: str) -> None:
        host = self._hosts.pop(name, None)
        if host is not None:
            await host.close()

    async def close(self) -> None:
        await asyncio.gather(*(host.close() for host in self))

    def on_change(self, tell: Callable[[str], object]) -> None:
        """Call `tell` with an agent's id, in the event loop, when a followed file may have changed."""
        self._tell = tell
        for host in self:
            host.on_change(tell)

    def reports_changes(self) -> bool:
        """Return whether all changes are reported. If not, poll."""
        return all(host.reports_changes() for host in self)

    def reports(self) -> list[HostReport]:
        """Return the states of all connections."""
        return [report for host in self if (report := host.report()) is not None]

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        """Return the states of all agents. Hosts that do not answer are in `lost`, unless no host answers."""
        answers: dict[str, AgentStatuses | BaseException] = {}
        while new := {name: host for name, host in self._hosts.items() if name not in answers}:
            asked = (host.statuses(follow=follow) for host in new.values())
            answers |= zip(new, await asyncio.gather(*asked, return_exceptions=True), strict=True)
        errors = [answer for answer in answers.values() if isinstance(answer, HostUnreachable)]
        if len(errors) == len(answers):
            raise errors[0]
        agents: dict[str, AgentStatus] = {}
        unreadable: list[str] = []
        lost: dict[str, str] = {}
        for name, answer in answers.items():
            if name not in self._hosts:
                continue
            if isinstance(answer, HostUnreachable):
                lost[name] = str(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                agents |= answer.agents
                unreadable += answer.unreadable
                lost |= answer.lost
        return AgentStatuses(agents, tuple(unreadable), lost)

    async def read_files(self, requests: Sequence[ReadRequest], *, follow: bool = False) -> list[FileSlice | None]:
        """Return a slice for each request; None if there is no regular file."""

        def read(host: Host, part: Sequence[ReadRequest]) -> Awaitable[list[FileSlice | None]]:
            return host.read_files(part, follow=follow)

        return await self._ask_each(requests, lambda request: request.file.agent.host, read, None, follow=follow)

    async def find_files(
        self, agents: Sequence[AgentAddress], patterns: Sequence[str], *, follow: bool = False
    ) -> list[list[FoundFile]]:
        """Return for each agent the files of its state folder that match a pattern."""

        def find(host: Host, part: Sequence[AgentAddress]) -> Awaitable[list[list[FoundFile]]]:
            return host.find_files(part, patterns, follow=follow)

        return await self._ask_each(agents, lambda agent: agent.host, find, [], follow=follow)

    async def capture_screens(self, agents: Sequence[AgentAddress], *, history: int = 0) -> dict[str, str | None]:
        """Return the terminals of agents by session, with colours; None for agents without a terminal.

        Agents on hosts that do not answer have no terminal; raise the error if no host answers.
        """

        async def capture(name: str) -> dict[str, str | None]:
            sessions = [agent.session for agent in agents if agent.host == name]
            return await self[name].tmux.capture(sessions, history=history)

        names = dict.fromkeys(agent.host for agent in agents)
        answers = await asyncio.gather(*map(capture, names), return_exceptions=True)
        screens: dict[str, str | None] = {agent.session: None for agent in agents}
        for answer in answers:
            if isinstance(answer, dict):
                screens |= answer
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if errors and len(errors) == len(answers):
            raise errors[0]
        return screens

    async def _ask_each(
        self,
        asked: Sequence[_Asked],
        host_of: Callable[[_Asked], str],
        ask: Callable[[Host, Sequence[_Asked]], Awaitable[list[_Answer]]],
        nothing: _Answer,
        *,
        follow: bool,
    ) -> list[_Answer]:
        """Ask each host for its part, and return the answers in the order of the questions.

        If a host was removed, return `nothing` for its part with `follow`; otherwise raise HostUnreachable.
        """
        positions: dict[str, list[int]] = {}
        for position, one in enumerate(asked):
            positions.setdefault(host_of(one), []).append(position)
        parts = {name: own for name, own in positions.items() if name in self or not follow}
        answers = await asyncio.gather(*(ask(self[name], [asked[one] for one in own]) for name, own in parts.items()))
        found = [nothing] * len(asked)
        for own, part in zip(parts.values(), answers, strict=True):
            for position, answer in zip(own, part, strict=True):
                found[position] = answer
        return found
