"""Watches for tests that meet the same cause: raises the alarm, and holds queued tests that would meet it too."""

from __future__ import annotations

from typing import Final

from swarm_tui.failures.alerts import CauseCounts, choose_held, what_is_shared
from swarm_tui.failures.events import PatternRaised, QueueHeld
from swarm_tui.model.formatting import counted
from swarm_tui.model.options import alike_needed
from swarm_tui.sweep.context import SweepContext

INTERVAL: Final = 1.0
TESTS_NAMED: Final = 1_000


class PatternGuard:
    """Compares the causes that tests have met with the thresholds of the sweep."""

    def __init__(self, context: SweepContext) -> None:
        self._context = context
        self._tally = CauseCounts()
        self._due = 0.0
        self._tried_to_hold: dict[str, int] = {}
        """How many had met each cause when the breaker last looked."""
        self._idle_since: float | None = None

    def work(self, now: float) -> None:
        """Record the alarms that are due, and hold what would meet the same."""
        if now < self._due:
            return
        self._due = now + INTERVAL
        context, spec, records = self._context, self._context.spec, self._context.state.records
        self._tally.update(records.values())
        alert, breaker = (alike_needed(each, len(records)) for each in (spec.alert, spec.breaker))
        needed = min((each for each in (alert, breaker) if each is not None), default=len(records) + 1)
        for cause, tests in self._tally.met_by(needed):
            alarm = context.state.alarms.get(cause)
            if alarm is None:
                shared = what_is_shared(tests, records)
                context.record(PatternRaised(cause=cause, tests=tests[:TESTS_NAMED], shared=shared))
            if breaker is not None and len(tests) >= breaker and not (alarm is not None and alarm.is_released):
                self._hold(cause, tests)

    def _hold(self, cause: str, tests: tuple[str, ...]) -> None:
        if self._tried_to_hold.get(cause) == len(tests):
            return
        self._tried_to_hold[cause] = len(tests)
        held = choose_held(tests, self._tally.tried, self._context.state.records)
        if held is not None:
            self._context.record(QueueHeld(tests=held.tests, reason=held.why, cause=cause))

    def unreleased(self, now: float, queue: list[str], *, is_idle: bool) -> list[str]:
        """Return the tests to be stopped: those of which nothing but the breaker keeps a sweep waiting for too long."""
        records = self._context.state.records
        if not (is_idle and queue and all(records[test].held_for for test in queue)):
            self._idle_since = None
            return []
        if self._idle_since is None:
            self._idle_since = now
            tests = counted(len(queue), "test")
            self._context.note(f"only {tests} held by the breaker are left: release or stop them", level="warning")
        return queue if now - self._idle_since >= self._context.spec.wait_timeout else []
