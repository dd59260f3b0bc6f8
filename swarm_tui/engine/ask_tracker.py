"""Makes events of what an agent asks through its hook."""

from __future__ import annotations

from dataclasses import dataclass, field

from swarm_tui.agents.observation import AgentObserver
from swarm_tui.model.events import AskClosed, Asked, KnownEvent
from swarm_tui.model.state import TestRecord


@dataclass(slots=True)
class AskTracker:
    """The asks of one agent that are recorded and not yet closed."""

    test: str
    _open: set[str] = field(default_factory=set)
    _recorded_until: float = 0.0
    """An earlier engine has recorded all asks up to this time."""

    def continue_from(self, record: TestRecord) -> None:
        """Continue where the journal ends."""
        self._open = {asked.ask.id for asked in record.asks}
        self._recorded_until = record.asked_until

    def new_events(self, observer: AgentObserver) -> list[KnownEvent]:
        """Return what has been asked, and what has ended, since the last call."""
        events: list[KnownEvent] = []
        for identity in sorted(self._open):
            if identity in observer.ended_asks:
                self._open.discard(identity)
                events.append(AskClosed(test=self.test, ask=identity, why=observer.ended_asks[identity]))
        for identity, ask in observer.asks.items():
            if identity not in self._open and ask.at > self._recorded_until:
                self._open.add(identity)
                events.append(Asked(test=self.test, ask=ask))
        return events
