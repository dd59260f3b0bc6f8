"""Reaches running agents without the engine: attaches to them, reads their screens, sends them text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.agents.kinds import AgentKind, kind_of, kind_of_sweep
from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.hosts import LOCAL_HOST, HostState, made_hosts
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.attach import Attacher, FarAttacher
from swarm_tui.places.choose import place_for, place_on
from swarm_tui.places.many_hosts import ManyHosts
from swarm_tui.places.place import AgentAddress, Place
from swarm_tui.regular_file import read_regular
from swarm_tui.transcripts.locate import SCREEN_NAME

SCREEN_BYTES: Final = 1 << 20


class AgentAccess:
    """The agents of one sweep."""

    def __init__(
        self, spec: SweepSpec, folder: SweepFolder, hosts: Callable[[], Mapping[str, HostState]] = dict
    ) -> None:
        self.spec = spec
        self._hosts = hosts
        self.folder = folder
        self.kind = kind_of_sweep(spec)
        self._mngr = Mngr(spec.mngr.path, mngr_environment(spec.mngr))

    @property
    def place(self) -> Place:
        """The place where the agents run, with the hosts that were made so far."""
        place = self._place
        if isinstance(place, ManyHosts):
            for access in made_hosts(self._hosts()):
                if access.name not in place.places:
                    place.add(access.name, place_on(access, self.spec))
        return place

    @functools.cached_property
    def _place(self) -> Place:
        return place_for(self.spec)

    def address_of(self, record: TestRecord) -> AgentAddress:
        session = f"{self.spec.mngr.prefix}{record.agent}"
        host = record.host or LOCAL_HOST
        return AgentAddress(record.agent, record.agent_id, session, record.state_dir, record.work_dir, host)

    def folder_of(self, record: TestRecord) -> Path | None:
        """Return where the sweep keeps what is known of an agent; None for a name that cannot be one."""
        try:
            return self.folder.agent(record.agent)
        except ValueError:
            return None

    def kind_of(self, record: TestRecord) -> AgentKind:
        """Return the kind of an agent; those of a watch each have their own."""
        types = (trait.removeprefix("type ") for trait in record.traits if trait.startswith("type "))
        return kind_of(next(types, "")) if self.spec.is_watch else self.kind

    def is_far(self, record: TestRecord) -> bool:
        """Return whether only mngr reaches an agent: it is on another machine, and no sweep's."""
        return self.spec.is_watch and record.host not in ("", LOCAL_HOST)

    def attacher(self, record: TestRecord) -> Attacher:
        """Return the way to connect this terminal to an agent's."""
        if self.is_far(record):
            return FarAttacher(self.place, self.spec.mngr, self.address_of(record))
        return self.place.attacher(record.host or LOCAL_HOST)

    async def capture(self, records: Sequence[TestRecord]) -> dict[str, str | None]:
        """Return the screens of these tests' agents as they are now, in one call; None for those without one."""
        # A session here may have the same name.
        records = [record for record in records if not self.is_far(record)]
        addresses = [self.address_of(record) for record in records]
        screens = await self.place.capture_screens(addresses)
        return {record.test: screens.get(agent.session) for record, agent in zip(records, addresses, strict=True)}

    def kept_screen(self, record: TestRecord) -> str | None:
        """Return the last screen of an agent as it was kept at its end; None without one."""
        try:
            path = self.folder.agent(record.agent) / SCREEN_NAME
            return read_regular(path)[-SCREEN_BYTES:].decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    async def send(self, records: Sequence[TestRecord], text: str) -> dict[str, str]:
        """Type a text into the living ones of these agents; return for each test what went wrong, or ""."""
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
        errors |= dict.fromkeys(report.missing, "mngr does not know it any more")
        return outcome | {record.test: errors.get(record.agent, "") for record in living}

    async def _why_unread(self, records: Sequence[TestRecord]) -> Mapping[str, str]:
        """Return why some agents would not read a text: mngr would start them anew to deliver it."""
        statuses = await self.place.agent_statuses()
        reasons = {}
        for record in records:
            if (record.host or LOCAL_HOST) in statuses.lost:
                reasons[record.test] = f"{record.host} does not answer"
                continue
            status = statuses.agents.get(record.agent_id)
            if status is None or status.state not in ("RUNNING", "WAITING"):
                reasons[record.test] = {
                    None: "mngr knows no such agent any more",
                    "STOPPED": "its agent is stopped",
                    "REPLACED": "another program runs in its terminal",
                }.get(status.state if status else None, "its agent has ended")
        return reasons
