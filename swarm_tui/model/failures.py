"""Details of a test failure, as reported by the live plugin: the root errors and where they were raised."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from swarm_tui.model.text import plain, plain_lines

ERRORS_KEPT: Final = 4
_WORDS_KEPT: Final = 12
_MESSAGE_LIMIT: Final = 600
_NAME_LIMIT: Final = 160


def _name(value: Any) -> Any:
    return plain(value, _NAME_LIMIT) if isinstance(value, str) else value


def _message(value: Any) -> Any:
    return plain_lines(value[:_MESSAGE_LIMIT]) if isinstance(value, str) else value


def _first_words(value: Any) -> Any:
    return value[:_WORDS_KEPT] if isinstance(value, list | tuple) else value


def _first_errors(value: Any) -> Any:
    return value[:ERRORS_KEPT] if isinstance(value, list | tuple) else value


_Name = Annotated[str, BeforeValidator(_name)]
_Words = Annotated[tuple[_Name, ...], BeforeValidator(_first_words)]


class RaisedError(BaseModel):
    """One error, located in the innermost frame of the project's own code."""

    model_config = ConfigDict(frozen=True)

    type: _Name = ""
    message: Annotated[str, BeforeValidator(_message)] = ""
    file: _Name = ""
    """The path of that frame, relative to the top of the copy; empty if no frame is in the project."""
    function: _Name = ""
    statement: _Name = ""
    is_test: bool = False
    """Whether that frame is in test code rather than in the program."""
    place: _Name = ""
    """The file and function of the test or fixture that raised it."""
    subjects: _Words = ()
    """The calls that produced the values in the failed statement of the test."""
    values: _Words = ()
    """Words of the message that are values of variables."""


class FailureDetail(BaseModel):
    """The root errors of a failed test, without errors that wrap others."""

    model_config = ConfigDict(frozen=True)

    errors: Annotated[tuple[RaisedError, ...], BeforeValidator(_first_errors), Field(min_length=1)]
    wrappers: _Words = ()
    """The types of the wrapping errors, outermost first."""


def parse_failure(fields: Any) -> FailureDetail | None:
    """Return the failure in a line of the live plugin, or None if it is missing or invalid."""
    try:
        return FailureDetail.model_validate(fields) if isinstance(fields, dict) else None
    except ValidationError:
        return None
