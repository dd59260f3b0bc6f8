"""Screen 1, home: every test of the sweep in one grid, the test under the cursor beside it, patterns below."""

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
from swarm_tui.room.actions import Action, screen_entry
from swarm_tui.room.draw.parts import Line, Part
from swarm_tui.room.draw.patterns import draw_strip
from swarm_tui.room.draw.progress import draw_progress
from swarm_tui.room.draw.screen_line import LOW, draw_first_lines, draw_next
from swarm_tui.room.open_work import next_facts
from swarm_tui.room.screens.attention_walk import AttentionWalk
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.screens.comparing import Comparing
from swarm_tui.room.screens.grid_commands import GridCommands
from swarm_tui.room.screens.panel_border import PanelBorder
from swarm_tui.room.screens.side_panel import SidePanel
from swarm_tui.room.screens.sweep_commands import SweepCommands
from swarm_tui.room.screens.tests_panel import TestsPanel
from swarm_tui.room.screens.time_commands import TimeCommands
from swarm_tui.room.store import NO_AGENTS, VIEW_CHANGED, SweepChanged
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.grid import TestGrid
from swarm_tui.room.widgets.lines import Lines

LINES_FOR_ALL = 30
"""From this height on what comes next and what fails alike have a line each."""
SIDE_AFTER_MOVE = 0.02
"""The cursor is drawn first, alone and thus at once; the panel about its test follows when it rests for so long."""
CAPTURE_SECONDS = 1.0
PRELOAD_AFTER = 0.3


