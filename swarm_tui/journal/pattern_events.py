"""What the events about patterns change in the alarms, and their lines in the log."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_tui.model.alarm import PatternAlarm
from swarm_tui.model.events import PatternRaised, QueueHeld, QueueReleased
from swarm_tui.model.formatting import counted

PatternEvent = PatternRaised | QueueHeld | QueueReleased


def after_pattern_event(alarms: Mapping[str, PatternAlarm], event: PatternEvent) -> dict[str, PatternAlarm]:
    """Return the alarms after an event, by their causes."""
    changed = dict(alarms)
    match event:
        case PatternRaised():
            changed[event.cause] = PatternAlarm(event.cause, event.at, event.tests, event.shared)
        case QueueHeld() if event.cause:
            known = changed.get(event.cause) or PatternAlarm(event.cause, event.at, ())
            held = tuple(dict.fromkeys((*known.held, *event.tests)))
            changed[event.cause] = known._replace(held=held, why_held=event.reason)
        case QueueReleased():
            released = set(event.tests)
            for cause, alarm in alarms.items():
                if released & set(alarm.held):
                    changed[cause] = alarm._replace(is_released=True)
    return changed


def alarm_text(event: PatternRaised) -> str:
    """Return an alarm as a sentence."""
    shared = f" · {event.shared}" if event.shared else ""
    return f"{counted(len(event.tests), 'test')} met the same: {event.cause}{shared}"
