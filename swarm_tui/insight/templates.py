"""Reduces messages to what is the same in all failures of one kind: values, ids, numbers, times and paths go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

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
    """What varies in messages; sought only in lines that hold its needle, which saves most of the time."""

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
    # A word of hexadecimal letters alone is a word, and of digits alone a number.
    VaryingPart("", re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}\b"), _ID),
    # Letters and digits in turns, as in `req_8fK2jd93`: no word is written like that.
    VaryingPart("", re.compile(r"\b(?=\w{6,}\b)\w*\d[A-Za-z]+\d\w*\b"), _ID),
)
_DIGIT: Final = re.compile(r"\d")
# The code of an HTTP answer names a kind of failure, it is no amount.
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
"""Words that stand in messages of any assertion."""


@lru_cache(maxsize=20_000)
def message_template(text: str, *, values: tuple[str, ...] = (), has_names: bool = False) -> str:
    """Return the first lines of a message with placeholders for what varies.

    `values` are words of it that are known to be values. With `has_names`, what it quotes are names of the program.
    """
    lines = [line.strip() for line in text.strip().split("\n")]
    kept = [_line_template(plain(line, _LINE_LIMIT), values, has_names) for line in lines if line][:LINES_KEPT]
    return " | ".join(line for line in kept if line)


def has_words(template: str) -> bool:
    """Return whether a message says something of its own, beyond values and the words of any assertion."""
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
