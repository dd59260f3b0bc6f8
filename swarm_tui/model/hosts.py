"""Hosts, the machines that agents run on: how each is reached, and what is known of it at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from swarm_tui.model.events import HostBack, HostEnded, HostGone, HostLost, HostMade, HostMaking, HostSeen

LOCAL_HOST: Final = "local"
"""This machine, as it is named among hosts."""


class HostAccess(BaseModel):
    """One host as mngr's settings describe it, and how ssh reaches it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    """As `--host` named it, and as it is shown: HOST when its provider bears the same name, else HOST.PROVIDER."""
    provider: str
    address: str
    host_dir: str
    """mngr's folder there: an absolute path."""
    port: int = 22
    user: str = "root"
    key_file: str = ""
    known_hosts_file: str = ""


@dataclass(frozen=True, slots=True)
class HostState:
    """What the journal tells of one host."""

    name: str
    lost_since: float | None = None
    """Since when it has not answered; its agents' states are stale since then."""
    reason: str = ""
    """Why it does not answer, or why it was given up."""
    is_gone: bool = False
    """It did not answer for so long that it was given up: no agent is launched there until it is back."""
    load: float | None = None
    processors: int = 0
    seen_at: float | None = None
    """When it was last heard of, as far as the journal was told; it is told twice a minute."""
    stage: Literal["", "making", "made", "ended"] = ""
    """Of a host that is made for the sweep: empty for one that was there before."""
    keeper: str = ""
    """The id of the agent that holds a host that was made."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """How a host that was made is reached: the fields of `HostAccess`."""

    @property
    def access(self) -> HostAccess | None:
        """Return how a host that was made, and is still there, is reached."""
        return HostAccess.model_validate(self.made) if self.stage == "made" and self.made else None


HostEvent = HostLost | HostBack | HostGone | HostSeen | HostMaking | HostMade | HostEnded


def after_host_event(known: Mapping[str, HostState], event: HostEvent) -> HostState:
    """Return what is known of a host after an event of it."""
    host = known.get(event.host) or HostState(event.host)
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


def made_hosts(known: Mapping[str, HostState]) -> tuple[HostAccess, ...]:
    """Return how the hosts are reached that were made for a sweep and are still there."""
    return tuple(host.access for host in known.values() if host.access is not None)


def mngr_address(agent: str, host: str) -> str:
    """Return the name of an agent for mngr: NAME on this machine, else NAME@HOST.PROVIDER."""
    if host in ("", LOCAL_HOST):
        return agent
    return f"{agent}@{host}" if "." in host else f"{agent}@{host}.{host}"
