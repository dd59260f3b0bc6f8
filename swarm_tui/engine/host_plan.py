"""Decides when new hosts are made and when they are given back: a pure function of the queue and of what runs where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

MAKES_AT_ONCE: Final = 4
IDLE_BEFORE_GIVEN_BACK: Final = 60.0


class HostPlan(NamedTuple):
    """What is to be done about hosts now."""

    make: int
    give_back: tuple[str, ...]


def plan_hosts(
    *,
    launchable: int,
    per_host: int,
    agents: Mapping[str, int],
    making: int,
    idle_since: Mapping[str, float],
    now: float,
) -> HostPlan:
    """Return how many hosts to make, and which to give back.

    `launchable` is how many tests could be launched at once, `agents` the number of agents on each host that is there.
    An empty host is given back when those that stay have room for all of these, after it was idle for a while.
    """
    room = sum(max(0, per_host - number) for number in agents.values())
    missing = launchable - room - making * per_host
    make = max(0, min(-(-missing // per_host), MAKES_AT_ONCE - making))
    give_back = []
    for host, number in agents.items():
        is_idle = number == 0 and now - idle_since.get(host, now) >= IDLE_BEFORE_GIVEN_BACK
        if is_idle and room - per_host >= launchable:
            room -= per_host
            give_back.append(host)
    return HostPlan(make, tuple(give_back))
