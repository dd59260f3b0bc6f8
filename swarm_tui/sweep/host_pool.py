"""Decide on which host an agent is launched, and when hosts are created and destroyed. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from swarm_tui.model.spec import LOCAL_HOST
from swarm_tui.sweep.slots import CREATES_AT_ONCE, slots_taken

MAKES_AT_ONCE: Final = 4
IDLE_BEFORE_GIVEN_BACK: Final = 60.0


class HostPlan(NamedTuple):
    """The hosts to create and to destroy now."""

    make: int
    give_back: tuple[str, ...]


def plan_hosts(
    *,
    launchable: int,
    per_host: int,
    free: Mapping[str, int],
    making: int,
    idle_since: Mapping[str, float],
    now: float,
    makes_at_once: int = MAKES_AT_ONCE,
) -> HostPlan:
    """Return how many hosts to create, and which to destroy.

    `launchable` is how many tests could be launched now, `free` the number of free slots on each available host, by
    the rule of `HostPool.choose`. An idle host is destroyed after a while if the other hosts have slots for all of
    these tests.
    """
    room = sum(free.values())
    missing = launchable - room - making * per_host
    make = max(0, min(-(-missing // per_host), makes_at_once - making))
    give_back = []
    for host, number in free.items():
        is_idle = host in idle_since and now - idle_since[host] >= IDLE_BEFORE_GIVEN_BACK
        if is_idle and room - number >= launchable:
            room -= number
            give_back.append(host)
    return HostPlan(make, tuple(give_back))


CREATES_ON_HOST: Final = 2
"""mngr creates the agents of one host one after the other."""
CREATES_ON_HOSTS: Final = 8
REFUSALS: Final = 3
"""After this many failed launches in a row, a host gets no further agent."""
_PAUSES: Final = (10.0, 30.0)


@dataclass(frozen=True, slots=True)
class HostUse:
    """How many agents of a sweep are on a host."""

    active: int = 0
    waiting: int = 0
    creating: int = 0

    @property
    def number(self) -> int:
        return self.active + self.waiting + self.creating

    def free(self, per_host: int) -> int:
        """Return how many agents can be launched there."""
        return max(0, per_host - slots_taken(self.active + self.creating, self.waiting, per_host))


@dataclass(slots=True)
class _Health:
    refusals: int = 0
    not_before: float = float("-inf")
    reason: str = ""


class HostPool:
    """The hosts of a sweep; this machine if there are none."""

    def __init__(self, hosts: Sequence[str] = (), per_host: int = 0, *, is_growing: bool = False) -> None:
        self.creates_at_once = CREATES_ON_HOSTS if hosts or is_growing else CREATES_AT_ONCE
        self._is_growing = is_growing
        """Whether hosts are created on demand."""
        self._per_host = per_host
        self._health = {host: _Health() for host in hosts}

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self._health)

    def add(self, host: str) -> None:
        """Add a host that was created."""
        self._health.setdefault(host, _Health())

    def remove(self, host: str) -> None:
        """Launch no further agent on a host that is being destroyed."""
        self._health.pop(host, None)

    def choose(self, uses: Mapping[str, HostUse], lost: Collection[str], now: float) -> str | None:
        """Return the available host with the most free slots, or None."""
        if not self.hosts and not self._is_growing:
            return LOCAL_HOST
        free = []
        for position, host in enumerate(self.hosts):
            use, health = uses.get(host, HostUse()), self._health[host]
            if host in lost or health.refusals >= REFUSALS or now < health.not_before:
                continue
            slots = use.free(self._per_host)
            if use.creating < CREATES_ON_HOST and slots:
                free.append((-slots, position, host))
        return min(free)[2] if free else None

    def note_success(self, host: str) -> None:
        if host in self._health:
            self._health[host] = _Health()

    def note_failure(self, host: str, reason: str, now: float, *, is_lasting: bool = False) -> None:
        """Launch nothing on a host for a while after a failed launch; never again if the cause is permanent."""
        if host in self._health:
            health = self._health[host]
            health.not_before = now + _PAUSES[min(health.refusals, len(_PAUSES) - 1)]
            health.refusals = REFUSALS if is_lasting else health.refusals + 1
            health.reason = reason

    def why_hopeless(self, gone: Collection[str]) -> str:
        """Return why no host will accept an agent any more; "" if one may."""
        reasons = []
        for host, health in self._health.items():
            if host in gone and self._is_growing:
                return ""
            if host in gone:
                reasons.append(f"{host} does not answer any more")
            elif health.refusals >= REFUSALS:
                reasons.append(health.reason)
            else:
                return ""
        return "; ".join(dict.fromkeys(reasons))
