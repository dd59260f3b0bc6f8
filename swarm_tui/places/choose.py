"""Chooses the place in which the agents of a sweep run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.model.hosts import LOCAL_HOST, HostAccess
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.local import LocalPlace
from swarm_tui.places.place import Place

if TYPE_CHECKING:
    from swarm_tui.places.ssh import SshPlace


def place_for(spec: SweepSpec, made: Iterable[HostAccess] = ()) -> Place:
    """Return the place in which the agents of a sweep run; `made` are the hosts that were made for it so far."""
    here = LocalPlace(spec.mngr, Path(spec.repository))
    if not spec.access and spec.provider == LOCAL_HOST:
        return here
    from swarm_tui.places.many_hosts import ManyHosts

    hosts: dict[str, Place] = {access.name: place_on(access, spec) for access in (*spec.access, *made)}
    return ManyHosts({LOCAL_HOST: here, **hosts})


def place_on(access: HostAccess, spec: SweepSpec) -> SshPlace:
    """Return one other host as a place."""
    from swarm_tui.places.ssh import SshPlace
    from swarm_tui.places.ssh_link import SshLink

    return SshPlace(access, spec.mngr, Path(spec.repository), SshLink(access))
