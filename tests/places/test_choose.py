"""Which place the agents of a sweep run in."""

from __future__ import annotations

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.model.sweep import MngrSettings, SweepSpec
from swarm_tui.places.choose import place_for
from swarm_tui.places.local import LocalPlace


def spec(provider: str) -> SweepSpec:
    settings = MngrSettings(path="mngr", host_dir="/home/.mngr")
    return SweepSpec(sweep="1", repository="/r", base="a", created_at=1.0, provider=provider, mngr=settings)


def test_local_agents_are_on_this_machine() -> None:
    place = place_for(spec("local"))
    assert isinstance(place, LocalPlace)
    assert place.host_dir_of("local") == "/home/.mngr"


def test_other_providers_are_refused_in_words() -> None:
    with pytest.raises(UsageError, match="agents on 'modal' cannot be reached yet") as raised:
        place_for(spec("modal"))
    assert raised.value.exit_code == 2
