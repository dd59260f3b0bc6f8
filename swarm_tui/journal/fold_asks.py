"""What the events of the inbox do to the asks of a record."""

from __future__ import annotations

from typing import Any

from swarm_tui.model.ask_events import AskAnswered, AskClosed, Asked
from swarm_tui.model.asks import OpenAsk, item_of_ask
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State


def changes_by(event: Asked | AskAnswered | AskClosed, record: TestRecord) -> dict[str, Any]:
    """Return the fields of a record that an event changes."""
    match event:
        case Asked():
            asks = tuple(asked for asked in record.asks if asked.ask.id != event.ask.id)
            asks = (*asks, OpenAsk(event.ask, item_of_ask(event.test, event.ask)))
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


def _with_asks(record: TestRecord, asks: tuple[OpenAsk, ...]) -> dict[str, Any]:
    """Return what changes with the asks: until it is seen again, an agent that waits does so with the oldest."""
    if record.state is not State.WAITING:
        return {"asks": asks}
    return {"asks": asks, "question": asks[0].ask.text if asks else "", "options": asks[0].ask.options if asks else ()}
