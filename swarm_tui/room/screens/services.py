"""What a screen offers to the controllers that carry out its actions, and the merge view to those of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from swarm_tui.model.state import TestRecord
from swarm_tui.room.store import Store, SweepChanged

if TYPE_CHECKING:
    from textual.worker import Worker, WorkType

    from swarm_tui.model.fixes import Fix
    from swarm_tui.room.app import RoomApp
    from swarm_tui.room.review_state import ReviewState


class ScreenServices(Protocol):
    """The screen as its controllers know it."""

    @property
    def room(self) -> RoomApp: ...

    @property
    def store(self) -> Store: ...

    def current_tests(self) -> tuple[str, ...]:
        """Return the tests that actions are about now: the marked ones, or those under the cursor."""

    def current_record(self) -> TestRecord | None:
        """Return the test for actions on a single test."""

    def show_message(self, text: str, level: str = "info") -> None:
        """Show a sentence in the footer's place."""

    def apply_change(self, change: SweepChanged) -> None:
        """Bring the screen up to date."""


class FixesServices(ScreenServices, Protocol):
    """The merge view as its controllers know it."""

    @property
    def review_state(self) -> ReviewState | None:
        """The open review; None while there is none."""

    @property
    def current_fix(self) -> Fix | None:
        """The fix under the cursor."""

    def why_no_fix(self) -> str:
        """Return the reason why there is no fix under the cursor, or ""."""

    def reviewed_fix(self) -> tuple[ReviewState, Fix]:
        """Return the review and the fix under the cursor; only where `why_no_fix` returns no reason."""

    def show_fix(self, fix: Fix) -> None:
        """Put the cursor on a fix, if it is shown."""

    def show_verdicts(self) -> None:
        """Draw the verdicts and compute the preview of the plan."""

    def start(self, work: WorkType[None], group: str, *, is_exclusive: bool = True) -> Worker[None]:
        """Start a worker; an exclusive one cancels the other workers of its group."""
