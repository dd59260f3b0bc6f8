"""Failures of tests, alerts and the held queue: types, events, how events change the state, and their log lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from swarm_tui.model.event import Event, LogLine, Value
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain, plain_lines

if TYPE_CHECKING:
    from swarm_tui.journal.state import SweepState


ERRORS_KEPT: Final = 4
_WORDS_KEPT: Final = 12
_MESSAGE_LIMIT: Final = 600
_NAME_LIMIT: Final = 160


class RaisedError(Value, frozen=True, kw_only=True):
    """One error, located in the innermost frame of the project's own code."""

    type: str = ""
    message: str = ""
    file: str = ""
    """The path of that frame, relative to the top of the copy; empty if no frame is in the project."""
    function: str = ""
    statement: str = ""
    is_test: bool = False
    """Whether that frame is in test code rather than in the program."""
    place: str = ""
    """The file and function of the test or fixture that raised it."""
    subjects: tuple[str, ...] = ()
    """The calls that produced the values in the failed statement of the test."""
    values: tuple[str, ...] = ()
    """Words of the message that are values of variables."""


class FailureDetail(Value, frozen=True, kw_only=True):
    """The root errors of a failed test, without errors that wrap others."""

    errors: Annotated[tuple[RaisedError, ...], msgspec.Meta(min_length=1)]
    wrappers: tuple[str, ...] = ()
    """The types of the wrapping errors, outermost first."""


def parse_failure(fields: Any) -> FailureDetail | None:
    """Return the failure in a line of the live plugin, or None if it is missing or invalid."""
    errors = fields.get("errors") if isinstance(fields, dict) else None
    if not isinstance(errors, list) or not errors:
        return None
    try:
        return msgspec.convert(
            {**_safe(fields), "errors": [_safe(error) for error in errors[:ERRORS_KEPT]]}, FailureDetail
        )
    except msgspec.ValidationError:
        return None


def _safe(fields: Any) -> Any:
    """Return fields with texts that are truncated and safe to print."""
    if not isinstance(fields, dict):
        return fields
    safe = {str(name): _safe_value(value) for name, value in fields.items() if name != "errors"}
    message = fields.get("message")
    return safe | ({"message": plain_lines(message[:_MESSAGE_LIMIT])} if isinstance(message, str) else {})


def _safe_value(value: Any) -> Any:
    match value:
        case str():
            return plain(value, _NAME_LIMIT)
        case list():
            return [plain(each, _NAME_LIMIT) if isinstance(each, str) else each for each in value[:_WORDS_KEPT]]
    return value


class Alert(NamedTuple):
    """An alert: the number of tests with the same cause has reached the threshold."""

    cause: str
    at: float
    tests: tuple[str, ...]
    """The tests that had failed for this cause when the alert was raised."""
    shared: str = ""
    """What these tests have in common, and the other tests do not."""
    held: tuple[str, ...] = ()
    """Queued tests that are held because they would probably fail for the same cause."""
    why_held: str = ""
    is_released: bool = False
    """Whether the user has released a held test. After that, no test is held for this cause."""


class AlertRaised(Event, frozen=True):
    """The number of tests with the same cause reached `--alert`; recorded once for each cause."""

    cause: str
    tests: tuple[str, ...] = ()
    shared: str = ""
    """What these tests have in common, and the other tests do not."""

    def apply(self, state: SweepState) -> None:
        state.alerts = {**state.alerts, self.cause: Alert(self.cause, self.at, self.tests, self.shared)}

    def log_line(self) -> LogLine | None:
        shared = f" · {self.shared}" if self.shared else ""
        return self.logged(f"{counted(len(self.tests), 'test')} with the same cause: {self.cause}{shared}", "warning")


class QueueHeld(Event, frozen=True):
    """The queue, or only the named tests, will not be launched until released."""

    tests: tuple[str, ...] = ()
    reason: str = ""
    cause: str = ""
    """The cause of the alert; empty if the user holds the tests."""

    def apply(self, state: SweepState) -> None:
        state.hold(self.tests, is_held=True, cause=self.cause)
        if self.cause:
            alert = state.alerts.get(self.cause) or Alert(self.cause, self.at, ())
            held = tuple(dict.fromkeys((*alert.held, *self.tests)))
            state.alerts = {**state.alerts, self.cause: alert._replace(held=held, why_held=self.reason)}

    def log_line(self) -> LogLine | None:
        text = f"{_tests_are(self.tests)} held" + (f": {self.reason}" if self.reason else "")
        return self.logged(f"{text} · {self.cause}", "warning") if self.cause else self.logged(text)


class QueueReleased(Event, frozen=True):
    """The queue, or the named tests, may be launched again."""

    tests: tuple[str, ...] = ()

    def apply(self, state: SweepState) -> None:
        state.hold(self.tests, is_held=False)
        released = set(self.tests)
        state.alerts = {
            cause: alert._replace(is_released=True) if released & set(alert.held) else alert
            for cause, alert in state.alerts.items()
        }

    def log_line(self) -> LogLine | None:
        return self.logged(f"{_tests_are(self.tests)} released")


def _tests_are(tests: tuple[str, ...]) -> str:
    if not tests:
        return "the queue is"
    return "1 test is" if len(tests) == 1 else f"{len(tests)} tests are"
