"""Decides which tests have met the same cause, and which queued tests would most likely meet it too."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from swarm_tui.insight.causes import cause_of_failure
from swarm_tui.insight.patterns import Pattern, cause_of
from swarm_tui.insight.traits import TraitCounts, common_traits, find_lifts, shared_traits, trait_words, traits_of
from swarm_tui.model.alarm import PatternAlarm
from swarm_tui.model.formatting import counted
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.text import plain

LIKELY: Final = 0.6
"""The breaker holds tests of which at least so many meet the cause, as those that were tried say."""
LEAST_COVER: Final = 0.5
"""What fewer of the members have in common does not say which others would meet the cause."""
_BY_ACCIDENT: Final = frozenset({"begin"})
"""Traits that a queued test cannot have yet."""


class CauseTally:
    """All tests by the causes that they have met in any of their tries, also those that pass by now."""

    def __init__(self) -> None:
        self.met: dict[str, dict[str, None]] = {}
        self.tried: set[str] = set()
        self._records: dict[str, TestRecord] = {}

    def update(self, records: Iterable[TestRecord]) -> None:
        """Count the records that are new or have changed since the last call."""
        for record in records:
            before = self._records.get(record.test)
            if before is not record:
                self._records[record.test] = record
                self._count(record, before)

    def _count(self, record: TestRecord, before: TestRecord | None) -> None:
        causes = []
        if record.state is not State.WAITING and (cause := cause_of(record)):
            causes.append(cause)
        if before is None or before.tries is not record.tries:
            failed = [made for made in record.tries if made.passed is False]
            causes += [cause_of_failure(made.failure, made.detail) for made in failed]
            if any(made.passed is not None for made in record.tries):
                self.tried.add(record.test)
        for cause in causes:
            self.met.setdefault(cause, {})[record.test] = None

    def met_by(self, needed: int) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Return the causes that at least so many tests have met, and these tests."""
        for cause, tests in self.met.items():
            if len(tests) >= needed:
                yield cause, tuple(tests)


class Held(NamedTuple):
    """Queued tests that would most likely meet a cause, and why."""

    tests: tuple[str, ...]
    why: str


def what_is_shared(members: Iterable[str], records: Mapping[str, TestRecord]) -> str:
    """Return what sets tests apart from all others, as the first of the words for it; "" for nothing."""
    inside, every = _counted(members, records)
    return next(iter(shared_traits(common_traits(inside), inside.tests, every)), "")


def choose_held(members: Iterable[str], tried: Iterable[str], records: Mapping[str, TestRecord]) -> Held | None:
    """Return the queued tests that would most likely meet a cause which these members have met; None without any.

    What was tried so far tells how likely: of the tests that share a trait, so many met the cause. Where all that was
    tried meets it, nothing tells the queued tests apart, and all of them are held.
    """
    members = list(members)
    seen = TraitCounts()
    for test in dict.fromkeys((*members, *tried)):
        seen.replace(None, traits_of(records[test]))
    trait = _telling_trait(members, seen, records)
    if trait is None and not _is_likely(len(members), seen.tests):
        return None
    queued = [record for record in records.values() if record.state is State.QUEUED and not record.is_held]
    chosen = [record.test for record in queued if trait is None or trait in traits_of(record)]
    if not chosen:
        return None
    of_tried = f"{len(members):,} of {seen.tests:,} that were tried met it"
    why = of_tried if trait is None else f"they {trait_words(trait)}, {_met(trait, members, seen, records)}"
    return Held(tuple(chosen), why)


def _telling_trait(members: list[str], seen: TraitCounts, records: Mapping[str, TestRecord]) -> str | None:
    """Return the trait that says best which other tests would meet the cause; None without one."""
    inside, every = _counted(members, records)
    lifts = find_lifts(common_traits(inside, LEAST_COVER), inside.tests, every)
    of_all = {lift.trait: lift.share - lift.others for lift in lifts}
    candidates = []
    for trait, advance in of_all.items():
        count = inside.counts[trait]
        if trait.partition(" ")[0] not in _BY_ACCIDENT and _is_likely(count, seen.counts[trait]):
            candidates.append((-round(count / seen.counts[trait], 2), -count, -advance, trait))
    return min(candidates)[-1] if candidates else None


def _met(trait: str, members: list[str], seen: TraitCounts, records: Mapping[str, TestRecord]) -> str:
    count = sum(trait in traits_of(records[test]) for test in members)
    return f"and {count:,} of {seen.counts[trait]:,} such that were tried met it"


def _is_likely(met: int, tried: int) -> bool:
    # As if one more had met it and one more had not: few tests prove little.
    return (met + 1) / (tried + 2) >= LIKELY


def _counted(members: Iterable[str], records: Mapping[str, TestRecord]) -> tuple[TraitCounts, TraitCounts]:
    inside, every = TraitCounts(), TraitCounts()
    chosen = set(members)
    for test, record in records.items():
        traits = traits_of(record)
        every.replace(None, traits)
        if test in chosen:
            inside.replace(None, traits)
    return inside, every


def still_held(alarm: PatternAlarm, records: Mapping[str, TestRecord]) -> list[TestRecord]:
    """Return the tests that the breaker holds for this cause, as of now."""
    found = (records.get(test) for test in alarm.held)
    return [record for record in found if record is not None and record.held_for == alarm.cause]


def with_held(
    patterns: list[Pattern], alarms: Mapping[str, PatternAlarm], records: Mapping[str, TestRecord]
) -> list[Pattern]:
    """Return the patterns, and those alarms of which tests are held though no test fails like that any more."""
    known = {pattern.cause for pattern in patterns}
    more = [alarm for alarm in alarms.values() if alarm.cause not in known and still_held(alarm, records)]
    return patterns + [
        Pattern(alarm.cause, alarm.tests, "held", _shared_words(alarm), "", plain(alarm.cause, 400)) for alarm in more
    ]


def _shared_words(alarm: PatternAlarm) -> tuple[str, ...]:
    return (plain(alarm.shared, 200),) if alarm.shared else ()


def alarm_lines(alarms: Mapping[str, PatternAlarm], records: Mapping[str, TestRecord]) -> Iterator[str]:
    """Return the alarms as lines, those with held tests with what these are held for."""
    for alarm in alarms.values():
        shared = f" · {alarm.shared}" if alarm.shared else ""
        yield f"{counted(len(alarm.tests), 'test')} met the same: {alarm.cause}{shared}"
        if still_held(alarm, records):
            yield f"  held: {saved_text(alarm, records)}: {alarm.why_held}"


def saved_text(alarm: PatternAlarm, records: Mapping[str, TestRecord]) -> str:
    """Return what the breaker saves, by what tests of this sweep took and cost: `12 tests, ~24m, ~$3.60`."""
    held = still_held(alarm, records)
    ended = [record for record in records.values() if record.state is State.DONE]
    spans = [
        record.ended_at - record.launched_at
        for record in ended
        if record.ended_at is not None and record.launched_at is not None
    ]
    dollars = [record.dollars for record in ended if record.dollars is not None]
    words = [counted(len(held), "test")]
    if held and spans:
        words.append(f"~{_minutes(statistics.median(spans) * len(held))}")
    if held and dollars:
        words.append(f"~${statistics.mean(dollars) * len(held):.2f}")
    return ", ".join(words)


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{minutes // 60}h{minutes % 60:02}m" if minutes >= 60 else f"{minutes}m"
