"""Keeps at hand which tests tell something, so that no question walks over all records: ten thousand take 10 ms."""

from __future__ import annotations

from collections.abc import Iterable

from swarm_tui.insight.attention import need_of, wants_a_person
from swarm_tui.insight.blockers import Blocker, find_blockers
from swarm_tui.insight.forecast import forecast
from swarm_tui.insight.patterns import Pattern, find_patterns, raw_cause
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import ACTIVE_STATES, UNSOLVED_RESULTS, State


class Insights:
    """What the records of a sweep tell together; it must be given every record that changed."""

    def __init__(self) -> None:
        self._failing: dict[str, TestRecord] = {}
        self._active: dict[str, TestRecord] = {}
        self._needy: dict[str, TestRecord] = {}
        self._spans: dict[str, float] = {}
        self._dollars: dict[str, float] = {}
        self._held: set[str] = set()
        self._cost = 0.0

    def update(self, records: Iterable[TestRecord]) -> None:
        """Count records that are new or have changed."""
        for record in records:
            test = record.test
            _keep(self._failing, record, bool(raw_cause(record)))
            _keep(self._active, record, record.state in ACTIVE_STATES)
            _keep(self._needy, record, _is_needy(record))
            self._spans.pop(test, None)
            if record.state is State.DONE and record.launched_at is not None and record.ended_at is not None:
                self._spans[test] = record.ended_at - record.launched_at
            self._cost += (record.dollars or 0.0) - self._dollars.pop(test, 0.0)
            if record.dollars is not None:
                self._dollars[test] = record.dollars
            self._held.discard(test)
            if record.is_held and record.state is State.QUEUED:
                self._held.add(test)

    @property
    def cost(self) -> float | None:
        """What all agents have cost so far, or None when no agent told."""
        return self._cost if self._dollars else None

    def seconds_left(self, queued: int, slots: int, now: float) -> float | None:
        """Return the seconds until the last test ends, or None when that cannot be said."""
        spent = [now - (record.launched_at or now) for record in self._active.values()]
        return forecast(tuple(self._spans.values()), spent, queued - len(self._held), slots)

    def patterns(self) -> list[Pattern]:
        return find_patterns(self._failing.values())

    def blockers(self) -> list[Blocker]:
        return find_blockers(self._needy.values())

    def wanting(self, now: float) -> list[TestRecord]:
        """Return the tests that want a person, who needs one most first."""
        candidates = {**self._needy, **self._active}
        wanting = [record for record in candidates.values() if wants_a_person(record, now)]
        return sorted(wanting, key=lambda record: (need_of(record, now), record.test))


def _keep(records: dict[str, TestRecord], record: TestRecord, is_wanted: bool) -> None:
    if is_wanted:
        records[record.test] = record
    else:
        records.pop(record.test, None)


def _is_needy(record: TestRecord) -> bool:
    if record.harvest.escalations or record.state is State.WAITING:
        return True
    return record.state is State.DONE and record.result in UNSOLVED_RESULTS
