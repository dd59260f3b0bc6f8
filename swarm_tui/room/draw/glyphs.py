"""The glyph, the word and the colour role of a test, and the pills that count them."""

from __future__ import annotations

from typing import Final

from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import ALONG_BAR, MARKS, Mark, State
from swarm_tui.model.trouble import trouble_words

TRY_SIGNS: Final = {
    "runs": ("…", "running"),
    "passed": ("✓", "good"),
    "skipped": ("⊘", "skipped"),
    "failed": ("✗", "unresolved"),
}
"""The sign and the role of a try by the word for it."""
STATUS_ROLES: Final = {"SUCCEEDED": "good", "FAILED": "unresolved", "BLOCKED": "blocked"}
"""The role of a change by how far its agent came with it."""
HELD_GLYPH: Final = "‖"
PILLS: Final[dict[str, tuple[str, ...]]] = {
    pill: tuple(mark.name for mark in ALONG_BAR if mark.pill == pill)
    for pill in dict.fromkeys(mark.pill for mark in ALONG_BAR)
}
"""The pills of the header and the marks that each counts and filters."""

ASCII_OF: Final = str.maketrans(
    {
        "…": "~", "─": "-", "│": "|", "·": ".", "→": ">", "×": "x", "▕": "[", "▏": "]", "█": "=", "▓": "+", "▒": "~",
        "░": ".", "▸": ">", "▾": "v", "↑": "^", "↓": "v", "▲": "^", "▼": "v", "↳": ">", "≈": "~", "•": "*", "–": "-",
        "⊘": "s", "◐": "o", "◌": ",", "◍": ":", "✓": "v", "✗": "x", "●": "#", "◆": "*", "■": "B", "☐": "o", "▌": "|",
        "◂": "<", "‖": "H",
    }
)  # fmt: skip
"""How the room's own signs are written with --ascii."""


def glyph_of(record: TestRecord, is_wide: bool = False) -> str:
    """Return the glyph of a test; wide, a running one carries the result of its last finished try."""
    glyph = HELD_GLYPH if is_held_back(record) else MARKS[record.mark].glyph
    if not is_wide:
        return glyph
    if record.state is State.RUNNING:
        for made in reversed(record.tries):
            if made.passed is not None:
                return glyph + TRY_SIGNS[made.word][0]
    return glyph + " "


def is_held_back(record: TestRecord) -> bool:
    """Whether a test waits in the queue and is not launched until somebody releases it."""
    return record.is_held and record.state is State.QUEUED


def role_of(record: TestRecord) -> str:
    if is_held_back(record):
        return "held"
    if record.stale_since is not None:
        return "stale"
    return "warning" if record.stuck else MARKS[record.mark].role


def word_of(record: TestRecord) -> str:
    """Return the words under which people read the state of a test: `clean`, `limited until 18:22`."""
    trouble = record.trouble
    if trouble is not None and record.is_hindered:
        return trouble_words(trouble.kind, trouble.until, record.trouble_at)
    if record.stuck:
        return "stuck"
    if is_held_back(record):
        return "held"
    return MARKS[record.mark].word


def mark_of_pill(pill: str) -> Mark:
    """Return how a pill is shown: as the first of its marks, under a name of its own."""
    return MARKS[PILLS[pill][0]]._replace(name=pill)
