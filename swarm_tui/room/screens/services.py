"""What a screen offers to the controllers that carry out its actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from swarm_tui.model.state import TestRecord
from swarm_tui.room.store import Store, SweepChanged

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp


class ScreenServices(Protocol):
    """The screen as its controllers know it."""

    @property
    def room(self) -> RoomApp: ...

    @property
    def store(self) -> Store: ...

    def current_tests(self) -> tuple[str, ...]:
        """Return the tests that actions are about now: the marked ones, or those under the cursor."""

    def current_record(self) -> TestRecord | None:
        """Return the one test that an action is about which can be about one only."""

    def show_message(self, text: str, level: str = "info") -> None:
        """Show a sentence in the footer's place."""

    def apply_change(self, change: SweepChanged) -> None:
        """Bring the screen up to date."""
