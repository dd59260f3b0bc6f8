"""Fold events about questions into a record."""

from __future__ import annotations

from typing import Any

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.questions import AskAnswered, AskClosed, Asked, OpenQuestion, item_id
from swarm_tui.model.results import State


def changes_by(event: Asked | AskAnswered | AskClosed, record: TestRecord) -> dict[str, Any]:
    """Return the fields of a record that an event changes."""
    match event:
        case Asked():
            asks = tuple(asked for asked in record.asks if asked.ask.id != event.ask.id)
            asks = (*asks, OpenQuestion(event.ask, item_id(event.test, event.ask)))
            return {"asked_until": max(record.asked_until, event.ask.at), **_with_asks(record, asks)}
        case AskAnswered():
            by = f"{event.by} ({event.rule})" if event.rule else event.by
            return {
                "asks": tuple(
                    asked._replace(answered_at=event.at, answered_by=by) if asked.ask.id == event.ask else asked
                    for asked in record.asks
                )
            }
        case AskClosed():
            asks = tuple(asked for asked in record.asks if asked.ask.id != event.ask)
            return _with_asks(record, asks) if asks != record.asks else {}


def _with_asks(record: TestRecord, asks: tuple[OpenQuestion, ...]) -> dict[str, Any]:
    """Return the changed fields. A waiting agent shows its oldest question until the next poll."""
    if record.state is not State.WAITING:
        return {"asks": asks}
    return {"asks": asks, "question": asks[0].ask.text if asks else "", "options": asks[0].ask.options if asks else ()}
