"""Decode the lines of the journal."""

from __future__ import annotations

import functools
import operator
from typing import Any, Final

import msgspec

import swarm_tui.failures.events as failures
import swarm_tui.hosts.events as hosts
import swarm_tui.integrator.events as integrator
import swarm_tui.journal.events as journal
import swarm_tui.limits.events as limits
import swarm_tui.money.events as money
import swarm_tui.questions.events as questions
from swarm_tui.journal import work_events as work
from swarm_tui.journal.events import UnknownEvent
from swarm_tui.model.event import Event

KNOWN_EVENTS: Final = tuple(
    kind
    for module in (journal, work, questions, money, limits, failures, hosts, integrator)
    for kind in vars(module).values()
    if isinstance(kind, type)
    and issubclass(kind, Event)
    and kind.__module__ == module.__name__
    and kind is not UnknownEvent
)
_TYPES: Final = frozenset(kind.__struct_config__.tag for kind in KNOWN_EVENTS)
AnyEvent: Final[Any] = functools.reduce(operator.or_, KNOWN_EVENTS)
_ANY_EVENT: Final = msgspec.json.Decoder[Any](AnyEvent)


class _OtherEvent(msgspec.Struct):
    """The fields that events of all versions have."""

    type: str
    seq: int = 0
    at: float = 0.0


_OTHER_EVENT: Final = msgspec.json.Decoder(_OtherEvent)


def parse_event(line: bytes) -> Event:
    """Return the event in a line of the journal. Raise ValueError if the line is invalid."""
    try:
        try:
            event: Event = _ANY_EVENT.decode(line)
        except msgspec.ValidationError:
            other = _OTHER_EVENT.decode(line)
            if other.type in _TYPES:
                raise
            return UnknownEvent(seq=other.seq, at=other.at, name=other.type)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return event
