"""What agents wait with that an answer of words can end: asks of their hooks, and turns that ended with a question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from swarm_tui.model.asks import OpenAsk, identity
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State

GONE: Final = "it is gone or has changed since it was shown; nothing was answered"


def item_of_turn(record: TestRecord) -> str:
    """Return the inbox id of an agent's ended turn: another one for another question, or for the next turn."""
    return identity(record.test, record.question, f"{record.since:.6f}")


def is_turn_over(record: TestRecord) -> bool:
    """Return whether an agent waits for words, with no dialog in the way.

    One whose hook has just been answered waits for nothing, until something else is seen of it.
    """
    is_between = bool(record.asked_until) and not record.question
    return record.state is State.WAITING and not record.asks and not record.needs_terminal and not is_between


def find_wait(records: Iterable[TestRecord], item: str) -> tuple[TestRecord, OpenAsk | None] | None:
    """Return the record of an item that can be answered, with the ask where it is one."""
    for record in records:
        for asked in record.asks:
            if asked.item == item:
                return record, asked
        if is_turn_over(record) and item_of_turn(record) == item:
            return record, None
    return None
