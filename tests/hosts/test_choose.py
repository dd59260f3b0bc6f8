"""Which place the agents of a sweep run in."""

from __future__ import annotations

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.registry import Hosts, open_hosts
from swarm_tui.model.hosts import HostSettings
from swarm_tui.model.spec import MngrSettings, SweepSpec


def spec(provider: str) -> SweepSpec:
    settings = MngrSettings(path="mngr", host_dir="/home/.mngr")
    return SweepSpec(sweep="1", repository="/r", base="a", created_at=1.0, provider=provider, mngr=settings)


def test_local_agents_are_on_this_machine() -> None:
    place = open_hosts(spec("local"))
    assert isinstance(place, LocalHost)
    assert place.host_dir_of("local") == "/home/.mngr"


async def test_hosts_that_were_made_are_places_beside_this_machine() -> None:
    access = HostSettings(name="s-1.docker", provider="docker", address="127.0.0.1", host_dir="/mngr")
    place = open_hosts(spec("docker"), [access])
    assert isinstance(place, Hosts)
    assert place.host_dir_of("s-1.docker") == "/mngr"
    await place.remove("s-1.docker")
    with pytest.raises(UsageError, match="knows no host"):
        place.host_dir_of("s-1.docker")
