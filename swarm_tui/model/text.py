"""Removes what a terminal would act on from text of agents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

# Whole escape sequences (CSI, OSC, DCS and similar ones) are removed, so that no part of one remains as text.
_ESCAPE_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Marks that reorder or hide what follows them: an id must look like what it is.
_INVISIBLE: Final = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")

REPLACEMENT: Final = "\ufffd"
LINE_BYTES: Final = 4_000
"""A terminal in line mode cuts what lies beyond 4,095 bytes of one line."""


def plain_lines(text: str) -> str:
    """Return the text without escape sequences and control characters; newlines stay, tabs become spaces."""
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    text = _CONTROL.sub("", text)
    text = _INVISIBLE.sub(REPLACEMENT, text)
    return _LONE_SURROGATE.sub(REPLACEMENT, text)


def plain(text: str, limit: int = 2_000) -> str:
    """Return the text as one harmless line of at most `limit` characters."""
    if len(text) <= limit and text.isprintable():
        return text
    line = " ".join(plain_lines(text[: 4 * limit]).split("\n")).strip()
    line = "".join(character for character in line if not _is_unprintable(character))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _is_unprintable(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def fit_to_terminal(text: str) -> str:
    """Return the text without control characters, lines that are too long broken at spaces; no word is lost."""
    lines = plain_lines(text).strip("\n").split("\n")
    return "\n".join(part for line in lines for part in _broken(line.rstrip()))


def _broken(line: str) -> Iterator[str]:
    while len(line.encode()) > LINE_BYTES:
        head = line.encode()[:LINE_BYTES].decode("utf-8", "ignore")
        space = head.rfind(" ")
        cut = space if space > 0 else len(head)
        yield line[:cut].rstrip()
        line = line[cut:].lstrip()
    yield line
