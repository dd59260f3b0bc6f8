"""Hosts, the machines that agents run on: how to connect to them."""

from __future__ import annotations

from typing import Final

from swarm_tui.model.event import Value

LOCAL_HOST: Final = "local"
"""The name of this machine in lists of hosts."""


class HostSettings(Value, frozen=True, kw_only=True):
    """The connection to one host, from the settings of mngr."""

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


def mngr_address(agent: str, host: str) -> str:
    """Return the name of an agent for mngr: NAME on this machine, otherwise NAME@HOST.PROVIDER."""
    if host in ("", LOCAL_HOST):
        return agent
    return f"{agent}@{host}" if "." in host else f"{agent}@{host}.{host}"
