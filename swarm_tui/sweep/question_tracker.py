"""Makes events of what an agent asks through its hook."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from swarm_tui.agents.observer import AgentObserver
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.event import Event
from swarm_tui.model.questions import ClosedQuestion
from swarm_tui.questions.events import BY_TYPING, AskClosed, Asked


@dataclass(slots=True)
class QuestionTracker:
    """The asks of one agent that are recorded and not yet closed."""

    test: str
    typed_until: float = 0.0
    """When a text was last typed into its terminal, by the wall clock; `inf` while that goes on."""
    _open: set[str] = field(default_factory=set)
    _recorded_until: float = 0.0
    """An earlier engine has recorded all asks up to this time."""
    _ended: int = 0
    """How many asks have ended so far."""

    def continue_from(self, record: TestRecord) -> None:
        """Continue where the journal ends."""
        self._open = {asked.ask.id for asked in record.asks}
        self._recorded_until = record.asked_until

    def new_events(self, observer: AgentObserver) -> list[Event]:
        """Return what has been asked, and what has ended, since the last call."""
        events: list[Event] = []
        for ended in islice(observer.closed_questions.values(), self._ended, None):
            self._ended += 1
            if ended.ask.id not in self._open and ended.ask.at > self._recorded_until:
                events.append(Asked(test=self.test, ask=ended.ask))
            elif ended.ask.id not in self._open:
                continue
            self._open.discard(ended.ask.id)
            events.append(AskClosed(test=self.test, ask=ended.ask.id, why=self._why(ended)))
        for identity, ask in observer.open_questions.items():
            if identity not in self._open and ask.at > self._recorded_until:
                self._open.add(identity)
                events.append(Asked(test=self.test, ask=ask))
        return events

    def _why(self, ended: ClosedQuestion) -> str:
        # Where mngr does not see soon that a text has arrived it presses Enter again: a dialog takes that as a yes.
        is_by_keys = ended.why in ("on the screen", "interrupted")
        return BY_TYPING if is_by_keys and ended.ask.at <= self.typed_until else ended.why
