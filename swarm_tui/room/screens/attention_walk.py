"""Moves the cursor from one test that needs a person to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from swarm_tui.insight.attention import attention_class
from swarm_tui.model.formatting import counted
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.text import plain
from swarm_tui.room.draw.glyphs import word_of
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.widgets.grid import TestGrid


class AttentionWalk:
    """Visits the tests that need a person; one that begins to wait for an answer is visited next."""

    def __init__(self, screen: ScreenServices, grid: TestGrid) -> None:
        self._screen = screen
        self._grid = grid
        self._visited: set[tuple[str, float]] = set()
        """The visited tests, each with the time since when it is in its state."""

    def go_to_next(self) -> None:
        """Put the cursor on the next test that needs a person."""
        store = self._screen.store
        found = store.insights.tests_needing_person()
        walk = in_walking_order(found, self._grid.rank_of)
        if not walk:
            hidden = f" here; {len(found)} outside this filter {'does' if len(found) == 1 else 'do'}" if found else ""
            self._screen.show_message(f"nobody wants you{hidden}", "good")
            return
        ahead = [record for record in walk if (record.test, record.since) not in self._visited]
        if not ahead:
            self._visited.clear()
        target = (ahead or walk)[0]
        self._visited.add((target.test, target.since))
        self._grid.go_to(target.test)
        place = f"{walk.index(target) + 1} of {counted(len(walk), self._screen.store.noun)} that want you"
        self._screen.show_message(f"{reason_of(target)} · {place}")


def in_walking_order(records: Iterable[TestRecord], rank_of: Callable[[str], int | None]) -> list[TestRecord]:
    """Return the tests that the grid shows: those that wait for an answer first, then in the order of the grid."""
    shown = [(rank, record) for record in records if (rank := rank_of(record.test)) is not None]
    shown.sort(key=lambda entry: (attention_class(entry[1]), entry[0]))
    return [record for _, record in shown]


def reason_of(record: TestRecord) -> str:
    """Return why a test needs a person, with the key to press if there is one."""
    if record.state is State.WAITING:
        return "waits for your answer: m writes it"
    if record.stuck:
        return f"stuck: {plain(record.stuck, 200)}"
    return word_of(record)
