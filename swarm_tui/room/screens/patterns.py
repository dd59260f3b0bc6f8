"""Screen 4: what fails alike, with what the tests share, and actions on all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.insight.patterns import Pattern
from swarm_tui.room.actions import Action
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.draw.patterns import draw_pattern_detail, draw_pattern_row
from swarm_tui.room.screens.groups import GroupListScreen


class PatternsScreen(GroupListScreen[Pattern]):
    """The patterns, the largest first."""

    NAME = "patterns"
    TITLE_WORD = "patterns"
    WHY_NO_ENTRY = "there is no pattern under the cursor"
    WHEN_EMPTY = "No tests end alike: what several of them have in common comes up here."

    def own_actions(self) -> tuple[Action, ...]:
        return (
            Action("patterns.open", ("enter",), "show tests", "Show the tests of this pattern in the grid",
                   self.show_tests, self.why_no_entry, is_listed=False, rank=0),
            Action("patterns.act", ("x",), "act on all", "Stop, retry, hold or release all tests of this pattern",
                   self.requests.choose, self.why_no_entry),
            Action("patterns.mark", ("space",), "mark", "Mark the tests of this pattern in the grid", self.mark_tests,
                   self.why_no_entry),
        )  # fmt: skip

    def find_entries(self) -> Sequence[Pattern]:
        return self.store.patterns()

    def key_of(self, entry: Pattern) -> str:
        return entry.cause

    def draw_row(self, entry: Pattern, width: int) -> Line:
        return draw_pattern_row(entry, width)

    def detail_title(self, entry: Pattern) -> str:
        return f"{len(entry.tests):,} {entry.kind} alike"

    def draw_detail(self, entry: Pattern, width: int) -> list[Line]:
        return draw_pattern_detail(entry, self.store.records_of(entry.tests), width)

    def name_to_copy(self) -> str:
        pattern = self.current()
        return pattern.example if pattern is not None else ""

    def show_tests(self) -> None:
        tests = self.current_tests()
        self.room.show_only(tests, f"these {len(tests)} alike")

    def mark_tests(self) -> None:
        """Mark the tests of this pattern in the grid, or unmark them when all of them are marked."""
        tests = frozenset(self.current_tests())
        marks = self.room.marks
        self.room.change_marks(marks.changed_to(marks.tests - tests if tests <= marks.tests else marks.tests | tests))
        self.show_message(f"{len(self.room.marks.tests):,} tests are marked in the grid; z undoes")