class SweepScreen(RoomScreen):
    """The grid of tests with the panels around it."""

    NAME = "sweep"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.tests = TestsPanel(self)
        self.grid = self.tests.grid
        self.side = SidePanel(self)
        self.panel_border = PanelBorder(self, self.side.lines)
        self.below = Band(id="below")
        """What is taught at the very first start, what comes next, and what fails alike."""
        self.walk = AttentionWalk(self, self.grid)
        self.grid_commands = GridCommands(self, self.tests)
        self.comparing = Comparing(self)
        self.time_commands = TimeCommands(self)
        self.sweep_commands = SweepCommands(self, self.requests)
        self._side_timer: Timer | None = None

    def compose_body(self) -> Iterable[Widget]:
        yield Container(self.grid, self.side.lines, id="body")
        yield self.below

    def own_actions(self) -> tuple[Action, ...]:
        return (
            Action("sweep.open", ("enter",), "open", "Open the test or the folder under the cursor", self.open_test,
                   self.grid_commands.why_no_test, is_listed=False, rank=0,
                   watch_description="Open the agent or the group under the cursor"),
            Action("sweep.act", ("x",), "act", "Stop, retry, hold or release what is marked, or this test",
                   self.requests.choose, self.requests.why_no_tests, rank=15, is_of_now=True,
                   watch_description="Stop what is marked, or this agent"),
            Action("sweep.wanted", ("w",), "wants you", "To who wants you: waiting, then blocked, then others",
                   self.walk.go_to_next, rank=14),
            *self.grid_commands.actions(),
            Action("sweep.side", ("p",), "", "Show or hide the panel about the test under the cursor",
                   self.switch_side,
                   watch_description="Show or hide the panel about the agent under the cursor"),
            *self.time_commands.actions(),
            *self.comparing.actions(),
            *self.sweep_commands.actions(),
        )  # fmt: skip

    def on_mount(self) -> None:
        self.set_interval(CAPTURE_SECONDS, self._capture_screen)
        self.set_timer(PRELOAD_AFTER, self._preload)

    def _preload(self) -> None:
        self.run_worker(self._load_rest(), group="preload", exit_on_error=False)

    async def _load_rest(self) -> None:
        """Import what the next key is likely to need, and what shows the transcript beside the grid."""
        await asyncio.to_thread(importlib.import_module, screen_entry("agent").place.partition(":")[0])
        self.side.begin_to_follow()

    def on_unmount(self) -> None:
        self.side.close()

    def _capture_screen(self) -> None:
        if self.is_current:
            self.side.capture_screen()

    # What is shown.

    @property
    def is_loading(self) -> bool:
        # Tests are at the beginning of a journal: once they are there, what follows only changes them.
        return not self.tests.is_arranged or (not self.store.state.records and super().is_loading)

    def show_change(self, change: SweepChanged) -> None:
        if not self.grid.size:
            # Before the first layout there is no grid to arrange anything on.
            return
        self.tests.show_change(change)
        self.set_class(not self.side.is_wanted, "-alone")
        self.side.show(self.store.record(self.grid.test))
        self.below.show(self._lines_below())
        self.tests.draw_title()

    def _lines_below(self) -> list[Line]:
        """Return the lines under the panels, as many as the height has room for."""
        width, height, state = self.size.width, self.size.height, self.store.state
        is_watch = self.store.is_watch
        if is_watch and not state.records:
            return [[Part(f" {NO_AGENTS}", "warning")]]
        if height < LOW:
            return []
        lines = draw_first_lines(width, "an agent" if is_watch else "a test") if self.room.is_first_time else []
        comes_next = next_facts(self.store, self.room.review_state)
        lines += [draw_next(comes_next, width)] if comes_next is not None else []
        integrating = self.store.integration_progress()
        if integrating is not None:
            lines.append(draw_progress(replace(integrating, doing=f"Integrating: {integrating.doing}"), width))
        if (not lines or height >= LINES_FOR_ALL) and not is_watch:
            lines += draw_strip(self.store.patterns(), state.alarms, state.records, width)
        return lines

    def on_test_grid_test_changed(self, event: TestGrid.TestChanged) -> None:
        event.stop()
        self.room.current_test = self.grid.test
        self.tests.extend_range()
        if self._side_timer is not None:
            self._side_timer.stop()
        self._side_timer = self.set_timer(SIDE_AFTER_MOVE, self._show_cursor)

    def _show_cursor(self) -> None:
        self._side_timer = None
        self.tests.draw_title()
        self.side.lines.scroll_rows(0)
        self.side.show(self.store.record(self.grid.test))
        self.side.follow_transcript()
        self.draw_footer()

    def on_test_grid_head_clicked(self, event: TestGrid.HeadClicked) -> None:
        event.stop()
        self.grid_commands.sort_by(event.sort)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.open_test()

    def click_spot(self, kind: str, rest: str) -> None:
        if kind == "pill":
            self.tests.change_options(pills=self.room.choice.pills ^ {rest})
        elif kind == "pattern":
            self.room.open_screen("patterns")

    # What the base class uses.

    def current_tests(self) -> tuple[str, ...]:
        return self.tests.marked_or_current()

    def current_record(self) -> TestRecord | None:
        return self.store.record(self.room.current_test or next(iter(self.current_tests()), None))

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.room.choice.words

    def set_filter(self, words: str) -> None:
        self.tests.change_options(words=words)

    # Actions.

    def open_test(self) -> None:
        if not self.tests.open_folder():
            self.room.open_screen("agent")

    def switch_side(self) -> None:
        self.room.remember(has_side=not self.side.is_wanted)
        self._leave_side()
        self.apply_change(VIEW_CHANGED)

    def _leave_side(self) -> bool:
        if self.focused is not self.side.lines:
            return False
        self.set_focus(self.grid)
        return True

    def close_something(self) -> bool:
        if self.room.is_first_time:
            self.room.is_first_time = False
            self.apply_change(VIEW_CHANGED)
            return True
        if self._leave_side() or self.tests.end_range():
            return True
        if self.room.marks.tests:
            self.tests.mark(())
        elif self.tests.close_folder():
            return True
        elif self.room.choice.is_filtering:
            self.tests.show_all()
        else:
            return False
        return True
