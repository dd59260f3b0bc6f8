"""The tests that a branch changes, as the merge view knows them: whether they are weaker, measured when asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from swarm_tui.model.fixes import Fix
from swarm_tui.model.progress import Progress
from swarm_tui.model.state import TestRecord
from swarm_tui.model.teeth import TestTeeth
from swarm_tui.teeth.review_teeth import ReviewTeeth
from swarm_tui.testing.traced import without_case


class ChangedTests:
    """What is known of the changed tests of one review, the weakest first."""

    def __init__(self, teeth: ReviewTeeth) -> None:
        self.known: list[TestTeeth] = []
        self.progress: Progress | None = None
        """How far our measurement is; None while there is none."""
        self.elsewhere: Progress | None = None
        """How far that of another process is, most often the engine's after its sweep."""
        self.unmeasured = 0
        self._teeth = teeth

    async def load(self) -> None:
        """Read the sources of the changed tests, and what was measured before."""
        self.known = await asyncio.to_thread(self._teeth.known)
        self.unmeasured = await asyncio.to_thread(lambda: self._teeth.unmeasured)

    async def measure(self, on_change: Callable[[], None]) -> str:
        """Measure what was not measured yet; return in a sentence what came of it."""

        def show(progress: Progress) -> None:
            self.progress = progress
            on_change()

        try:
            self.known = await self._teeth.measure(show)
            self.unmeasured = 0
        finally:
            self.progress = None
            on_change()
        return self.summary

    @property
    def summary(self) -> str:
        """What came of the measurement, in a sentence."""
        weaker = self.weaker
        first = f", {weaker[0].test} first: {weaker[0].words}" if weaker else ""
        return f"teeth: {len(weaker)} of {len(self.known)} changed tests are weaker{first}"

    def look_elsewhere(self) -> bool:
        """Look whether another process measures, and how far it is; return whether that is other than before."""
        before, self.elsewhere = self.elsewhere, self._teeth.turn.progress() if self.progress is None else None
        return before != self.elsewhere

    def stop_elsewhere(self) -> None:
        """Ask the other process to stop."""
        self._teeth.turn.stop()

    @property
    def weaker(self) -> list[TestTeeth]:
        return [teeth for teeth in self.known if teeth.is_weaker]

    def of_row(self, row: Fix, records: Iterable[TestRecord]) -> Sequence[TestTeeth]:
        """Return the changed tests of a row: those of its agents; of row 0, and of hunks, those of its files."""
        names = {without_case(test) for test in (*row.tests, *(record.test for record in records))}
        own = [teeth for teeth in self.known if teeth.test in names]
        if own or row.rank:
            return own
        return [teeth for teeth in self.known if teeth.file in row.commit.paths] if not names else []
