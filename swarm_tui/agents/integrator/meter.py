"""Says how far an integration is: by the tests that it has run, of those that it is known to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from swarm_tui.model.progress import Progress, seconds_left

TESTS = "tests"


class Meter:
    """Counts what is done; each change is shown."""

    def __init__(self, show: Callable[[Progress], object] = lambda progress: None) -> None:
        self._show = show
        self._step = Progress("")
        self._run = 0
        self._expected = 0
        self._whole = 0.0
        self._began = time.monotonic()

    def begin(self, doing: str, total: int = 0, noun: str = "") -> None:
        """Begin a step; one of which the noun is TESTS goes on with each test that was run."""
        self._step = Progress(doing, 0, total, noun)
        self._show_now()

    def advance(self) -> None:
        """Count one more of what the step is about."""
        self._step = replace(self._step, done=min(self._step.total, self._step.done + 1))
        self._show_now()

    def expect(self, tests: int) -> None:
        """Set how many tests are still to be run, as far as is known."""
        self._expected = self._run + tests

    def count(self, tests: int) -> None:
        """Count tests that were run, or found in the cache."""
        self._run += tests
        if self._step.noun == TESTS:
            self._step = replace(self._step, done=min(self._step.total, self._step.done + tests))
        self._show_now()

    def _show_now(self) -> None:
        if self._expected:
            # More may turn out to be needed than was expected: the bar waits then, and does not go back.
            self._whole = max(self._whole, min(1.0, self._run / self._expected))
        left = seconds_left(self._run, self._expected, time.monotonic() - self._began)
        self._show(replace(self._step, seconds_left=left, whole=self._whole if self._expected else None))
