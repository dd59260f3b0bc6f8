"""What a message to an agent's terminal may look like: plain words, in lines that every terminal passes on whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from swarm_tui.model.text import plain_lines

LINE_BYTES: Final = 4_000
"""A terminal in line mode cuts what lies beyond 4,095 bytes of one line."""


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
