"""What the live plugin reports of a failed test: the errors it comes down to, and where they were raised."""

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
    """One error, at the place in the project's own code where it came up."""

    model_config = ConfigDict(frozen=True)

    type: _Name = ""
    message: Annotated[str, BeforeValidator(_message)] = ""
    file: _Name = ""
    """That of the innermost frame inside the project, from the top of the copy; empty without one."""
    function: _Name = ""
    statement: _Name = ""
    is_test: bool = False
    """Whether that frame is the tests' own code, not the program's."""
    place: _Name = ""
    """The test or the fixture in which it came up: its file and function."""
    subjects: _Words = ()
    """What the failed statement of the test looks at: the calls that made its values."""
    values: _Words = ()
    """The words of the message that were values of variables."""


class FailureDetail(BaseModel):
    """Why a test failed, without the errors that only wrap others."""

    model_config = ConfigDict(frozen=True)

    errors: Annotated[tuple[RaisedError, ...], BeforeValidator(_first_errors), Field(min_length=1)]
    wrappers: _Words = ()
    """The types of the errors that were raised for those, the outermost first."""


def parse_failure(fields: Any) -> FailureDetail | None:
    """Return what a line of the live plugin says of a failure; None where it says nothing that can be read."""
    try:
        return FailureDetail.model_validate(fields) if isinstance(fields, dict) else None
    except ValidationError:
        return None
