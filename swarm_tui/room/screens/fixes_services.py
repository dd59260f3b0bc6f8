"""What the merge view offers to the controllers of its parts."""

from __future__ import annotations

from typing import Protocol

from textual.worker import WorkType

from swarm_tui.model.fixes import Fix
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.services import ScreenServices


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
        """Draw the verdicts and compute what the plan makes of the branch."""

    def start(self, work: WorkType[None], group: str, *, is_exclusive: bool = True) -> None:
        """Run something beside the drawing; an exclusive one replaces what still runs of its group."""
