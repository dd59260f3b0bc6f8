"""Details of a test failure, as reported by the live plugin: the root errors and where they were raised."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from swarm_tui.model.event import Value
from swarm_tui.model.text import plain, plain_lines

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
