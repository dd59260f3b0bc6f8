"""One glyph, one word and one colour role for each thing a test's cell can show."""

from __future__ import annotations

from typing import Final, NamedTuple

from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State


class Look(NamedTuple):
    """How one mark is shown."""

    glyph: str
    ascii_glyph: str
    word: str
    role: str


LOOKS: Final[dict[str, Look]] = {
    "clean": Look("✓", "v", "clean", "clean"),
    "better": Look("●", "#", "better", "fixed"),
    "test_fix": Look("●", "#", "test fix", "fixed"),
    "tutorial_fix": Look("●", "#", "tutorial fix", "fixed"),
    "impl_fix": Look("◆", "*", "impl fix", "impl_fix"),
    "unresolved": Look("✗", "x", "unresolved", "unresolved"),
    "blocked": Look("■", "B", "blocked", "blocked"),
    "failed": Look("!", "!", "failed", "failed"),
    "harvesting": Look("◍", ":", "harvesting", "running"),
    "running": Look("◐", "o", "running", "running"),
    "waiting": Look("?", "?", "waiting", "waiting"),
    "launching": Look("◌", ",", "launching", "launching"),
    "queued": Look("·", ".", "queued", "queued"),
    "stopped": Look("-", "-", "stopped", "stopped"),
}

PILLS: Final[dict[str, tuple[str, ...]]] = {
    "clean": ("clean",),
    "fixed": ("better", "test_fix", "tutorial_fix"),
    "impl_fix": ("impl_fix",),
    "unresolved": ("unresolved",),
    "blocked": ("blocked",),
    "failed": ("failed",),
    "stopped": ("stopped",),
    "waiting": ("waiting",),
    "running": ("running", "harvesting"),
    "launching": ("launching",),
    "queued": ("queued",),
}
"""The pills of the header and the marks that each counts and filters."""

ASCII_OF: Final = str.maketrans(
    {
        "…": "~", "─": "-", "│": "|", "·": ".", "→": ">", "×": "x", "▕": "[", "▏": "]", "█": "=", "▓": "+", "▒": "~",
        "░": ".", "▸": ">", "▾": "v", "↑": "^", "↓": "v", "▲": "^", "▼": "v", "↳": ">", "≈": "~", "•": "*", "–": "-",
        "◐": "o", "◌": ",", "◍": ":", "✓": "v", "✗": "x", "●": "#", "◆": "*", "■": "B", "☐": "o", "▌": "|", "◂": "<",
    }
)  # fmt: skip
"""How the room's own signs are written with --ascii."""


def glyph_of(record: TestRecord, is_wide: bool = False) -> str:
    """Return the glyph of a test; wide, a running one carries the result of its last finished try."""
    glyph = LOOKS[record.mark].glyph
    if not is_wide:
        return glyph
    if record.state is State.RUNNING:
        for made in reversed(record.tries):
            if made.passed is not None:
                return glyph + ("✓" if made.passed else "✗")
    return glyph + " "


def role_of(record: TestRecord) -> str:
    """Return the colour role of a test's cell."""
    return "stale" if record.stale_since is not None else LOOKS[record.mark].role


def word_of(record: TestRecord) -> str:
    """Return the word under which people read the state of a test."""
    return LOOKS[record.mark].word


def pill_of(mark: str) -> str:
    """Return the pill that counts a mark."""
    return next(pill for pill, marks in PILLS.items() if mark in marks)


def pill_look(pill: str) -> Look:
    """Return how a pill is shown: as the first of its marks, but "fixed" has a word of its own."""
    look = LOOKS[PILLS[pill][0]]
    return look._replace(word="fixed") if pill == "fixed" else look
