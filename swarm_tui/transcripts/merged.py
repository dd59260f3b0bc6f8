"""Merge the transcripts of many agents into one stream by time; identical text of several agents is one line."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from swarm_tui.transcripts.entries import Entry, Role
from swarm_tui.transcripts.filters import EntryFilter, entries_of
from swarm_tui.transcripts.window import ByteSource, RecordSpan, Window, WindowChange

RECORDS_AT_FIRST: Final = 60
"""The number of last records of each agent at the start of the stream."""
ENTRIES_KEPT: Final = 5_000
REPEATED_WITHIN: Final = 30.0
"""The seconds within which the same text of several agents is one line."""
_VARYING: Final = re.compile(r"\b(?:0x)?[0-9a-f]{6,}\b|\d+|(?<=/)[\w.-]*\d[\w.-]*(?=/)|'[^']*'|\"[^\"]*\"")


class TailEntry(NamedTuple):
    """An entry of an agent; entries are sorted by time."""

    at: float
    agent_number: int
    """The sort key for entries with the same time."""
    number: int
    agent: str
    entry: Entry


class MergedEntry(NamedTuple):
    """A line of the stream: an entry, and all agents that wrote the same text at about that time."""

    first: TailEntry
    agents: tuple[str, ...]

    @property
    def is_shared(self) -> bool:
        return len(self.agents) > 1


class MergedTail:
    """Follows the ends of many transcripts, by agent."""

    def __init__(self, sources: Mapping[str, ByteSource], now: float) -> None:
        self._sources: dict[str, ByteSource] = {}
        self._windows: dict[str, Window] = {}
        self._ends: dict[str, int] = {}
        self._last_at: dict[str, float] = {}
        self._agent_numbers: dict[str, int] = {}
        self._number = 0
        self.entries: list[TailEntry] = []
        self.follow(sources, now)

    def follow(self, sources: Mapping[str, ByteSource], now: float) -> None:
        """Follow these transcripts and no others; keep the entries of those already followed."""
        gone = {agent for agent, source in self._sources.items() if sources.get(agent) is not source}
        for agent in gone:
            del self._sources[agent]
            self._windows.pop(agent).close()
        if gone:
            self.entries = [entry for entry in self.entries if entry.agent not in gone]
        for agent in [agent for agent in sources if agent not in self._sources]:
            self._sources[agent] = sources[agent]
            self._windows[agent] = window = Window(sources[agent])
            self._last_at[agent] = 0.0
            self._agent_numbers.setdefault(agent, len(self._agent_numbers))
            window.poll(now)
            self._read_end(agent)

    def poll(self, now: float) -> bool:
        """Read appended records; return whether there are new entries."""
        has_news = False
        for agent, window in self._windows.items():
            match window.poll(now):
                case WindowChange.GREW:
                    has_news |= self._read_new(agent)
                case WindowChange.RESTARTED:
                    self.entries = [entry for entry in self.entries if entry.agent != agent]
                    self._read_end(agent)
                    has_news = True
        return has_news

    def merged(self, entry_filter: EntryFilter | None = None) -> list[MergedEntry]:
        """Return the lines of the stream for matching entries."""
        if entry_filter is None or entry_filter.is_everything:
            return merge_repeated(self.entries)
        return merge_repeated([tail_entry for tail_entry in self.entries if entry_filter.matching((tail_entry.entry,))])

    def close(self) -> None:
        for window in self._windows.values():
            window.close()

    def _read_end(self, agent: str) -> None:
        window = self._windows[agent]
        spans: list[RecordSpan] = []
        for span in window.spans_before(window.end):
            spans.append(span)
            if len(spans) >= RECORDS_AT_FIRST:
                break
        self._append(agent, spans[::-1])
        self._ends[agent] = window.end

    def _read_new(self, agent: str) -> bool:
        window = self._windows[agent]
        # Do not read a last line again that was read before it was complete.
        last = window.containing(self._ends[agent] - 1) if self._ends[agent] else None
        offset = last.end if last is not None else 0
        spans = list(window.spans_after(offset))[-ENTRIES_KEPT:]
        self._append(agent, spans)
        self._ends[agent] = window.end
        return bool(spans)

    def _append(self, agent: str, spans: Iterable[RecordSpan]) -> None:
        window = self._windows[agent]
        for span in spans:
            for entry in entries_of(span, window.read(span)):
                at = entry.at if entry.at is not None else self._last_at[agent]
                self._last_at[agent] = max(at, self._last_at[agent])
                self._number += 1
                insort(self.entries, TailEntry(at, self._agent_numbers[agent], self._number, agent, entry))
        if len(self.entries) > ENTRIES_KEPT:
            del self.entries[: len(self.entries) - ENTRIES_KEPT]


def merge_repeated(entries: Sequence[TailEntry]) -> list[MergedEntry]:
    """Return lines, with a single one for the same text of several agents within a short time."""
    lines: list[tuple[TailEntry, list[str]]] = []
    open_lines: dict[tuple[Role, str, str], int] = {}
    for tail_entry in entries:
        key = (tail_entry.entry.role, tail_entry.entry.tool, _comparable_text(tail_entry.entry.text[:400]))
        index = open_lines.get(key)
        if index is not None:
            first, agents = lines[index]
            if tail_entry.at - first.at <= REPEATED_WITHIN and tail_entry.agent not in agents:
                agents.append(tail_entry.agent)
                continue
        open_lines[key] = len(lines)
        lines.append((tail_entry, [tail_entry.agent]))
    return [MergedEntry(first, tuple(agents)) for first, agents in lines]


@lru_cache(maxsize=8192)
def _comparable_text(text: str) -> str:
    """Return the text with numbers, hashes and quoted words replaced by #."""
    return _VARYING.sub("#", text)
