"""Keeps the records that conclusions are drawn from, updated by changes: going through 10,000 records takes 10 ms."""

from __future__ import annotations

from collections.abc import Iterable

from swarm_tui.insight.attention import attention_order, needs_person
from swarm_tui.insight.forecast import seconds_to_end
from swarm_tui.insight.host_lines import HostTally
from swarm_tui.insight.inbox import InboxIndex, Item
from swarm_tui.insight.overlaps import Overlap, find_overlaps
from swarm_tui.insight.patterns import Pattern, PatternIndex
from swarm_tui.journal.fold import SweepState
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import ACTIVE_STATES, UNSOLVED_RESULTS, State


class Insights:
    """Conclusions from the records of a sweep. `update` must get every record that has changed."""

    def __init__(self) -> None:
        self._patterns = PatternIndex()
        self._edited: dict[str, TestRecord] = {}
        self._active: dict[str, TestRecord] = {}
        self._open: dict[str, TestRecord] = {}
        self._spans: dict[str, float] = {}
        self._held: set[str] = set()
        self.hosts = HostTally()
        self._inbox = InboxIndex()

    def update(self, records: Iterable[TestRecord]) -> None:
        """Count records that are new or have changed."""
        for record in records:
            test = record.test
            self.hosts.count(record)
            self._patterns.update(record)
            _keep(self._edited, record, bool(record.edits))
            _keep(self._active, record, record.state in ACTIVE_STATES)
            _keep(self._open, record, _is_open(record))
            self._spans.pop(test, None)
            if record.state is State.DONE and record.launched_at is not None and record.ended_at is not None:
                self._spans[test] = record.ended_at - record.launched_at
            self._held.discard(test)
            if record.is_held and record.state is State.QUEUED:
                self._held.add(test)

    def seconds_left(self, queued: int, slots: int, now: float) -> float | None:
        """Return the seconds until the last test ends, or None without a forecast."""
        spent = [now - (record.launched_at or now) for record in self._active.values()]
        return seconds_to_end(tuple(self._spans.values()), spent, queued - len(self._held), slots)

    def patterns(self) -> list[Pattern]:
        """Return what fails alike, and the agents that edit the same lines; the most tests first."""
        found = self._patterns.patterns() + [_pattern_of(overlap) for overlap in find_overlaps(self._edited.values())]
        return sorted(found, key=lambda pattern: (-len(pattern.tests), pattern.cause))

    def items(self, state: SweepState, now: float) -> list[Item]:
        """Return what needs a person."""
        return self._inbox.items(state, {**self._open, **self._active}.values(), now)

    def tests_needing_person(self) -> list[TestRecord]:
        """Return the tests that need a person, the most urgent first."""
        candidates = {**self._open, **self._active}
        found = [record for record in candidates.values() if needs_person(record)]
        return sorted(found, key=lambda record: (attention_order(record), record.test))


def _pattern_of(overlap: Overlap) -> Pattern:
    """Return agents that edit the same lines as a pattern."""
    cause = f"the same lines of {overlap.path}" if overlap.lines != ((0, 0),) else f"the same new file {overlap.path}"
    return Pattern(cause, overlap.tests, "editing", (), overlap.tests[0], overlap.words)


def _keep(records: dict[str, TestRecord], record: TestRecord, is_kept: bool) -> None:
    if is_kept:
        records[record.test] = record
    else:
        records.pop(record.test, None)


def _is_open(record: TestRecord) -> bool:
    if record.harvest.escalations or record.asks or record.state is State.WAITING:
        return True
    return record.state is State.DONE and record.result in UNSOLVED_RESULTS
