"""The hosts of a simulated sweep: how many agents each has, when it is heard of, and when it does not answer."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from typing import Final, NamedTuple

from swarm_tui.simulate.script import Fields

SEEN_EVERY: Final = 30.0
PROCESSORS: Final = 8
TROUBLE_EVERY: Final = 240.0
"""Seconds from one loss of a host to the next."""
GIVEN_UP: Final = 0.2
"""The part of the losses in which a host does not come back for a long time."""


class HostEvent(NamedTuple):
    """Something that happens to a host."""

    at: float
    host: str
    kind: str
    reason: str = ""


class SimulatedHosts:
    """Hosts with the same number of slots each."""

    def __init__(self, number: int, slots: int, seed: int) -> None:
        self.names = [f"box{each + 1}" for each in range(number)]
        self.per_host = max(1, -(-slots // max(1, number)))
        self._generator = random.Random(seed)
        self._agents: Counter[str] = Counter()
        self._back_at: dict[str, float] = {}
        self._due = [HostEvent(self._generator.uniform(0, SEEN_EVERY), name, "host_seen") for name in self.names]
        if number > 1:
            self._due.append(HostEvent(self._generator.uniform(20, TROUBLE_EVERY), "", "host_lost"))
        heapq.heapify(self._due)

    def access(self) -> list[Fields]:
        """Return how the hosts are reached, as sweep.json has it."""
        return [
            {"name": name, "provider": name, "address": f"10.0.{place // 250}.{place % 250 + 1}", "host_dir": "/mngr"}
            for place, name in enumerate(self.names)
        ]

    def take_slot(self) -> str | None:
        """Return the host with the most free slots, which has one less now; None when all that answer are full."""
        free = [name for name in self.names if name not in self._back_at and self._agents[name] < self.per_host]
        if not free:
            return None
        name = min(free, key=lambda name: self._agents[name])
        self._agents[name] += 1
        return name

    def free_slot(self, host: str) -> None:
        self._agents[host] -= 1

    def back_at(self, host: str) -> float | None:
        """Return when a host will answer again; None while it answers."""
        return self._back_at.get(host)

    def next_event(self, before: float) -> HostEvent | None:
        """Return the next event of a host, if it is due before that time."""
        while self._due and self._due[0].at <= before:
            event = heapq.heappop(self._due)
            match event.kind:
                case "host_seen":
                    heapq.heappush(self._due, event._replace(at=event.at + SEEN_EVERY))
                    if event.host in self._back_at:
                        continue
                case "host_lost":
                    event = self._lose_one(event)
                    if not event.host:
                        continue
                case "host_back":
                    del self._back_at[event.host]
            return event
        return None

    def _lose_one(self, event: HostEvent) -> HostEvent:
        again = event.at + self._generator.uniform(0.5, 1.5) * TROUBLE_EVERY
        heapq.heappush(self._due, HostEvent(again, "", "host_lost"))
        up = [name for name in self.names if name not in self._back_at]
        if len(up) < 2:
            return event
        host = self._generator.choice(up)
        seconds = self._generator.uniform(20, 120)
        if self._generator.random() < GIVEN_UP:
            heapq.heappush(self._due, HostEvent(event.at + seconds, host, "host_gone", "no answer for 15 minutes"))
            seconds = 1200.0
        self._back_at[host] = event.at + seconds
        heapq.heappush(self._due, HostEvent(event.at + seconds, host, "host_back"))
        return event._replace(host=host, reason="ssh: no answer within 10 s")

    def fields_of(self, event: HostEvent) -> Fields:
        """Return an event as the journal has it."""
        fields: Fields = {"type": event.kind, "host": event.host}
        if event.kind == "host_seen":
            load = self._agents[event.host] * self._generator.uniform(0.5, 1.5)
            fields |= {"load": round(load, 2), "processors": PROCESSORS}
        elif event.reason:
            fields["reason"] = event.reason
        return fields
