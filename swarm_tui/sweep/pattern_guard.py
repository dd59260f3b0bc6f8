"""Record alerts, and stop held tests that keep a sweep waiting."""

from __future__ import annotations

from typing import Final

from swarm_tui.failures.alerts import CauseCounts, due_events
from swarm_tui.model.formatting import counted
from swarm_tui.sweep.context import SweepContext

INTERVAL: Final = 1.0


class PatternGuard:
    """The alerts of one sweep, and the tests that are held because of them."""

    def __init__(self, context: SweepContext) -> None:
        self._context = context
        self._counts = CauseCounts()
        self._due = 0.0
        self._idle_since: float | None = None

    def work(self, now: float) -> None:
        """Record the events that are due."""
        if now < self._due:
            return
        self._due = now + INTERVAL
        context = self._context
        for event in list(due_events(context.state, self._counts, context.spec.alert, context.spec.hold_similar)):
            context.record(event)

    def unreleased(self, now: float, queue: list[str], *, is_idle: bool) -> list[str]:
        """Return the tests to stop: held tests, if the sweep has waited too long for nothing but their release."""
        records = self._context.state.records
        if not (is_idle and queue and all(records[test].held_for for test in queue)):
            self._idle_since = None
            return []
        if self._idle_since is None:
            self._idle_since = now
            tests = counted(len(queue), "test")
            self._context.note(
                f"only {tests} held because of similar failures are left; release or stop them", level="warning"
            )
        return queue if now - self._idle_since >= self._context.spec.wait_timeout else []
