"""Make text, JSON and Python source from agents safe to print and parse. Check their paths."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

_SIZE_LIMIT: Final = 1_000_000
_DEPTH_LIMIT: Final = 100
"""Levels of the syntax tree. Recursive functions, such as those of `ast`, fail after a few hundred levels."""


def parse_json(text: bytes | str) -> Any:
    """Return the value of a JSON text. Raise ValueError if it is invalid or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_object(text: bytes | str) -> dict[str, Any]:
    """Return the JSON object in a text; {} if the text is anything else."""
    try:
        content = parse_json(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def read_python(source: bytes | str) -> ast.Module | None:
    """Return the syntax tree of a file, or None if it is not valid Python or is refused."""
    if len(source) > _SIZE_LIMIT:
        return None
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None if _is_too_deep(module) else module


def _is_too_deep(module: ast.Module) -> bool:
    level: list[ast.AST] = [module]
    for _ in range(_DEPTH_LIMIT):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


# Complete escape sequences (CSI, OSC, DCS and similar), so that no part of one remains as text.
_ESCAPE_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Characters that hide or reorder text, which could make one id look like another.
_INVISIBLE: Final = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_TERMINAL_BYTES: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\r(?!\n)")
_NO_ASCII: Final = re.compile(r"[^\x00-\x7f]{5,}")
MARKS_LIMIT: Final = 4
"""Maximum of combining marks on one character. Languages use fewer, and hundreds would cover the lines around."""

REPLACEMENT: Final = "\ufffd"
LINE_BYTES: Final = 4_000
"""A terminal in line mode truncates lines after 4,095 bytes."""


def plain_lines(text: str) -> str:
    """Return the text without escape sequences, control characters and excess combining marks.

    Newlines are kept, and tabs become spaces.
    """
    return _with_few_marks(_without_controls(text))


def _without_controls(text: str) -> str:
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    text = _CONTROL.sub("", text)
    text = _INVISIBLE.sub(REPLACEMENT, text)
    return _LONE_SURROGATE.sub(REPLACEMENT, text)


def _with_few_marks(text: str) -> str:
    return text if text.isascii() else _NO_ASCII.sub(lambda found: _cut_marks(found[0]), text)


def _cut_marks(text: str) -> str:
    kept, marks = [], 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if marks <= MARKS_LIMIT:
            kept.append(character)
    return "".join(kept)


def is_safe_to_print(raw: bytes) -> bool:
    """Return whether a text contains no control characters except newlines and tabs."""
    return _TERMINAL_BYTES.search(raw) is None


def plain(text: str, limit: int = 2_000) -> str:
    """Return the text as one line of at most `limit` characters that is safe to print."""
    if len(text) <= limit and text.isprintable():
        return _with_few_marks(text)
    line = " ".join(plain_lines(text[: 4 * limit]).split("\n")).strip()
    line = "".join(character for character in line if not _is_unprintable(character))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _is_unprintable(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def fit_to_terminal(text: str) -> str:
    """Return the text without control characters, with lines that are too long wrapped at spaces."""
    lines = _without_controls(text).strip("\n").split("\n")
    return "\n".join(part for line in lines for part in _broken(line.rstrip()))


def _broken(line: str) -> Iterator[str]:
    while len(line.encode()) > LINE_BYTES:
        head = line.encode()[:LINE_BYTES].decode("utf-8", "ignore")
        space = head.rfind(" ")
        cut = space if space > 0 else len(head)
        yield line[:cut].rstrip()
        line = line[cut:].lstrip()
    yield line


def is_inside(path: str) -> bool:
    """Return whether a path of a tree stays inside its folder and outside any `.git`."""
    parts = path.split("/")
    return all(part not in ("", ".", "..") and part.lower() != ".git" for part in parts) and "\0" not in path
