"""The list of ranked fixes."""

from __future__ import annotations

from collections.abc import Callable

from swarm_tui.model.fixes import Fix
from swarm_tui.room.draw.fixes import draw_fix
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.widgets.lines import Lines


class FixLines(Lines):
    """The ranked fixes."""

    def __init__(self, moved: Callable[[], None]) -> None:
        super().__init__(id="fixes")
        self._moved = moved
        self.state: ReviewState | None = None
        self.shown: list[Fix] = []

    def move_to(self, index: int) -> None:
        before = self.cursor
        super().move_to(index)
        if self.cursor != before:
            # A message would come after the cursor has been drawn: the diff would be on the screen a frame later.
            self._moved()

    def line_count(self) -> int:
        return len(self.shown)

    def draw_line(self, index: int, width: int) -> Line:
        assert self.state is not None, "there are no lines without a review"
        return draw_fix(self.state.fix_facts(self.shown[index]), width)

    @property
    def current(self) -> Fix | None:
        return self.shown[self.cursor] if self.cursor < len(self.shown) else None
