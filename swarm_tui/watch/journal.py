"""The journal of watched agents. It is rewritten when an agent disappears, because no event removes a test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import structs

from swarm_tui.journal.append import JournalWriter, encode_event
from swarm_tui.journal.events import Launched, MessageSent, Queued, Seen, Stopped
from swarm_tui.journal.folder import SweepFolder, draft_beside
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import Committed, Said
from swarm_tui.model.event import Event, TestEvent
from swarm_tui.model.results import State
from swarm_tui.money.events import Spent
from swarm_tui.watch.agents import ENDED, WatchedAgent

TimedEvent = tuple[float, Event]

_KEPT_OF_AGENT: Final = 200
_KEPT_OF_WATCH: Final = 1_000
_LATEST_COUNTS: Final = (Seen, Said, Spent, Committed, Stopped)
"""For these event types, only the last event of an agent matters."""


class WatchJournal:
    """Records what agents do, and keeps the events that are needed to rewrite the journal."""

    def __init__(self, folder: SweepFolder, begun: Event, clock: Callable[[], float] = time.time) -> None:
        """`begun` is the journal's first event."""
        self.state = SweepState()
        self._folder = folder
        self._begun = begun
        self._clock = clock
        self._of_agents: dict[str, list[TimedEvent]] = {}
        self._of_watch: list[TimedEvent] = []
        self._writer: JournalWriter | None = None

    def add(self, agent: WatchedAgent) -> list[TimedEvent]:
        """Add a new or renamed agent. Return the events that describe it."""
        self._of_agents[agent.key] = events = list(first_events(agent, self._clock()))
        return list(events)

    def forget(self, key: str) -> None:
        """Remove an agent. Afterwards the journal must be rewritten."""
        self._of_agents.pop(key, None)

    def record(self, event: Event) -> None:
        """Append one event."""
        kept, limit = self._of_watch, _KEPT_OF_WATCH
        if isinstance(event, TestEvent) and not isinstance(event, MessageSent) and event.test in self._of_agents:
            kept, limit = self._of_agents[event.test], _KEPT_OF_AGENT
            if isinstance(event, _LATEST_COUNTS):
                kept[:] = [timed for timed in kept if type(timed[1]) is not type(event)]
        kept.append((self._clock(), event))
        # Keep the first two events, which describe the agent.
        del kept[2 : 2 + max(0, len(kept) - limit)]
        self._append(event)

    def append_all(self, events: Iterable[TimedEvent]) -> None:
        """Append the events of new agents."""
        for _, event in sorted(events, key=lambda timed: timed[0]):
            self._append(event)

    def _append(self, event: Event) -> None:
        if self._writer is not None:
            self.state.apply(self._writer.append(event))

    def write_anew(self) -> None:
        """Rewrite the whole journal. Readers start again."""
        kept = [*(timed for of_agent in self._of_agents.values() for timed in of_agent), *self._of_watch]
        kept.sort(key=lambda timed: timed[0])
        events = [(kept[0][0] if kept else self._clock(), self._begun), *kept]
        self.close()
        self.state = SweepState()
        at = 0.0
        with draft_beside(self._folder.events) as draft:
            for number, (when, event) in enumerate(events, 1):
                at = max(at, when)
                written = structs.replace(event, seq=number, at=at)
                draft.write(encode_event(written) + b"\n")
                self.state.apply(written)
        self._writer = JournalWriter(self._folder.events, last_seq=len(events), last_at=at, clock=self._clock)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def first_events(agent: WatchedAgent, now: float) -> Iterator[TimedEvent]:
    """Yield the events that describe an agent, with their times."""
    created = agent.created_at or agent.since or now
    yield created, Queued(test=agent.key, agent=agent.address.name, branch=agent.branch, traits=agent.traits)
    yield created, launch_event(agent)
    yield agent.since or created, state_event(agent)


def launch_event(agent: WatchedAgent) -> Launched:
    address = agent.address
    return Launched(
        test=agent.key,
        agent_id=address.agent_id,
        host=address.host,
        work_dir=address.work_dir,
        state_dir=address.state_dir,
    )


def state_event(agent: WatchedAgent) -> Seen | Stopped:
    source = "process" if agent.address.state_dir else "mngr list"
    if not agent.is_alive:
        return Stopped(test=agent.key, reason=ENDED[agent.state], source=source)
    return Seen(test=agent.key, state=State.WAITING if agent.state == "WAITING" else State.RUNNING, source=source)
