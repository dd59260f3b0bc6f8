"""Cause of a failure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import structs

from swarm_tui.failures.events import FailureDetail, RaisedError
from swarm_tui.model.text import plain

LINES_KEPT: Final = 3
_LINE_LIMIT: Final = 300
_VALUE: Final = "'…'"
_PATH: Final = "<path>"

_QUOTED: Final = re.compile(
    r"""(?<![\w'"])[bBuUrRfF]{0,2}(?:'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`[^`\n]+`|“[^”\n]*”|‘[^’\n]*’)(?!\w)"""
)
_COMMAND: Final = re.compile(
    r"""Command '(?:\['?)?(?P<words>(?:[^'\n]|'(?! (?:returned|died|timed)))*)'(?= returned| died| timed)"""
)


class VaryingPart(NamedTuple):
    """A pattern for a varying part of messages. It is tried only in lines that contain `needle`, to save time."""

    needle: str
    pattern: re.Pattern[str]
    placeholder: str


_ID: Final = "<id>"
_TIME: Final = "<time>"
_FORMS_WITH_QUOTES: Final = (
    VaryingPart("://", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+", re.I), "<url>"),
    VaryingPart("<class '", re.compile(r"<class '([\w.<>]+)'>"), r"\1"),
    VaryingPart("input_value=", re.compile(r"\binput_value=.*?, input_type=\w+"), "input_value=…"),
)
_FORMS: Final = (
    VaryingPart("at 0x", re.compile(r"\bat 0x[0-9a-fA-F]+"), ""),
    VaryingPart("-", re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), _ID),
    VaryingPart("@", re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "<address>"),
    VaryingPart("/", re.compile(r"(?<![\w.])(?:~|\.{1,2})?(?:/[\w.+@%$~=,-]+)+/?"), _PATH),
    VaryingPart("/", re.compile(r"(?<![\w/])[\w.+@-]+(?:/[\w.+@-]+)+\.\w{1,5}\b"), _PATH),
    VaryingPart(":\\", re.compile(r"\b[A-Za-z]:\\[\w.\\ -]+"), _PATH),
    VaryingPart("tmp", re.compile(r"\btmp[a-z0-9_]{6,10}\b"), _ID),
)
_FORMS_WITH_DIGITS: Final = (
    VaryingPart("0x", re.compile(r"0x[0-9a-fA-F]+"), "0x…"),
    VaryingPart(
        "-", re.compile(r"\b\d{4}-\d\d?-\d\d?(?:[T ]\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), _TIME
    ),
    VaryingPart(":", re.compile(r"\b\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?[AaPp][Mm])?\b"), _TIME),
    # Hexadecimal ids contain both letters and digits.
    VaryingPart("", re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}\b"), _ID),
    # Mixed letters and digits, as in `req_8fK2jd93`.
    VaryingPart("", re.compile(r"\b(?=\w{6,}\b)\w*\d[A-Za-z]+\d\w*\b"), _ID),
)
_DIGIT: Final = re.compile(r"\d")
# Numbers, except HTTP status codes, which identify the kind of failure.
_NUMBER: Final = re.compile(
    r"(?P<status>(?<!exit )\b(?:HTTP(?:/\d\.\d)?|status(?:[ _]code)?)[ :=]+(?:is |was |of )?[1-5]\d\d\b)"
    r"|(?<![A-Za-z…])[-+]?\d[\d_]*(?:[.,:]\d+)*(?:[eE][-+]?\d+)?%?|(?<=[A-Za-z_])\d+(?:\.\d+)*",
    re.IGNORECASE,
)
_PLURAL: Final = re.compile(r"(?<=\bN )((?:\w+ )?\w{2,}?)s\b")
_LIST: Final = re.compile(r"(?:\bN|'…'|None|True|False|…)(?:, (?:\bN|'…'|None|True|False|…))+")
_INSIDE: Final = r"(?:\bN|'…'|None|True|False|…|[,: .])"
_BRACKETS: Final = re.compile(rf"[\[{{]{_INSIDE}*[\]}}]|\({_INSIDE}+\)")
_WORDS: Final = re.compile(r"[^\W\d_]{3,}")
_EMPTY_WORDS: Final = frozenset(
    {"assert", "where", "and", "not", "is", "in", "true", "false", "none", "for", "the", "was", "are", "but", "than"}
    | {"found", "equal", "expected", "actual", "got", "error", "failed", "unexpectedly", "url", "path", "id", "time"}
    | {"address", "first", "lists", "differ", "items"}
)
"""Words that occur in messages of any assertion."""


@lru_cache(maxsize=20_000)
def message_template(text: str, *, values: tuple[str, ...] = (), has_names: bool = False) -> str:
    """Return the first lines of a message with placeholders for varying parts.

    `values` are words of the message that are values. With `has_names`, quoted words are names of the program and are
    kept.
    """
    lines = [line.strip() for line in text.strip().split("\n")]
    kept = [_line_template(plain(line, _LINE_LIMIT), values, has_names) for line in lines if line][:LINES_KEPT]
    return " | ".join(line for line in kept if line)


def has_words(template: str) -> bool:
    """Return whether a template contains words other than placeholders and common words of assertions."""
    return any(word.lower() not in _EMPTY_WORDS for word in _WORDS.findall(template))


def _line_template(line: str, values: Iterable[str], has_names: bool) -> str:
    line = _COMMAND.sub(_program_of, line) if "Command '" in line else line
    line = _without(line, _FORMS_WITH_QUOTES)
    for value in values:
        line = re.sub(rf"(?<![\w'\"]){re.escape(value)}(?!\w)", _VALUE, line)
    if not has_names:
        line = _QUOTED.sub(_VALUE, line)
    line = _without(line, _FORMS)
    if _DIGIT.search(line):
        line = _without(line, _FORMS_WITH_DIGITS)
        line = _NUMBER.sub(lambda found: found["status"] or "N", line)
        line = _PLURAL.sub(r"\1", line)
    for _ in range(3):
        shorter = _BRACKETS.sub("…", _LIST.sub("…", line))
        if shorter == line:
            break
        line = shorter
    return " ".join(line.split())


def _without(line: str, forms: Iterable[VaryingPart]) -> str:
    for form in forms:
        if form.needle in line:
            line = form.pattern.sub(form.placeholder, line)
    return line


def _program_of(found: re.Match[str]) -> str:
    words = re.split(r"[\s',]+", found["words"].strip("[]' "))
    return f"Command {words[0].rsplit('/', 1)[-1]}"


CAUSE_LIMIT: Final = 400
_JOINED: Final = 3
_STATEMENT_LIMIT: Final = 120

# A failure of a try looks like `test_login.py:10: ConnectionRefusedError: [Errno 111] ...`.
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
"""Errors whose messages differ only by the data."""
_DATABASE_ERRORS: Final = frozenset(
    {"OperationalError", "ProgrammingError", "IntegrityError", "DatabaseError", "InterfaceError"}
)
_BY_STATEMENT: Final = frozenset(
    {"KeyError", "IndexError", "LookupError", "AttributeError", "TypeError", "ValueError", "ZeroDivisionError"}
    | {"AssertionError", "StopIteration", "OverflowError", "UnicodeDecodeError", "UnicodeEncodeError", "RuntimeError"}
)
"""Errors that depend on data. The statement that raised the error distinguishes causes."""
_BY_SUBJECT: Final = _BY_STATEMENT | {"Failed"}
"""Errors raised in a test whose type does not distinguish causes."""
_NAMING: Final = frozenset(
    {"ImportError", "ModuleNotFoundError", "FixtureLookupError", "SyntaxError", "IndentationError"}
)
"""Errors whose message alone identifies the cause."""
_KEEPING_NAMES: Final = _NAMING | {"AttributeError", "NameError", "UnboundLocalError", "TypeError", "UsageError"}
"""Errors that quote names of the program rather than values."""


@lru_cache(maxsize=20_000)
def cause_of_failure(failure: str, detail: FailureDetail | None) -> str:
    """Return the cause of a failed try, from the details of the live plugin or otherwise from its one-line text."""
    if detail is None:
        return cause_of_text(failure)
    causes = sorted({_cause_of_error(error) for error in detail.errors})
    return plain(" + ".join(causes[:_JOINED]), CAUSE_LIMIT)


@lru_cache(maxsize=20_000)
def cause_of_text(text: str) -> str:
    """Return the cause in a one-line text such as `shop.py:12: KeyError: 'alice'`."""
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
        error = structs.replace(error, **_place_in_text(place))
    return plain(_cause_of_error(error), CAUSE_LIMIT)


def _place_in_text(place: re.Match[str]) -> dict[str, object]:
    """Return the fields of an error from its file and line."""
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
    """Return the part of the message that belongs to the cause."""
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
    """Return the author's message of an assertion, without pytest's explanation.

    Return "" for an assertion in a test function, because the calls that it checks identify the cause better.
    """
    if error.subjects and _is_in_test_itself(error):
        return ""
    return re.split(r"(?:^|\n)assert\s", error.message, maxsplit=1)[0].strip()


def _is_in_test_itself(error: RaisedError) -> bool:
    return not error.function or error.place == f"{error.file}::{error.function}"


def _status_in(message: str) -> str:
    """Return the HTTP status code in an assertion message, such as `status 404`, or ""."""
    found = re.search(r"where ([1-5]\d\d) = .*\.status(?:_code)?\b", message)
    return f"status {found[1]}" if found else ""


def _where(error: RaisedError, name: str) -> str:
    """Return the place that distinguishes causes with the same message; "" if the message is enough."""
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
    # A fixture or helper can be the place of the cause. A test function cannot.
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
