"""Whether the model of a sweep's agents answers them, as the journal tells it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from swarm_tui.model.formatting import counted
from swarm_tui.model.trouble import HOLDING, OPEN, WORDS, Dial, Trouble, TroubleKind, why_turned
from swarm_tui.model.trouble_events import DialTurned, LoginLost, LoginRestored

AccessEvent = DialTurned | LoginLost | LoginRestored


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """What is known of it after all events so far."""

    dial: Dial = OPEN
    hindered_at: float = 0.0
    """When an agent last was limited, or its model's server busy or out of reach."""
    lost: str = ""
    """`login_lost` or `unpaid` while nothing is launched for that reason."""
    lost_reason: str = ""
    restored_at: float = 0.0
    """When a person last said that the model answers again."""

    @property
    def lost_words(self) -> str:
        """`login lost`; empty when it is not."""
        return WORDS[TroubleKind(self.lost)] if self.lost else ""

    def is_holding(self, now: float) -> bool:
        """Return whether nothing is launched because a login is lost, or a limit stands for some time."""
        return bool(self.lost) or now < (self.dial.until or 0.0)

    def after_trouble(self, trouble: Trouble | None, at: float) -> ModelAccess:
        """Return what is known after an agent was seen in trouble, or in none."""
        return self if trouble is None or trouble.kind in HOLDING else replace(self, hindered_at=at)

    def after_event(self, event: AccessEvent) -> ModelAccess:
        match event:
            case LoginLost():
                return replace(self, lost=event.kind.value, lost_reason=event.reason)
            case LoginRestored():
                return replace(self, lost="", lost_reason="", restored_at=event.at)
            case DialTurned():
                return replace(self, dial=_dial_of(event, self.dial.halved_at))


def _dial_of(event: DialTurned, halved_at: float = 0.0) -> Dial:
    return Dial(
        slots=event.slots,
        cause=event.cause,
        detail=event.detail,
        until=event.until,
        halved_at=event.at if event.is_halved else halved_at,
        changed_at=event.at,
        too_many=event.too_many,
    )


def access_line(event: AccessEvent) -> tuple[str, str, str]:
    """Return the level, the text and the test of a line about the access to the model."""
    match event:
        case LoginLost():
            return "error", f"{WORDS[event.kind]}, the queue is held: {event.reason}", event.test
        case LoginRestored():
            return "info", f"{event.by or 'someone'} says that the model answers again", ""
        case DialTurned():
            number = "as many agents as were asked for"
            if event.slots is not None:
                number = f"at most {counted(event.slots, 'agent')} at a time"
            if not event.is_halved:
                return "info", f"{number} again", ""
            return "warning", f"{why_turned(_dial_of(event), event.at)}: {number}", ""
