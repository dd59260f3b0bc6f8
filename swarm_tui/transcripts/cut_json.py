"""Reads the beginning of a JSON record whose rest was left unread, so that a huge record still says what it is."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],:]', re.DOTALL)
_TORN_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")


def mend_json(raw: bytes) -> Any:
    """Return the value that a cut JSON text was the beginning of, as far as it goes; None when there is none."""
    text = raw.decode("utf-8", "ignore")
    closers: list[str] = []
    position = 0
    last = ""
    for token in _TOKEN.finditer(text):
        if token.end() == len(text) and not _is_closed(token.group()):
            break
        position = token.end()
        last = token.group()[0]
        if last == "{":
            closers.append("}")
        elif last == "[":
            closers.append("]")
        elif last in "}]" and closers:
            closers.pop()
    rest = text[position:]
    for candidate in (_ended(text, position, rest, last), text[:position].rstrip(",: \n\t")):
        for ending in ("", ":null"):
            value = _loads(candidate + ending + "".join(reversed(closers)))
            if value is not None:
                return value
    return None


def _is_closed(token: str) -> bool:
    return token[0] != '"' or (len(token) > 1 and token[-1] == '"' and not _ends_in_escape(token[:-1]))


def _ends_in_escape(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _ended(text: str, position: int, rest: str, last: str) -> str:
    """Return the text with the string that the cut went through closed, or without the torn bare word."""
    opening = rest.find('"')
    if opening < 0:
        return text[:position].rstrip(",") + ("null" if last == ":" else "")
    body = rest[opening:]
    # A lone backslash, or half of \\uXXXX, has no meaning; an even run of backslashes is whole.
    torn = _TORN_ESCAPE.search(body)
    if torn and not _ends_in_escape(body[: torn.start()]):
        body = body[: torn.start()]
    return text[:position] + rest[:opening] + body + '"'


def _loads(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
