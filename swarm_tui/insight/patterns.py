"""Finds patterns: failures, questions and blockers of several tests with the same cause, and what these tests share."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from swarm_tui.insight.causes import cause_of_failure, cause_of_text
from swarm_tui.insight.traits import TraitCounts, common_traits, shared_traits, traits_of
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import UNSOLVED_RESULTS, Result, State
from swarm_tui.model.text import plain

FEWEST: Final = 2
"""One test alone is no pattern."""


class Pattern(NamedTuple):
    """Tests with the same cause of failure, question or blocker."""

    cause: str
    tests: tuple[str, ...]
    kind: str
    """What most of them are: failing, waiting, blocked; held (only held tests are left), editing (the same lines)."""
    shared: tuple[str, ...]
    """What sets them apart from the other tests, as words: `7 of 7 use fixture db, 9 % of the others`."""
    representative: str
    example: str
    """The cause of the representative as it was, with its numbers."""


def raw_cause(record: TestRecord) -> str:
    """Return why a test waits, fails or is blocked, as it was reported; "" for a test with no trouble."""
    if record.state is State.WAITING:
        return record.question or "waits for an answer"
    if record.state is State.DONE and record.result is Result.BLOCKED and record.harvest.escalations:
        return record.harvest.escalations[0].title or record.reason
    if record.state is State.DONE and record.result is not None and record.result in UNSOLVED_RESULTS:
        return _last_failure(record) or record.reason or record.result.value
    if record.state is State.RUNNING:
        return _last_failure(record)
    if record.state is State.QUEUED and record.source == "engine":
        # Its last launch failed. Other reasons why a test is queued again are no failures.
        return record.reason
    return ""


def _last_failure(record: TestRecord) -> str:
    if record.tries and record.tries[-1].passed is False:
        return record.tries[-1].failure
    return ""


def cause_of(record: TestRecord) -> str:
    """Return the cause of a test's trouble; equal for tests that fail alike, "" without any."""
    raw = raw_cause(record)
    if not raw:
        return ""
    last = record.tries[-1] if record.tries else None
    return cause_of_failure(raw, last.detail) if last is not None and raw is last.failure else cause_of_text(raw)


class PatternIndex:
    """The tests of a sweep by their causes, updated by changes."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._cause_of: dict[str, str] = {}
        self._every = TraitCounts()
        self._traits: dict[str, tuple[str, ...]] = {}

    def update(self, record: TestRecord) -> None:
        """Count a record that is new or has changed."""
        test, traits, cause = record.test, traits_of(record), cause_of(record)
        known, was = self._traits.get(test), self._cause_of.get(test, "")
        if known != traits:
            self._every.replace(known, traits)
            self._traits[test] = traits
        if was and was != cause:
            self._groups[was].remove(test)
            if not self._groups[was].records:
                del self._groups[was]
        if cause:
            self._groups.setdefault(cause, _Group(cause)).put(record, traits)
            self._cause_of[test] = cause
        else:
            self._cause_of.pop(test, None)

    def patterns(self) -> list[Pattern]:
        """Return all patterns, those of the most tests first."""
        found = [group.pattern(self._every) for group in self._groups.values() if len(group.records) >= FEWEST]
        return sorted(found, key=lambda pattern: (-len(pattern.tests), pattern.cause))


class _Group:
    """The tests with one cause. What one more test costs does not depend on how many there are."""

    def __init__(self, cause: str) -> None:
        self.cause = cause
        self.records: dict[str, TestRecord] = {}
        self._sorted: list[str] = []
        self._kinds: Counter[str] = Counter()
        self._traits: dict[str, tuple[str, ...]] = {}
        self._counts = TraitCounts()
        self._latest: TestRecord | None = None
        self._pattern: Pattern | None = None
        self._common: list[tuple[str, int]] = []
        self._version = -1
        """Of the counts over all tests that the pattern was made with."""

    def put(self, record: TestRecord, traits: tuple[str, ...]) -> None:
        test = record.test
        known = self.records.get(test)
        if known is record:
            return
        if known is None:
            insort(self._sorted, test)
        else:
            self._kinds[_kind(known)] -= 1
        self.records[test] = record
        self._kinds[_kind(record)] += 1
        if self._traits.get(test) != traits:
            self._counts.replace(self._traits.get(test), traits)
            self._traits[test] = traits
        if known is not None and known is self._latest:
            self._latest = None
        elif self._latest is not None and _lateness(record) > _lateness(self._latest):
            self._latest = record
        self._pattern = None

    def remove(self, test: str) -> None:
        record = self.records.pop(test)
        del self._sorted[bisect_left(self._sorted, test)]
        self._kinds[_kind(record)] -= 1
        self._counts.replace(self._traits.pop(test), None)
        if record is self._latest:
            self._latest = None
        self._pattern = None

    def pattern(self, every: TraitCounts) -> Pattern:
        if self._pattern is None:
            self._common = common_traits(self._counts)
            self._pattern = self._made(every)
        elif self._version != every.version:
            self._pattern = self._pattern._replace(shared=self._shared(every))
        self._version = every.version
        return self._pattern

    def _shared(self, every: TraitCounts) -> tuple[str, ...]:
        return shared_traits(self._common, self._counts.tests, every)

    def _made(self, every: TraitCounts) -> Pattern:
        if self._latest is None:
            self._latest = max(self.records.values(), key=_lateness)
        return Pattern(
            cause=self.cause,
            tests=tuple(self._sorted),
            kind=min(self._kinds, key=lambda kind: (-self._kinds[kind], kind)),
            shared=self._shared(every),
            representative=self._latest.test,
            example=plain(raw_cause(self._latest), 2_000),
        )


def _lateness(record: TestRecord) -> tuple[bool, float, str]:
    return record.result is not None, record.since, record.test


def find_patterns(records: Iterable[TestRecord]) -> list[Pattern]:
    """Return all patterns among these tests, those of the most tests first."""
    index = PatternIndex()
    for record in records:
        index.update(record)
    return index.patterns()


def _kind(record: TestRecord) -> str:
    if record.state is State.WAITING:
        return "waiting"
    return "blocked" if record.result is Result.BLOCKED else "failing"
