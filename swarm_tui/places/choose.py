"""Chooses the place in which the agents of a sweep run."""

from __future__ import annotations

from pathlib import Path

from swarm_tui.errors import UsageError
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.local import LocalPlace
from swarm_tui.places.place import Place


def check_provider(provider: str) -> None:
    """Raise UsageError for a provider of mngr whose agents cannot be reached."""
    if provider != LOCAL_HOST:
        raise UsageError(
            f"agents on {provider!r} cannot be reached yet", "leave --provider out: they run on this machine"
        )


def place_for(spec: SweepSpec) -> Place:
    """Return the place in which the agents of a sweep run."""
    check_provider(spec.provider)
    repository = Path(spec.repository)
    here = LocalPlace(spec.mngr, repository)
    if not spec.access:
        return here
    from swarm_tui.places.many_hosts import ManyHosts
    from swarm_tui.places.ssh import SshPlace
    from swarm_tui.places.ssh_link import SshLink

    hosts: dict[str, Place] = {
        access.name: SshPlace(access, spec.mngr, repository, SshLink(access)) for access in spec.access
    }
    return ManyHosts({LOCAL_HOST: here, **hosts})
