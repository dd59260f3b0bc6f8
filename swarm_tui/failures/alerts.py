"""Find tests that failed for the same cause, and queued tests that would probably fail for it too."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from swarm_tui.failures.causes import cause_of_failure
from swarm_tui.failures.events import Alert, AlertRaised, QueueHeld
from swarm_tui.failures.patterns import (
    Pattern,
    TraitCounts,
    cause_of,
    common_traits,
    find_lifts,
    shared_traits,
    trait_words,
    traits_of,
)
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.formatting import counted
from swarm_tui.model.options import alike_needed
from swarm_tui.model.results import State
from swarm_tui.model.text import plain

LIKELY: Final = 0.6
"""Queued tests are held if at least this share of similar tests that ran failed for the cause."""
LEAST_COVER: Final = 0.5
"""A trait must be shared by this part of the failed tests to predict which queued tests would fail."""
_AFTER_LAUNCH: Final = frozenset({"begin"})
"""Kinds of traits that a queued test cannot have yet."""


class CauseCounts:
    """Tests by the causes of all their failed tries, even if a later try passed."""

    def __init__(self) -> None:
        self.met: dict[str, dict[str, None]] = {}
        self.tried: set[str] = set()
        self.examined: dict[str, int] = {}
        """The number of tests with a cause when queued tests were last chosen for it."""
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
            failed = [each for each in record.tries if each.passed is False]
            causes += [cause_of_failure(each.failure, each.detail) for each in failed]
            if any(each.passed is not None for each in record.tries):
                self.tried.add(record.test)
        for cause in causes:
            self.met.setdefault(cause, {})[record.test] = None

    def met_by(self, needed: int) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the causes of at least `needed` tests, with these tests."""
        for cause, tests in self.met.items():
            if len(tests) >= needed:
                yield cause, tuple(tests)


TESTS_NAMED: Final = 1_000


def due_events(
    state: SweepState, counts: CauseCounts, alert: float, hold_similar: float
) -> Iterator[AlertRaised | QueueHeld]:
    """Yield the alerts that are due, and the holds of queued tests that would probably fail for the same cause.

    `counts` is kept between calls, because counting all tries takes long. `alert` and `hold_similar` are thresholds.
    """
    records = state.records
    counts.update(records.values())
    to_alert, to_hold = (alike_needed(each, len(records)) for each in (alert, hold_similar))
    needed = min((each for each in (to_alert, to_hold) if each is not None), default=len(records) + 1)
    for cause, tests in counts.met_by(needed):
        raised = state.alerts.get(cause)
        if raised is None:
            yield AlertRaised(cause=cause, tests=tests[:TESTS_NAMED], shared=what_is_shared(tests, records))
        is_released = raised is not None and raised.is_released
        if to_hold is None or len(tests) < to_hold or is_released or counts.examined.get(cause) == len(tests):
            continue
        counts.examined[cause] = len(tests)
        held = choose_held(tests, counts.tried, records)
        if held is not None:
            yield QueueHeld(tests=held.tests, reason=held.why, cause=cause)


class HeldTests(NamedTuple):
    """Queued tests that would probably fail for a cause, with the reason."""

    tests: tuple[str, ...]
    why: str


def what_is_shared(members: Iterable[str], records: Mapping[str, TestRecord]) -> str:
    """Return the most distinctive trait of some tests as text, or ""."""
    inside, every = _counted(members, records)
    return next(iter(shared_traits(common_traits(inside), inside.tests, every)), "")


def choose_held(members: Iterable[str], tried: Iterable[str], records: Mapping[str, TestRecord]) -> HeldTests | None:
    """Return the queued tests that would probably fail for the same cause as `members`; None if there are none.

    The probability comes from the tests that ran so far: of the tests with a trait, a certain share failed. If nearly
    all of them failed and no trait is distinctive, all queued tests are held.
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
    overall = f"{len(members):,} of {seen.tests:,} tests that ran failed for this cause"
    why = overall if trait is None else f"they {trait_words(trait)}, {_met(trait, members, seen, records)}"
    return HeldTests(tuple(chosen), why)


def _telling_trait(members: list[str], seen: TraitCounts, records: Mapping[str, TestRecord]) -> str | None:
    """Return the trait that best predicts which other tests would fail for the cause, or None."""
    inside, every = _counted(members, records)
    lifts = find_lifts(common_traits(inside, LEAST_COVER), inside.tests, every)
    of_all = {lift.trait: lift.share - lift.others for lift in lifts}
    candidates = []
    for trait, advance in of_all.items():
        count = inside.counts[trait]
        if trait.partition(" ")[0] not in _AFTER_LAUNCH and _is_likely(count, seen.counts[trait]):
            candidates.append((-round(count / seen.counts[trait], 2), -count, -advance, trait))
    return min(candidates)[-1] if candidates else None


def _met(trait: str, members: list[str], seen: TraitCounts, records: Mapping[str, TestRecord]) -> str:
    count = sum(trait in traits_of(records[test]) for test in members)
    return f"and {count:,} of {seen.counts[trait]:,} such tests failed for this cause"


def _is_likely(met: int, tried: int) -> bool:
    # Laplace smoothing: a few tests prove little.
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


def still_held(alert: Alert, records: Mapping[str, TestRecord]) -> list[TestRecord]:
    """Return the tests that are currently held for this cause."""
    held = (records.get(test) for test in alert.held)
    return [record for record in held if record is not None and record.held_for == alert.cause]


def with_held(patterns: list[Pattern], alerts: Mapping[str, Alert], records: Mapping[str, TestRecord]) -> list[Pattern]:
    """Return the patterns, and a pattern for each other alert with held tests."""
    causes = {pattern.cause for pattern in patterns}
    more = [alert for alert in alerts.values() if alert.cause not in causes and still_held(alert, records)]
    return patterns + [
        Pattern(alert.cause, alert.tests, "held", _shared_words(alert), "", plain(alert.cause, 400)) for alert in more
    ]


def _shared_words(alert: Alert) -> tuple[str, ...]:
    return (plain(alert.shared, 200),) if alert.shared else ()


def alert_lines(alerts: Mapping[str, Alert], records: Mapping[str, TestRecord]) -> Iterator[str]:
    """Yield the alerts as lines, each followed by its held tests and the reason."""
    for alert in alerts.values():
        shared = f" · {alert.shared}" if alert.shared else ""
        yield f"{counted(len(alert.tests), 'test')} with the same cause: {alert.cause}{shared}"
        if still_held(alert, records):
            yield f"  held {saved_text(alert, records)}: {alert.why_held}"


def saved_text(alert: Alert, records: Mapping[str, TestRecord]) -> str:
    """Return the held tests with an estimate of the saved time and cost: `12 tests, ~24m, ~$3.60`."""
    held = still_held(alert, records)
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
