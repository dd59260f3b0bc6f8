"""Direct access to running agents, without the engine: attach, capture screens, send text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.agents.types import AgentType, agent_type_of, agent_type_of_sweep
from swarm_tui.errors import SwarmError
from swarm_tui.files import read_regular
from swarm_tui.hosts.attach import Attacher, SshAttacher
from swarm_tui.hosts.events import HostState, made_hosts
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.hosts.registry import Hosts, open_host, open_hosts
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.spec import LOCAL_HOST, SweepSpec
from swarm_tui.transcripts.locate import SCREEN_NAME, find_transcript

SCREEN_BYTES: Final = 1 << 20


class AgentAccess:
    def __init__(
        self, spec: SweepSpec, folder: SweepFolder, created: Callable[[], Mapping[str, HostState]] = dict
    ) -> None:
        self.spec = spec
        self._created = created
        self.folder = folder
        self.kind = agent_type_of_sweep(spec)
        self._mngr = Mngr(spec.mngr.path, mngr_environment(spec.mngr))

    @property
    def hosts(self) -> Hosts:
        """The hosts of the sweep, including hosts that were created during it."""
        for settings in made_hosts(self._created()):
            if settings.name not in self._opened:
                self._opened.add(open_host(settings, self.spec))
        return self._opened

    @functools.cached_property
    def _opened(self) -> Hosts:
        return open_hosts(self.spec)

    def address_of(self, record: TestRecord) -> AgentAddress:
        session = f"{self.spec.mngr.prefix}{record.agent}"
        host = record.host or LOCAL_HOST
        return AgentAddress(record.agent, record.agent_id, session, record.state_dir, record.work_dir, host)

    def folder_of(self, record: TestRecord) -> Path | None:
        """Return the folder of an agent in the sweep folder, or None if the name is invalid."""
        try:
            return self.folder.agent(record.agent)
        except ValueError:
            return None

    def kind_of(self, record: TestRecord) -> AgentType:
        """Return the type of an agent. Agents outside a sweep can have different types."""
        types = (trait.removeprefix("type ") for trait in record.traits if trait.startswith("type "))
        return agent_type_of(next(types, "")) if self.spec.is_watch else self.kind

    def transcript_of(self, record: TestRecord) -> Path | None:
        """Return the transcript of an agent on this machine: the live file, or the pulled one, or None."""
        sources = self.kind_of(record).transcript_sources
        try:
            return find_transcript(record.state_dir_here, self.folder_of(record), sources, record.agent_id)
        except OSError:
            return None

    def is_far(self, record: TestRecord) -> bool:
        """Return whether only mngr can reach an agent: it runs on another machine, outside a sweep."""
        return self.spec.is_watch and record.host not in ("", LOCAL_HOST)

    def attacher(self, record: TestRecord) -> Attacher:
        """Return the object that connects this terminal to the agent's terminal."""
        if self.is_far(record):
            return SshAttacher(self.hosts.local, self.spec.mngr, self.address_of(record))
        return Attacher(self.hosts[record.host or LOCAL_HOST], self.spec.mngr, Path(self.spec.repository))

    async def capture(self, records: Sequence[TestRecord]) -> dict[str, str | None]:
        """Capture the current screens of these tests' agents in one call; None for agents without a screen."""
        # A tmux session on this machine may have the same name.
        records = [record for record in records if not self.is_far(record)]
        addresses = [self.address_of(record) for record in records]
        screens = await self.hosts.capture_screens(addresses)
        return {record.test: screens.get(agent.session) for record, agent in zip(records, addresses, strict=True)}

    def kept_screen(self, record: TestRecord) -> str | None:
        """Return the last screen of a finished agent, or None."""
        folder = self.folder_of(record)
        if folder is None:
            return None
        try:
            return read_regular(folder / SCREEN_NAME)[-SCREEN_BYTES:].decode("utf-8", "replace")
        except OSError:
            return None

    async def send(self, records: Sequence[TestRecord], text: str) -> dict[str, str]:
        """Type a text into those of these agents that are running. Return for each test the error, or ""."""
        reasons = await self._why_unread(records)
        living = [record for record in records if not reasons.get(record.test)]
        outcome = {record.test: reasons.get(record.test, "") for record in records}
        if not living:
            return outcome
        try:
            names = [self.address_of(record).mngr_name for record in living]
            report = await self._mngr.message(names, text)
        except SwarmError as error:
            return outcome | {record.test: str(error) for record in living}
        errors = {failure.agent: failure.error for failure in (*report.failed, *report.blocked)}
        errors |= dict.fromkeys(report.missing, "mngr does not list this agent any more")
        return outcome | {record.test: errors.get(record.agent, "") for record in living}

    async def _why_unread(self, records: Sequence[TestRecord]) -> Mapping[str, str]:
        """Return why agents cannot read a text. mngr would restart these agents to deliver it."""
        statuses = await self.hosts.statuses()
        reasons = {}
        for record in records:
            if (record.host or LOCAL_HOST) in statuses.lost:
                reasons[record.test] = f"host not reachable: {record.host}"
                continue
            status = statuses.agents.get(record.agent_id)
            if status is None or status.state not in ("RUNNING", "WAITING"):
                reasons[record.test] = {
                    None: "mngr does not list this agent any more",
                    "STOPPED": "the agent is stopped",
                    "REPLACED": "another program runs in the agent's terminal",
                }.get(status.state if status else None, "the agent has exited")
        return reasons
