"""Events about hosts, the state of a host, and log lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from swarm_tui.model.event import Event, LogLine
from swarm_tui.model.spec import HostSettings

if TYPE_CHECKING:
    from swarm_tui.journal.state import SweepState


@dataclass(frozen=True, slots=True)
class HostState:
    """The state of one host according to the journal."""

    name: str
    lost_since: float | None = None
    """When it stopped answering; the states of its agents are stale since then."""
    reason: str = ""
    """Why it does not answer, or why it was given up."""
    is_gone: bool = False
    """Whether it was given up. No agent is launched on it until it answers again."""
    load: float | None = None
    processors: int = 0
    seen_at: float | None = None
    """When it last answered, according to the journal, which records that twice a minute."""
    stage: Literal["", "making", "made", "ended", "unreleased"] = ""
    """The stage of a host created for the sweep; empty for a host that existed before."""
    keeper: str = ""
    """The id of the idle agent that keeps a created host running."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """The connection to a created host: the fields of `HostSettings`."""

    @property
    def access(self) -> HostSettings | None:
        """The connection to a host that was created for the sweep and still exists; otherwise None."""
        return msgspec.convert(self.made, HostSettings) if self.stage == "made" and self.made else None


def made_hosts(hosts: Mapping[str, HostState]) -> tuple[HostSettings, ...]:
    """Return the connections to the hosts that were created for the sweep and still exist."""
    return tuple(host.access for host in hosts.values() if host.access is not None)


def _known(state: SweepState, name: str) -> HostState:
    return state.hosts.get(name) or HostState(name)


def _mark_stale(state: SweepState, host: str, since: float | None) -> None:
    for record in list(state.records.values()):
        if record.host == host and not record.is_finished:
            state.change(record.test, stale_since=since)


class HostPolled(Event, frozen=True):
    """A host answered a poll; written at most twice a minute for each host."""

    host: str
    load: float = 0.0
    """The load average over one minute."""
    processors: int = 0

    def apply(self, state: SweepState) -> None:
        state.hosts[self.host] = replace(
            _known(state, self.host), load=self.load, processors=self.processors, seen_at=self.at
        )


class HostLost(Event, frozen=True):
    """A host does not answer. The states of its agents are stale and stay as they are."""

    host: str
    reason: str = ""

    def apply(self, state: SweepState) -> None:
        state.hosts[self.host] = replace(_known(state, self.host), lost_since=self.at, reason=self.reason)
        _mark_stale(state, self.host, self.at)

    def log_line(self) -> LogLine | None:
        return self.logged(f"{self.host} does not answer: {self.reason}", "warning")


class HostRecovered(Event, frozen=True):
    """A host answers again, and its agents are polled again."""

    host: str
    seconds: float = 0.0
    """How long it did not answer."""

    def apply(self, state: SweepState) -> None:
        host = _known(state, self.host)
        state.hosts[self.host] = replace(host, lost_since=None, is_gone=False, reason="", seen_at=self.at)
        _mark_stale(state, self.host, None)

    def log_line(self) -> LogLine | None:
        return self.logged(f"{self.host} answers again after {self.seconds:.0f} s")


class HostAbandoned(Event, frozen=True):
    """A host was given up because it did not answer for too long. Its tests are queued for other hosts, or fail."""

    host: str
    reason: str = ""

    def apply(self, state: SweepState) -> None:
        state.hosts[self.host] = replace(_known(state, self.host), is_gone=True, reason=self.reason)

    def log_line(self) -> LogLine | None:
        return self.logged(f"{self.host} was given up: {self.reason}", "error")


class HostCreating(Event, frozen=True):
    """mngr is about to create a host with this name."""

    host: str

    def apply(self, state: SweepState) -> None:
        state.hosts[self.host] = HostState(self.host, stage="making")

    def log_line(self) -> LogLine | None:
        return self.logged(f"creating {self.host}")


class HostCreated(Event, frozen=True):
    """A new host was created and is reachable by ssh. An idle agent, the keeper, keeps it from being stopped."""

    host: str
    host_id: str = ""
    keeper: str = ""
    """The keeper's agent id."""
    access: dict[str, Any] = msgspec.field(default_factory=dict)
    """The fields of `HostSettings`."""

    def apply(self, state: SweepState) -> None:
        host = _known(state, self.host)
        state.hosts[self.host] = replace(host, stage="made", keeper=self.keeper, made=self.access, seen_at=self.at)

    def log_line(self) -> LogLine | None:
        return self.logged(f"{self.host} was created")


class HostNotReleased(Event, frozen=True):
    """A host that was created for the sweep could not be destroyed, and may still exist."""

    host: str
    reason: str = ""
    command: str = ""
    """The command that removes it."""

    def apply(self, state: SweepState) -> None:
        reason = f"{self.reason}; run `{self.command}`"
        state.hosts[self.host] = replace(_known(state, self.host), stage="unreleased", reason=reason)

    def log_line(self) -> LogLine | None:
        return self.logged(f"{self.host} may still exist: {self.reason}; to remove it, run `{self.command}`", "error")


class HostDestroyed(Event, frozen=True):
    """A host that was created for the sweep was destroyed, or could not be created."""

    host: str
    reason: str = ""
    is_failed: bool = False

    def apply(self, state: SweepState) -> None:
        state.hosts[self.host] = HostState(self.host, stage="ended", reason=self.reason)

    def log_line(self) -> LogLine | None:
        text = f"{self.host} {'could not be created' if self.is_failed else 'was destroyed'}"
        return self.logged(text + (f": {self.reason}" if self.reason else ""), "warning" if self.is_failed else "info")
