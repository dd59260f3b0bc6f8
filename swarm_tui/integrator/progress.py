"""Counts the progress of an integration in executed tests, compared with the expected number."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from swarm_tui.model.formatting import Progress, seconds_left

TESTS = "tests"


class Meter:
    """Counts finished work, and shows each change."""

    def __init__(self, show: Callable[[Progress], object] = lambda progress: None) -> None:
        self._show = show
        self._step = Progress("")
        self._run = 0
        self._expected = 0
        self._whole = 0.0
        self._began = time.monotonic()

    def begin(self, doing: str, total: int = 0, noun: str = "") -> None:
        """Begin a step. If its noun is TESTS, it advances with each executed test."""
        self._step = Progress(doing, 0, total, noun)
        self._show_now()

    def advance(self) -> None:
        """Count one more unit of the step."""
        self._step = replace(self._step, done=min(self._step.total, self._step.done + 1))
        self._show_now()

    def expect(self, tests: int) -> None:
        """Set the expected number of remaining tests."""
        self._expected = self._run + tests

    def count(self, tests: int) -> None:
        """Count tests that were run or found in the cache."""
        self._run += tests
        if self._step.noun == TESTS:
            self._step = replace(self._step, done=min(self._step.total, self._step.done + tests))
        self._show_now()

    def _show_now(self) -> None:
        if self._expected:
            # More tests than expected may be necessary. The bar then waits and does not move back.
            self._whole = max(self._whole, min(1.0, self._run / self._expected))
        left = seconds_left(self._run, self._expected, time.monotonic() - self._began)
        self._show(replace(self._step, seconds_left=left, whole=self._whole if self._expected else None))
