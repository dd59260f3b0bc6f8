"""Names the cause of a failure: what is the same in tests that fail for one reason, and differs for two.

A cause is the type of the error and its message without places, values, ids, numbers, times and paths. Where such a
message fits many causes, the place in the project's code belongs to it; in a test, what the test looked at.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from swarm_tui.insight.templates import has_words, message_template
from swarm_tui.model.failure import FailureDetail, RaisedError
from swarm_tui.model.text import plain

CAUSE_LIMIT: Final = 400
_JOINED: Final = 3
_STATEMENT_LIMIT: Final = 120

# `test_login.py:10: ConnectionRefusedError: [Errno 111] ...`, as the failure of a try is written.
_PLACE: Final = re.compile(r"(?P<file>[^\s:]+\.\w{1,4}):(?P<line>\d+): ")
_TYPE: Final = re.compile(r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?:: (?P<message>.*))?$", re.DOTALL)
_TYPE_NAME: Final = re.compile(r"(Error|Exception|Warning|Failed|Exit|Interrupt|Timeout|Fault|Group)$")
_TEST_FILE: Final = re.compile(r"(^test_.*|_tests?|^conftest)\.py$")

_SCHEMA: Final = re.compile(
    r"no such|does not exist|has no column|unknown (column|table)|constraint failed|locked|to open"
)
_SIGNATURE: Final = re.compile(r"(?!__)[\w.<>]+\(\) (missing|takes|got an? (unexpected|multiple))")
_OF_PLAIN_TYPE: Final = re.compile(
    r"'(NoneType|str|int|float|bool|bytes|list|dict|tuple|set|function|method|generator|coroutine)' object"
)
_SAME_WORDS: Final = {
    "RecursionError": "maximum recursion depth exceeded",
    "ZeroDivisionError": "division by zero",
    "UnicodeDecodeError": "cannot be decoded",
    "UnicodeEncodeError": "cannot be encoded",
}
"""Errors whose messages differ only by the data that they met."""
_DATABASE_ERRORS: Final = frozenset(
    {"OperationalError", "ProgrammingError", "IntegrityError", "DatabaseError", "InterfaceError"}
)
_BY_STATEMENT: Final = frozenset(
    {"KeyError", "IndexError", "LookupError", "AttributeError", "TypeError", "ValueError", "ZeroDivisionError"}
    | {"AssertionError", "StopIteration", "OverflowError", "UnicodeDecodeError", "UnicodeEncodeError", "RuntimeError"}
)
"""Errors that the interpreter raises for data: which statement met the data is what tells causes apart."""
_BY_SUBJECT: Final = _BY_STATEMENT | {"Failed"}
"""Errors of a test itself whose types say nothing."""
_NAMING: Final = frozenset(
    {"ImportError", "ModuleNotFoundError", "FixtureLookupError", "SyntaxError", "IndentationError"}
)
"""Errors whose message names what is wrong, wherever it is met."""
_KEEPING_NAMES: Final = _NAMING | {"AttributeError", "NameError", "UnboundLocalError", "TypeError", "UsageError"}
"""Errors that quote names of the program, not values."""


@lru_cache(maxsize=20_000)
def cause_of_failure(failure: str, detail: FailureDetail | None) -> str:
    """Return the cause of a failed try, from what the live plugin says of it, else from its one line."""
    if detail is None:
        return cause_of_text(failure)
    causes = sorted({_cause_of_error(error) for error in detail.errors})
    return plain(" + ".join(causes[:_JOINED]), CAUSE_LIMIT)


@lru_cache(maxsize=20_000)
def cause_of_text(text: str) -> str:
    """Return the cause that one line tells, such as `shop.py:12: KeyError: 'alice'`."""
    line = text.strip().split("\n", 1)[0]
    place = _PLACE.match(line)
    rest = (line[place.end() :] if place else line).removeprefix("error: ")
    found = _TYPE.match(rest)
    if rest.startswith("assert "):
        error = RaisedError(type="AssertionError", message=rest)
    elif found is not None and (place or _TYPE_NAME.search(found["type"])):
        error = RaisedError(type=found["type"], message=found["message"] or "")
    else:
        return plain(message_template(rest, has_names=True), CAUSE_LIMIT)
    if place is not None:
        error = error.model_copy(update=_place_in_text(place))
    return plain(_cause_of_error(error), CAUSE_LIMIT)


def _place_in_text(place: re.Match[str]) -> dict[str, object]:
    """Return the fields for a place of which only the file and the line are known."""
    file = place["file"].rsplit("/", 1)[-1]
    if _TEST_FILE.search(file):
        return {"file": file, "is_test": True, "place": f"{file}:{place['line']}"}
    return {"file": f"{file}:{place['line']}"}


def _cause_of_error(error: RaisedError) -> str:
    name = error.type.rpartition(".")[2] or "error"
    shown = name if error.type.startswith(("_pytest.", "builtins.")) else error.type
    message = _template_of(error, name)
    text = f"{shown}: {message}" if message else shown
    where = _where(error, name)
    return f"{text} · {where}" if where else text


def _template_of(error: RaisedError, name: str) -> str:
    """Return what of the message belongs to the cause."""
    if name in _SAME_WORDS:
        return _SAME_WORDS[name]
    message = error.message
    if name == "Failed" and error.subjects:
        message = message.replace("<class '", "").partition("DID NOT RAISE ")[1] or message
    if name == "AssertionError":
        message = _own_words(error)
        if not has_words(message_template(message)):
            return _status_in(error.message)
    return message_template(message, values=error.values, has_names=name in _KEEPING_NAMES)


def _own_words(error: RaisedError) -> str:
    """Return what the author of an assertion wrote about its cause, without what pytest found in its expressions.

    Where a test itself asserts, its words are about this test; what it looks at says more.
    """
    if error.subjects and _is_in_test_itself(error):
        return ""
    return re.split(r"(?:^|\n)assert\s", error.message, maxsplit=1)[0].strip()


def _is_in_test_itself(error: RaisedError) -> bool:
    return not error.function or error.place == f"{error.file}::{error.function}"


def _status_in(message: str) -> str:
    """Return the code of an HTTP answer that an assertion met: it names a kind of failure, it is no amount."""
    found = re.search(r"where ([1-5]\d\d) = .*\.status(?:_code)?\b", message)
    return f"status {found[1]}" if found else ""


def _where(error: RaisedError, name: str) -> str:
    """Return the place that tells the cause from others with the same message; "" where the message is enough."""
    if _names_culprit(error, name):
        return ""
    if name in ("NameError", "UnboundLocalError"):
        return "" if error.is_test else error.file
    if not error.is_test:
        return _frame(error, name)
    is_in_test_itself = _is_in_test_itself(error)
    if name in _BY_SUBJECT and (is_in_test_itself or name in ("AssertionError", "Failed")):
        if name == "AssertionError" and has_words(message_template(_own_words(error))):
            return ""
        return f"on {', '.join(error.subjects)}" if error.subjects else error.place
    # A fixture or a helper of the tests is a place like any other; a test itself only meets the cause.
    is_test = error.function.rpartition(".")[2].startswith("test")
    return "" if is_in_test_itself and (is_test or not error.function) else _frame(error, name)


def _names_culprit(error: RaisedError, name: str) -> bool:
    message = error.message
    if name in _NAMING:
        return True
    if name == "AttributeError":
        return "has no attribute" in message and not _OF_PLAIN_TYPE.match(message)
    if name == "TypeError":
        return bool(_SIGNATURE.match(message))
    return name in _DATABASE_ERRORS and bool(_SCHEMA.search(message))


def _frame(error: RaisedError, name: str) -> str:
    place = "::".join(part for part in (error.file, error.function) if part)
    if name in _BY_STATEMENT and error.statement and not error.statement.startswith("raise"):
        return f"{place} `{error.statement[:_STATEMENT_LIMIT]}`"
    return place
