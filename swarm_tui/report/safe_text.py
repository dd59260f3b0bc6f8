"""Makes text from agents safe for the page: without control characters, bounded, with secrets masked."""

from __future__ import annotations

from typing import Final

from swarm_tui.model.masking import mask_secrets
from swarm_tui.model.text import plain, plain_lines

LONG_TEXT_LIMIT: Final = 20_000


def safe_line(text: str, limit: int = 500) -> str:
    """Return the text as one safe line of at most `limit` characters."""
    return mask_secrets(plain(text, limit))


def safe_lines(text: str, limit: int = LONG_TEXT_LIMIT) -> str:
    """Return the text as safe lines, cut at `limit` characters."""
    is_cut = len(text) > limit
    shown = mask_secrets(plain_lines(text[:limit])).rstrip()
    return f"{shown}\n… ({len(text) - limit:,} characters more)" if is_cut else shown


def safe_decoded(raw: bytes, limit: int = LONG_TEXT_LIMIT) -> str:
    return safe_lines(raw.decode("utf-8", "replace"), limit)
