"""Makes text from agents safe for the page: without control characters, bounded, with secrets masked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from swarm_tui.model.text import plain, plain_lines

LONG_TEXT_LIMIT: Final = 20_000
MASK: Final = "•"
_SHOWN_OF_SECRET: Final = 4


class _Form(NamedTuple):
    """A form of secret: a quick test for its presence, and a pattern whose group is the secret."""

    needle: str
    pattern: re.Pattern[str]


def _form(needle: str, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> _Form:
    return _Form(needle, re.compile(pattern, flags))


_FORMS: Final = (
    _form("gh", r"(gh[pousr]_[A-Za-z0-9]{16,})"),
    _form("github_pat_", r"(github_pat_[A-Za-z0-9_]{16,})"),
    _form("glpat-", r"(glpat-[A-Za-z0-9_-]{16,})"),
    _form("sk_live_", r"(sk_live_[A-Za-z0-9]{16,})"),
    _form("AKIA", r"(AKIA[0-9A-Z]{16})"),
    _form("ASIA", r"(ASIA[0-9A-Z]{16})"),
    _form("AIza", r"(AIza[0-9A-Za-z_-]{35})"),
    _form("xox", r"(xox[a-z]-[A-Za-z0-9-]{10,})"),
    _form("hf_", r"(hf_[A-Za-z0-9]{30,})"),
    _form("npm_", r"(npm_[A-Za-z0-9]{36})"),
    _form("pypi-", r"(pypi-[A-Za-z0-9_-]{50,})"),
    _form("eyJ", r"(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})"),
    _form("earer ", r"[Bb]earer +([A-Za-z0-9._~+/-]{12,}=*)"),
    _form("://", r"://[^/\s:@]{0,100}:([^/\s@]{3,200})@"),
    _form(
        "PRIVATE KEY",
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(.{1,20000}?)(?=-----END [A-Z ]{0,30}PRIVATE KEY|\Z)",
        re.DOTALL,
    ),
    # Last: only this one depends on the characters before it ("task-..." is none), which may be masked by now.
    _form("sk-", r"(?<![A-Za-z0-9_-])(sk-[A-Za-z0-9_-]{16,})"),
)


def mask_secrets(text: str) -> str:
    """Return the text with every secret of a known form masked; length and line breaks stay as they are."""
    for needle, pattern in _FORMS:
        if needle in text:
            text = pattern.sub(_masked, text)
    return text


def mask_pieces(pieces: Sequence[str]) -> list[str]:
    """Return the pieces of a text, such as a recording, with secrets masked, also those that span pieces."""
    whole = "".join(pieces)
    masked = mask_secrets(whole)
    if masked == whole:
        return list(pieces)
    found = []
    start = 0
    for piece in pieces:
        found.append(masked[start : start + len(piece)])
        start += len(piece)
    return found


def _masked(match: re.Match[str]) -> str:
    start, end = match.span(1)
    whole, offset = match.group(), match.start()
    secret = whole[start - offset : end - offset]
    # A token's prefix shows whose it is; a password or key has no prefix that is safe to show.
    shown = _SHOWN_OF_SECRET if start == match.start() else 0
    hidden = re.sub(r"[^\s]", MASK, secret[shown:])
    return whole[: start - offset] + secret[:shown] + hidden + whole[end - offset :]


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
