"""The panels of the home screen: the grid, the test under the cursor, the patterns; what they show and when.

`screens.sweep` adds what a person does here.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from textual.containers import Container
from textual.timer import Timer
from textual.widget import Widget

from swarm_tui.model.state import TestRecord
from swarm_tui.room.draw.arrange import GridOptions, Zoom, arrange
from swarm_tui.room.draw.cells import Cell
from swarm_tui.room.draw.glyphs import PILLS, pill_look
from swarm_tui.room.draw.layout import lay_out
from swarm_tui.room.draw.patterns import draw_strip
from swarm_tui.room.draw.side import draw_side, side_title
from swarm_tui.room.screen_tail import Glimpse
from swarm_tui.room.screens.base import NOTHING, RoomScreen
from swarm_tui.room.store import Changes
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.grid import TestGrid
from swarm_tui.room.widgets.lines import TextLines

SIDE_AFTER_MOVE = 0.02
"""The cursor is drawn first, alone and thus at once; what is told about its test follows when it rests for so long."""
GLIMPSE_SECONDS = 1.0
WARM_AFTER = 1.0
AGENT_SCREEN = "swarm_tui.room.screens.agent"
REST_AFTER_KEY = 1.0
"""The order of the grid stays for so long after a key: nothing jumps under a moving cursor."""


class SweepView(RoomScreen):
    """The grid of the whole sweep, and what stands around it."""

    NAME = "sweep"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.grid = TestGrid(self.cell_of, self.now, id="grid")
        self.grid.add_class("main")
        self.side = TextLines(id="side")
        self.strip = Band(id="patterns")
        self.glimpse = Glimpse(lambda: self.room, self._draw_side)
        self._is_order_stale = False
        self._arranged_at = 0.0
        self._arranged_for: tuple[object, ...] = ()
        self._range_from: str | None = None
        self._side_timer: Timer | None = None
        self._marked_before_range: frozenset[str] = frozenset()

    def compose_body(self) -> Iterable[Widget]:
        yield Container(self.grid, self.side, id="body")
        yield self.strip

    def on_mount(self) -> None:
        self.set_interval(GLIMPSE_SECONDS, self._look_at_screen)
        self.set_timer(WARM_AFTER, self._warm)

    def _warm(self) -> None:
        """Load what the next key is likely to need, while nobody waits for it."""
        self.run_worker(asyncio.to_thread(importlib.import_module, AGENT_SCREEN), group="warm", exit_on_error=False)

    def _look_at_screen(self) -> None:
        if self.is_current and self.room.settings.remembered.has_side and self.side.display:
            self.glimpse.look(self.store.record(self.grid.test))

    def now(self) -> float:
        """Return the time, as the sweep's clock has it."""
        return self.store.clock()

    # What is shown.

    @property
    def choice(self) -> GridOptions:
        return self.room.choice

    def cell_of(self, test: str) -> Cell:
        record = self.store.state.records.get(test) or TestRecord(test)
        over = "marked" if test in self.room.marks.tests else ""
        if self.store.pending and self.store.pending_for(test) is not None:
            over = f"{over} pending".lstrip()
        return Cell(record, over)

    def show_changes(self, changes: Changes) -> None:
        size = self.grid.size
        if not size:
            # Before the first layout there is no grid to arrange anything on.
            return
        shape = (self.choice, self.grid.text_width, size.height if self.choice.zoom is Zoom.DOTS else 0)
        if changes.is_reset or shape != self._arranged_for or len(self.store.state.records) != self._known:
            self._arrange()
        elif changes.tests:
            self._is_order_stale |= self.choice.moves_by_state
        if self._is_order_stale and self._now_is_quiet():
            self._arrange()
        else:
            self.grid.tests_changed(changes.tests)
        if not changes.tests and not changes.is_reset and self.choice.zoom is Zoom.ROWS:
            self._refresh_times()
        self._draw_side()
        self._draw_strip()
        self.draw_title()

    _known: int = 0

    def _now_is_quiet(self) -> bool:
        now = self.now()
        return now - self._arranged_at > 1.0 and now - self.room.key_at > REST_AFTER_KEY

    def _arrange(self) -> None:
        size = self.grid.size
        records = self.store.state.records
        groups = arrange(records, self.choice, self.now())
        width = self.grid.text_width
        self.grid.show_layout(lay_out(groups, self.choice.zoom, width, max(1, size.height)), self.choice.sort)
        self._arranged_for = (self.choice, self.grid.text_width, size.height if self.choice.zoom is Zoom.DOTS else 0)
        self._arranged_at = self.now()
        self._known = len(records)
        self._is_order_stale = False

    def _refresh_times(self) -> None:
        visible = ((test, self.store.state.records[test]) for test in self.grid.visible_tests())
        self.grid.tests_changed(
            test for test, record in visible if record.launched_at is not None and record.ended_at is None
        )

    def draw_title(self) -> None:
        total, shown = len(self.store.state.records), len(self.grid.order())
        title = f"Tests {total:,}"
        if self.choice.is_filtering:
            title += f" · {shown:,} match"
            title += f" /{self.choice.words}" if self.choice.words else ""
            title += "".join(f" {pill_look(pill).word}" for pill in PILLS if pill in self.choice.pills)
            title += f" {self.choice.only_name}" if self.choice.only is not None else ""
        if self.choice.group not in ("file", "none"):
            title += f" · by {self.choice.group}"
        if self.choice.sort != "file":
            title += f" · sorted by {self.choice.sort}"
        if self.room.marks.tests:
            title += f" · {len(self.room.marks.tests):,} marked"
        if self._range_from is not None:
            title += " · range"
        place = f"{self.grid.rank_of_cursor() + 1:,} of {shown:,}" if shown else ""
        self.grid.title(title, place)

    def _draw_side(self) -> None:
        has_side = self.room.settings.remembered.has_side
        self.set_class(not has_side, "-alone")
        record = self.store.record(self.grid.test)
        if record is None:
            self.side.title("", "")
            self.side.show([])
        elif has_side:
            self.side.title(side_title(record))
            asked = self.store.pending_for(record.test)
            width = max(10, self.side.text_width)
            lines = draw_side(record, width, self.now(), asked)
            self.side.show([*lines, *self.glimpse.draw(record, width, self.side.visible_rows - len(lines))])

    def _draw_strip(self) -> None:
        patterns = self.store.patterns()
        self.strip.show(draw_strip(patterns, self.size.width) if self.size.height >= 12 else [])

    def on_test_grid_test_changed(self, event: TestGrid.TestChanged) -> None:
        event.stop()
        self.room.current_test = self.grid.test
        if self._range_from is not None:
            marked = self._marked_before_range | set(self.grid.range_to(self._range_from))
            self.mark(marked)
        if self._side_timer is not None:
            self._side_timer.stop()
        self._side_timer = self.set_timer(SIDE_AFTER_MOVE, self._follow_cursor)

    def _follow_cursor(self) -> None:
        self._side_timer = None
        self.draw_title()
        self.side.scroll_rows(0)
        self._draw_side()
        self.draw_foot()

    def click_spot(self, kind: str, rest: str) -> None:
        if kind == "pill":
            self.choose(pills=self.choice.pills ^ {rest})
        elif kind == "pattern":
            self.room.open_screen("patterns")

    def current_tests(self) -> tuple[str, ...]:
        marks = self.room.marks.tests
        if marks and (marked := tuple(test for test in self.grid.order() if test in marks)):
            return marked
        return (self.grid.test,) if self.grid.test is not None else ()

    def choose(self, **changes: object) -> None:
        """Show the tests in another way."""
        self.room.choice = replace(self.choice, **changes)  # type: ignore[arg-type]
        self.take_in(NOTHING)

    def go_to(self, test: str) -> None:
        """Put the cursor on a test; a filter that hides it is taken off."""
        self.room.current_test = test
        if not self.grid.go_to(test):
            self.choose(words="", pills=frozenset(), only=None, only_name="")
            self.grid.go_to(test)

    def mark(self, tests: Iterable[str]) -> None:
        """Mark these tests, and no others."""
        before = self.room.marks.tests
        self.room.marks = self.room.marks.changed_to(tests)
        self.grid.overlays_changed(before ^ self.room.marks.tests)
        self.draw_title()
