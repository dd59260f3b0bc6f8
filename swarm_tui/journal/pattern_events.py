"""Fold and text of events about alerts."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_tui.model.alerts import Alert
from swarm_tui.model.events import PatternRaised, QueueHeld, QueueReleased
from swarm_tui.model.formatting import counted

PatternEvent = PatternRaised | QueueHeld | QueueReleased


def after_pattern_event(alarms: Mapping[str, Alert], event: PatternEvent) -> dict[str, Alert]:
    """Return the alerts after an event, by cause."""
    changed = dict(alarms)
    match event:
        case PatternRaised():
            changed[event.cause] = Alert(event.cause, event.at, event.tests, event.shared)
        case QueueHeld() if event.cause:
            alert = changed.get(event.cause) or Alert(event.cause, event.at, ())
            held = tuple(dict.fromkeys((*alert.held, *event.tests)))
            changed[event.cause] = alert._replace(held=held, why_held=event.reason)
        case QueueReleased():
            released = set(event.tests)
            for cause, alarm in alarms.items():
                if released & set(alarm.held):
                    changed[cause] = alarm._replace(is_released=True)
    return changed


def alert_text(event: PatternRaised) -> str:
    """Return an alert as text."""
    shared = f" · {event.shared}" if event.shared else ""
    return f"{counted(len(event.tests), 'test')} with the same cause: {event.cause}{shared}"
