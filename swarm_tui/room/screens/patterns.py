"""Screen 4: what fails alike, with what the tests share, and actions on all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_tui.insight.patterns import Pattern
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.draw.patterns import draw_pattern_detail, draw_pattern_row
from swarm_tui.room.screens.groups import GatheredScreen


class PatternsScreen(GatheredScreen[Pattern]):
    """The patterns, the largest first."""

    NAME = "patterns"
    TITLE_WORD = "patterns"
    NOBODY = "there is no pattern under the cursor"
    WHEN_EMPTY = "No tests end alike: what several of them have in common comes up here."

    def gather(self) -> Sequence[Pattern]:
        return self.store.patterns()

    def name_of(self, entry: Pattern) -> str:
        return entry.cause

    def draw_row(self, entry: Pattern, width: int) -> Line:
        return draw_pattern_row(entry, width)

    def detail_title(self, entry: Pattern) -> str:
        return f"{len(entry.tests):,} {entry.kind} alike"

    def draw_detail(self, entry: Pattern, width: int) -> list[Line]:
        records = [record for test in entry.tests if (record := self.store.record(test)) is not None]
        return draw_pattern_detail(entry, records, width)

    def name_to_copy(self) -> str:
        pattern = self.current()
        return pattern.example if pattern is not None else ""

    def do_open(self) -> None:
        tests = self.current_tests()
        self.room.show_only(tests, f"these {len(tests)} alike")

    why_not_mark = GatheredScreen.why_not_open

    def do_mark(self) -> None:
        tests = frozenset(self.current_tests())
        marks = self.room.marks
        self.room.marks = marks.changed_to(marks.tests - tests if tests <= marks.tests else marks.tests | tests)
        self.say(f"{len(self.room.marks.tests):,} tests are marked in the grid; z undoes")
