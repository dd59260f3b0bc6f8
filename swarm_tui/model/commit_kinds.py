"""Reads the kinds of change that a commit's message begins with, such as [FIX_TEST]."""

from __future__ import annotations

import re
from typing import Final

from swarm_tui.model.outcome import ChangeKind

_MARKS: Final = re.compile(r"\s*((?:\[[A-Za-z_/ ]+\]\s*)+)")
_MARK: Final = re.compile(r"\[([A-Za-z_/ ]+)\]")


def kinds_of(message: str) -> tuple[ChangeKind, ...]:
    """Return the kinds that a commit's message begins with, such as [FIX_TEST]."""
    marks = _MARKS.match(message)
    words = [word.strip().upper() for word in _MARK.findall(marks[1])] if marks else []
    return tuple(ChangeKind(word) for word in dict.fromkeys(words) if word in ChangeKind.__members__)


def without_marks(subject: str) -> str:
    marks = _MARKS.match(subject)
    return (subject[marks.end() :] if marks else subject).strip()
