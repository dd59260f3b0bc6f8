"""Base of all events: what an event does to the state, and its line in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from swarm_tui.journal.state import SweepState

INTEGRATOR_KEY: Final = "(integrator)"
"""The value of `test` in events of the integrating agent. No test can have this name."""


class LogLine(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One line of the log."""

    at: float
    level: str
    text: str
    test: str = ""


class Value(msgspec.Struct, frozen=True, gc=False):
    """A value that is stored in events. Unknown fields are ignored."""


def _type_name(class_name: str) -> str:
    """Return the `type` of an event in the journal: `engine_started` for EngineStarted."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in class_name).lstrip("_")


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag=_type_name):
    """Base of all events, with a sequence number and a time in seconds since 1970."""

    seq: int = 0
    at: float = 0.0

    @property
    def type(self) -> str:
        """The name of the event's type in the journal."""
        return str(self.__struct_config__.tag)

    def apply(self, state: SweepState) -> None:
        """Fold the event into the state of its sweep. Some events change nothing."""

    def log_line(self) -> LogLine | None:
        """Return the line of the event in the log, or None if it is not logged."""
        return None

    def logged(self, text: str, level: str = "info", test: str = "") -> LogLine:
        """Return a line for the log with the time of the event."""
        if test == INTEGRATOR_KEY:
            return LogLine(self.at, level, f"the integrator: {text}")
        return LogLine(self.at, level, text, test)


class TestEvent(Event, frozen=True):
    """An event of one test."""

    __test__ = False

    test: str
