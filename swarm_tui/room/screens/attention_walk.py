"""The walk from one test that wants a person to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from swarm_tui.insight.attention import is_stuck, urgency_of
from swarm_tui.model.formatting import counted
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.room.draw.glyphs import word_of
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.widgets.grid import TestGrid


class AttentionWalk:
    """Goes from test to test; one that begins to wait meanwhile comes before those still ahead."""

    def __init__(self, screen: ScreenServices, grid: TestGrid) -> None:
        self._screen = screen
        self._grid = grid
        self._visited: set[tuple[str, float]] = set()
        """Where the walk has been, and since when each test was as it was found."""

    def go_to_next(self) -> None:
        """Put the cursor on the next test that wants a person."""
        store = self._screen.store
        now = store.clock()
        every = store.insights.wanting(now)
        walk = in_walking_order(every, self._grid.rank_of, now)
        if not walk:
            hidden = f" here; {len(every)} outside this filter {'does' if len(every) == 1 else 'do'}" if every else ""
            self._screen.show_message(f"nobody wants you{hidden}", "good")
            return
        ahead = [record for record in walk if (record.test, record.since) not in self._visited]
        if not ahead:
            self._visited.clear()
        there = (ahead or walk)[0]
        self._visited.add((there.test, there.since))
        self._grid.go_to(there.test)
        place = f"{walk.index(there) + 1} of {counted(len(walk), 'test')} that want you"
        self._screen.show_message(f"{reason_of(there, now)} · {place}")


def in_walking_order(
    wanting: Iterable[TestRecord], rank_of: Callable[[str], int | None], now: float
) -> list[TestRecord]:
    """Return those tests that are shown: who waits for an answer first, then by their place in the grid."""
    shown = [(rank, record) for record in wanting if (rank := rank_of(record.test)) is not None]
    shown.sort(key=lambda entry: (urgency_of(entry[1], now), entry[0]))
    return [record for _, record in shown]


def reason_of(record: TestRecord, now: float) -> str:
    """Return why a test wants a person, and what to do where one key does it."""
    if record.state is State.WAITING:
        return "waits for your answer: m writes it"
    if is_stuck(record, now):
        return "nothing was heard of it for long"
    return word_of(record)
