"""Hosts, the machines that agents run on: how to connect to them, and their state in the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from swarm_tui.model.events import HostBack, HostEnded, HostGone, HostLost, HostMade, HostMaking, HostSeen

LOCAL_HOST: Final = "local"
"""The name of this machine in lists of hosts."""


class HostSettings(BaseModel):
    """The connection to one host, from the settings of mngr."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    """The displayed name, also used by `--host`: HOST if the provider has the same name, otherwise HOST.PROVIDER."""
    provider: str
    address: str
    host_dir: str
    """The absolute path of mngr's folder on the host."""
    port: int = 22
    user: str = "root"
    key_file: str = ""
    known_hosts_file: str = ""


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
    stage: Literal["", "making", "made", "ended"] = ""
    """The stage of a host created for the sweep; empty for a host that existed before."""
    keeper: str = ""
    """The id of the idle agent that keeps a created host running."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """The connection to a created host: the fields of `HostSettings`."""

    @property
    def access(self) -> HostSettings | None:
        """The connection to a host that was created for the sweep and still exists; otherwise None."""
        return HostSettings.model_validate(self.made) if self.stage == "made" and self.made else None


HostEvent = HostLost | HostBack | HostGone | HostSeen | HostMaking | HostMade | HostEnded


def after_host_event(hosts: Mapping[str, HostState], event: HostEvent) -> HostState:
    """Return the state of the event's host after the event."""
    host = hosts.get(event.host) or HostState(event.host)
    match event:
        case HostLost():
            return replace(host, lost_since=event.at, reason=event.reason)
        case HostGone():
            return replace(host, is_gone=True, reason=event.reason)
        case HostBack():
            return replace(host, lost_since=None, is_gone=False, reason="", seen_at=event.at)
        case HostSeen():
            return replace(host, load=event.load, processors=event.processors, seen_at=event.at)
        case HostMaking():
            return HostState(event.host, stage="making")
        case HostMade():
            return replace(host, stage="made", keeper=event.keeper, made=event.access, seen_at=event.at)
        case HostEnded():
            return HostState(event.host, stage="ended", reason=event.reason)


def made_hosts(hosts: Mapping[str, HostState]) -> tuple[HostSettings, ...]:
    """Return the connections to the hosts that were created for the sweep and still exist."""
    return tuple(host.access for host in hosts.values() if host.access is not None)


def mngr_address(agent: str, host: str) -> str:
    """Return the name of an agent for mngr: NAME on this machine, otherwise NAME@HOST.PROVIDER."""
    if host in ("", LOCAL_HOST):
        return agent
    return f"{agent}@{host}" if "." in host else f"{agent}@{host}.{host}"
