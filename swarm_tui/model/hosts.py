"""Hosts, the machines that agents run on: how each is reached, and what is known of it at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import BaseModel, ConfigDict

from swarm_tui.model.events import HostBack, HostGone, HostLost, HostSeen

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


HostEvent = HostLost | HostBack | HostGone | HostSeen


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


def mngr_address(agent: str, host: str) -> str:
    """Return the name of an agent for mngr: NAME on this machine, else NAME@HOST.PROVIDER."""
    if host in ("", LOCAL_HOST):
        return agent
    return f"{agent}@{host}" if "." in host else f"{agent}@{host}.{host}"
