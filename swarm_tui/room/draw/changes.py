"""The list of an agent's changes as lines. Pure."""

from __future__ import annotations

from typing import Final

from swarm_tui.model.text import plain
from swarm_tui.room.draw.parts import Line, Part, cut_line, pad_text, spread

KIND_WORDS: Final = {
    "IMPROVE_TEST": ("better test", "fixed"),
    "FIX_TEST": ("test fix", "fixed"),
    "FIX_TUTORIAL": ("tutorial fix", "fixed"),
    "FIX_IMPL": ("impl fix", "impl_fix"),
    "uncommitted": ("uncommitted", "waiting"),
    "all": ("all", "strong"),
}
_WIDTH: Final = 13


def draw_change(kind: str, title: str, commit: str, added: int, removed: int, width: int) -> Line:
    """Return the row of a commit, of what is not committed, or of all of it."""
    word, role = KIND_WORDS.get(kind, ("commit", "dim"))
    size = [Part(f" +{added}", "added"), Part(f" -{removed} ", "removed")]
    head = [Part(pad_text(word, _WIDTH), role), Part(plain(commit, 60)[:9] + " " if commit else "", "dim"), Part(title)]
    return spread(head, size, width) if width > 30 else cut_line(head, width)
