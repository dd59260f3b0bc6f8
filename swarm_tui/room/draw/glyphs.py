"""Glyph, word and colour role of a test, and the pills that count tests by state."""

from __future__ import annotations

from typing import Final

from swarm_tui.journal.record import TestRecord
from swarm_tui.limits.events import api_error_text
from swarm_tui.model.results import ALONG_BAR, MARKS, Mark, State

TRY_SIGNS: Final = {
    "runs": ("…", "running"),
    "passed": ("✓", "good"),
    "skipped": ("⊘", "skipped"),
    "failed": ("✗", "unresolved"),
}
"""Glyph and role of a try by its state."""
STATUS_ROLES: Final = {"SUCCEEDED": "good", "FAILED": "unresolved", "BLOCKED": "blocked"}
"""Role of a change by the status that its agent reported."""
HELD_GLYPH: Final = "‖"
PILLS: Final[dict[str, tuple[str, ...]]] = {
    pill: tuple(mark.name for mark in ALONG_BAR if mark.pill == pill)
    for pill in dict.fromkeys(mark.pill for mark in ALONG_BAR)
}
"""The pills of the header, each with the marks that it counts and filters."""

ASCII_OF: Final = str.maketrans(
    {
        "…": "~", "─": "-", "│": "|", "·": ".", "→": ">", "×": "x", "▕": "[", "▏": "]", "█": "=", "▓": "+", "▒": "~",
        "░": ".", "▸": ">", "▾": "v", "↑": "^", "↓": "v", "▲": "^", "▼": "v", "↳": ">", "≈": "~", "•": "*", "–": "-",
        "⊘": "s", "◐": "o", "◌": ",", "◍": ":", "✓": "v", "✗": "x", "●": "#", "◆": "*", "■": "B", "☐": "o", "▌": "|",
        "◂": "<", "‖": "H",
    }
)  # fmt: skip
"""ASCII replacements of the room's glyphs, for --ascii."""


def glyph_of(record: TestRecord, is_wide: bool = False) -> str:
    """Return the glyph of a test. The wide glyph of a running test includes the result of its last finished try."""
    glyph = HELD_GLYPH if is_held_back(record) else MARKS[record.mark].glyph
    if not is_wide:
        return glyph
    if record.state is State.RUNNING:
        for try_ in reversed(record.tries):
            if try_.passed is not None:
                return glyph + TRY_SIGNS[try_.word][0]
    return glyph + " "


def is_held_back(record: TestRecord) -> bool:
    """Whether a queued test is held: it is not launched until it is released."""
    return record.is_held and record.state is State.QUEUED


def role_of(record: TestRecord) -> str:
    if is_held_back(record):
        return "held"
    if record.stale_since is not None:
        return "stale"
    return "warning" if record.stuck else MARKS[record.mark].role


def word_of(record: TestRecord) -> str:
    """Return the words for the state of a test, such as `clean` or `limited until 18:22`."""
    api_error = record.api_error
    if api_error is not None and record.has_api_error:
        return api_error_text(api_error.kind, api_error.until, record.api_error_at)
    if record.stuck:
        return "stuck"
    if is_held_back(record):
        return "held"
    return MARKS[record.mark].word


def mark_of_pill(pill: str) -> Mark:
    """Return glyph and role of a pill: those of the first of its marks, with the name of the pill."""
    return MARKS[PILLS[pill][0]]._replace(name=pill)
