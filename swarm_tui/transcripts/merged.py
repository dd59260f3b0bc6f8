"""The transcripts of many agents as one stream in the order of time; what many say alike is one line."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from swarm_tui.transcripts.entries import Entry, Role, parse_record
from swarm_tui.transcripts.filters import EntryFilter
from swarm_tui.transcripts.window import RECORD_LIMIT, ByteSource, RecordSpan, Window, WindowChange

RECORDS_AT_FIRST: Final = 60
"""So many of the last records of each agent are there when the stream is opened."""
ITEMS_KEPT: Final = 5_000
ALIKE_WITHIN: Final = 30.0
"""Seconds within which the same words of several agents are one line."""
_VARYING: Final = re.compile(r"\b(?:0x)?[0-9a-f]{6,}\b|\d+|(?<=/)[\w.-]*\d[\w.-]*(?=/)|'[^']*'|\"[^\"]*\"")


class TailEntry(NamedTuple):
    """One entry of one agent, in the order of time."""

    at: float
    place: int
    """Which agent, by number: of two at the same moment the order is always the same."""
    number: int
    who: str
    entry: Entry


class Folded(NamedTuple):
    """A line of the stream: an entry, and all agents that said the same about that time."""

    item: TailEntry
    agents: tuple[str, ...]

    @property
    def is_shared(self) -> bool:
        return len(self.agents) > 1


class MergedTail:
    """Follows the ends of many transcripts."""

    def __init__(self, sources: Mapping[str, ByteSource], now: float) -> None:
        self._windows = {who: Window(source) for who, source in sources.items()}
        self._ends = dict.fromkeys(sources, 0)
        self._last_at = dict.fromkeys(sources, 0.0)
        self._places = {who: place for place, who in enumerate(sources)}
        self._number = 0
        self.items: list[TailEntry] = []
        for who in self._windows:
            self._windows[who].poll(now)
            self._read_end(who)

    def poll(self, now: float) -> bool:
        """Take in what was appended anywhere; True when there is something new."""
        has_news = False
        for who, window in self._windows.items():
            match window.poll(now):
                case WindowChange.GREW:
                    has_news |= self._read_new(who)
                case WindowChange.RESTARTED:
                    self.items = [item for item in self.items if item.who != who]
                    self._read_end(who)
                    has_news = True
        return has_news

    def folded(self, choice: EntryFilter | None = None) -> list[Folded]:
        """Return the lines of the stream, of those entries that fit."""
        if choice is None or choice.is_everything:
            return fold_alike(self.items)
        return fold_alike([item for item in self.items if choice.matching((item.entry,))])

    def close(self) -> None:
        for window in self._windows.values():
            window.close()

    def _read_end(self, who: str) -> None:
        window = self._windows[who]
        spans: list[RecordSpan] = []
        for span in window.spans_before(window.end):
            spans.append(span)
            if len(spans) >= RECORDS_AT_FIRST:
                break
        self._take(who, spans[::-1])
        self._ends[who] = window.end

    def _read_new(self, who: str) -> bool:
        window = self._windows[who]
        # A last line that was shown before its end was written is not shown twice.
        last = window.containing(self._ends[who] - 1) if self._ends[who] else None
        offset = last.end if last is not None else 0
        spans = list(window.spans_after(offset))[-ITEMS_KEPT:]
        self._take(who, spans)
        self._ends[who] = window.end
        return bool(spans)

    def _take(self, who: str, spans: Iterable[RecordSpan]) -> None:
        window = self._windows[who]
        for span in spans:
            length = span.end - span.start
            for entry in parse_record(window.read(span), length if length > RECORD_LIMIT else None):
                at = entry.at if entry.at is not None else self._last_at[who]
                self._last_at[who] = max(at, self._last_at[who])
                self._number += 1
                insort(self.items, TailEntry(at, self._places[who], self._number, who, entry))
        if len(self.items) > ITEMS_KEPT:
            del self.items[: len(self.items) - ITEMS_KEPT]


def fold_alike(items: Sequence[TailEntry]) -> list[Folded]:
    """Return one line for what several agents said alike within a short time; the first of them is shown."""
    lines: list[tuple[TailEntry, list[str]]] = []
    open_lines: dict[tuple[Role, str, str], int] = {}
    for item in items:
        key = (item.entry.role, item.entry.tool, _alike(item.entry.text[:400]))
        index = open_lines.get(key)
        if index is not None:
            first, agents = lines[index]
            if item.at - first.at <= ALIKE_WITHIN and item.who not in agents:
                agents.append(item.who)
                continue
        open_lines[key] = len(lines)
        lines.append((item, [item.who]))
    return [Folded(item, tuple(agents)) for item, agents in lines]


@lru_cache(maxsize=8192)
def _alike(text: str) -> str:
    """Return the text without what differs from agent to agent: numbers, hashes, quoted words."""
    return _VARYING.sub("#", text)
