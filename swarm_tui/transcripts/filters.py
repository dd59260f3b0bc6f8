"""Filter entries, and search files of any size for matches."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from swarm_tui.transcripts.entries import Entry, Role, may_hold_error, may_hold_role, parse_record
from swarm_tui.transcripts.window import RECORD_LIMIT, RecordSpan, Window

SLAB: Final = 1 << 18
ALL_ROLES: Final = frozenset(Role)
_ESCAPED: Final = "\"\\/<>&'"
"""Characters that JSON may escape; some writers escape for HTML."""


@dataclass(frozen=True)
class EntryFilter:
    """A filter of entries by words, excluded words, roles or errors."""

    words: str = ""
    is_inverse: bool = False
    roles: frozenset[Role] = ALL_ROLES
    errors_only: bool = False

    @property
    def is_everything(self) -> bool:
        return not self.words and self.roles == ALL_ROLES and not self.errors_only

    def may_match(self, raw: bytes) -> bool:
        """Return False only if no record within these bytes can match; much faster than parsing them."""
        if self.words and not self.is_inverse and _certain_bytes(self.words) not in raw.lower():
            return False
        if self.errors_only and not may_hold_error(raw):
            return False
        return self.roles == ALL_ROLES or may_hold_role(raw, self.roles)

    def matching(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        if self.is_everything:
            return entries
        return tuple(entry for entry in entries if self._matches(entry))

    def _matches(self, entry: Entry) -> bool:
        if entry.role not in self.roles or (self.errors_only and not entry.is_error):
            return False
        if not self.words:
            return True
        words = self.words.casefold()
        return (words in entry.text.casefold() or words in entry.tool.casefold()) is not self.is_inverse


EVERYTHING: Final = EntryFilter()
ERRORS: Final = EntryFilter(errors_only=True)


@lru_cache(maxsize=16)
def _certain_bytes(words: str) -> bytes:
    """Return lower-case bytes that each matching record contains, or b"" if there are none.

    Records contain words as UTF-8 or as JSON escapes. Spaces may be line ends in the record, and letters
    outside ASCII change case differently than bytes. Therefore only the longest plain part is used.
    """
    parts = "".join(c if c.isascii() and c.isprintable() and c not in _ESCAPED else " " for c in words).split()
    return max(parts, key=len, default="").lower().encode()


class SearchStep(NamedTuple):
    """A step of a search: the position, and the match there, if any."""

    offset: int
    found: RecordSpan | None = None


def entries_of(span: RecordSpan, raw: bytes) -> tuple[Entry, ...]:
    """Return the entries of a record; `raw` is its beginning if it is longer than the limit."""
    length = span.end - span.start
    return parse_record(raw, length if length > RECORD_LIMIT else None)


def _matches(entry_filter: EntryFilter, span: RecordSpan, raw: bytes) -> bool:
    return entry_filter.may_match(raw) and bool(entry_filter.matching(entries_of(span, raw)))


def search_after(window: Window, entry_filter: EntryFilter, offset: int) -> Iterator[SearchStep]:
    """Search forwards from a record boundary; yields at least once per slab."""
    while offset < window.end:
        slab = window.slab_after(offset, SLAB)
        for span in _matching_spans(window, entry_filter, slab):
            yield SearchStep(span.end, span)
        offset = slab.end
        yield SearchStep(offset)


def search_before(window: Window, entry_filter: EntryFilter, offset: int) -> Iterator[SearchStep]:
    """Search backwards from a record boundary; yields at least once per slab."""
    while offset > 0:
        slab = window.slab_before(offset, SLAB)
        for span in reversed(_matching_spans(window, entry_filter, slab)):
            yield SearchStep(span.start, span)
        offset = slab.start
        yield SearchStep(offset)


def _matching_spans(window: Window, entry_filter: EntryFilter, slab: RecordSpan) -> list[RecordSpan]:
    if slab.end - slab.start > SLAB + 2 * RECORD_LIMIT:
        # The slab contains a huge record: read record by record, only the beginnings.
        return [span for span in _spans(window, slab) if _matches(entry_filter, span, window.read(span))]
    content = window.source.pread(slab.end - slab.start, slab.start)
    if not entry_filter.may_match(content):
        return []
    found = []
    start = slab.start
    for line in _lines(content):
        span = RecordSpan(start, start + len(line))
        start = span.end
        if _matches(entry_filter, span, line[:RECORD_LIMIT].rstrip(b"\r\n")):
            found.append(span)
    return found


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _spans(window: Window, slab: RecordSpan) -> Iterator[RecordSpan]:
    for span in window.spans_after(slab.start):
        if span.start >= slab.end:
            return
        yield span


class Matches:
    """The records that match a filter, collected in steps from the end of the file."""

    def __init__(self, window: Window, entry_filter: EntryFilter) -> None:
        self.window = window
        self.entry_filter = entry_filter
        self._older = array("q")
        """Negated offsets, ascending, because the search goes backwards."""
        self._newer = array("q")
        self._high = window.end
        self.low = window.end
        """The start of the part that has been searched."""
        self._search = search_before(window, entry_filter, window.end)

    @property
    def is_done(self) -> bool:
        return self.low <= 0 and self._high >= self.window.end

    @property
    def count(self) -> int:
        return len(self._older) + len(self._newer)

    def advance(self, seconds: float) -> None:
        """Continue the search for about `seconds`."""
        deadline = time.monotonic() + seconds
        self._reread_torn_line()
        if self._high < self.window.end:
            for step in search_after(self.window, self.entry_filter, self._high):
                if step.found is not None:
                    self._newer.append(step.found.start)
                self._high = step.offset
        for step in self._search:
            if step.found is not None:
                self._older.append(-step.found.start)
            self.low = step.offset
            if time.monotonic() >= deadline:
                return

    def _reread_torn_line(self) -> None:
        """Search the last line again if it has grown."""
        if not 0 < self._high < self.window.end:
            return
        span = self.window.containing(self._high - 1)
        if span is None or span.end == self._high:
            return
        self._high = span.start
        if self._newer and self._newer[-1] == span.start:
            self._newer.pop()
        elif self._older and self._older[0] == -span.start:
            self._older.pop(0)

    def before(self, offset: int) -> RecordSpan | None:
        index = bisect_left(self._newer, offset)
        if index:
            return self.window.after(self._newer[index - 1])
        index = bisect_right(self._older, -offset)
        return self.window.after(-self._older[index]) if index < len(self._older) else None

    def after(self, offset: int) -> RecordSpan | None:
        index = bisect_right(self._older, -offset) - 1
        if index >= 0:
            return self.window.after(-self._older[index])
        index = bisect_left(self._newer, offset)
        return self.window.after(self._newer[index]) if index < len(self._newer) else None
