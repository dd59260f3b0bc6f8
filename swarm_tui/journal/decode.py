"""Decode the lines of the journal."""

from __future__ import annotations

import functools
import operator
from typing import Any, Final

import msgspec

from swarm_tui.model.event import Event, TestEvent
from swarm_tui.model.events import Harvested, UnknownEvent
from swarm_tui.model.pulled import PulledWork

KNOWN_EVENTS: Final = tuple(
    kind for base in (Event, TestEvent) for kind in base.__subclasses__() if kind not in (TestEvent, UnknownEvent)
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
_FLAT_WORK: Final = msgspec.json.Decoder(PulledWork)


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
    if type(event) is Harvested and b'"harvest"' not in line:
        # Format 1 had the fields of the report next to the result.
        return msgspec.structs.replace(event, harvest=_FLAT_WORK.decode(line))
    return event
