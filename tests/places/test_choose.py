"""Which place the agents of a sweep run in."""

from __future__ import annotations

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.model.hosts import HostAccess
from swarm_tui.model.sweep import MngrSettings, SweepSpec
from swarm_tui.places.choose import place_for
from swarm_tui.places.local import LocalPlace
from swarm_tui.places.many_hosts import ManyHosts


def spec(provider: str) -> SweepSpec:
    settings = MngrSettings(path="mngr", host_dir="/home/.mngr")
    return SweepSpec(sweep="1", repository="/r", base="a", created_at=1.0, provider=provider, mngr=settings)


def test_local_agents_are_on_this_machine() -> None:
    place = place_for(spec("local"))
    assert isinstance(place, LocalPlace)
    assert place.host_dir_of("local") == "/home/.mngr"


async def test_hosts_that_were_made_are_places_beside_this_machine() -> None:
    access = HostAccess(name="s-1.docker", provider="docker", address="127.0.0.1", host_dir="/mngr")
    place = place_for(spec("docker"), [access])
    assert isinstance(place, ManyHosts)
    assert place.host_dir_of("s-1.docker") == "/mngr"
    await place.remove("s-1.docker")
    with pytest.raises(UsageError, match="knows no host"):
        place.host_dir_of("s-1.docker")
