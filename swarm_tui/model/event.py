"""Base of all events, and of the values in events."""

from __future__ import annotations

import msgspec


class Value(msgspec.Struct, frozen=True):
    """A value that is stored in events. Unknown fields are ignored."""


def _type_name(class_name: str) -> str:
    """Return the `type` of an event in the journal: `engine_started` for EngineStarted."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in class_name).lstrip("_")


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=_type_name):
    """Base of all events, with a sequence number and a time in seconds since 1970."""

    seq: int = 0
    at: float = 0.0

    @property
    def type(self) -> str:
        """The name of the event's type in the journal."""
        return str(self.__struct_config__.tag)


class TestEvent(Event, frozen=True):
    """An event of one test."""

    __test__ = False

    test: str
