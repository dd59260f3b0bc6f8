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

from swarm_tui.model.requests import RequestKind
from swarm_tui.model.state import TestRecord
from swarm_tui.room.draw.arrange import GROUPINGS, SORTINGS, Choice, Zoom, arrange
from swarm_tui.room.draw.cells import Cell
from swarm_tui.room.draw.glyphs import PILLS, pill_look
from swarm_tui.room.draw.layout import lay_out
from swarm_tui.room.draw.patterns import draw_strip
from swarm_tui.room.draw.side import draw_side, side_title
from swarm_tui.room.draw.words import counted
from swarm_tui.room.glimpse import Glimpse
from swarm_tui.room.screens.asking import ask_about, ask_engine
from swarm_tui.room.screens.base import NOTHING, RoomScreen
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.store import Changes, EngineState
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.grid import TestGrid
from swarm_tui.room.widgets.lines import Lines, TextLines

PICK_KEYS = {"state": "t", "name": "a"}
ZOOMS = (Zoom.DOTS, Zoom.CHIPS, Zoom.ROWS)
SIDE_AFTER_MOVE = 0.02
"""The cursor is drawn first, alone and thus at once; what is told about its test follows when it rests for so long."""
GLIMPSE_SECONDS = 1.0
WARM_AFTER = 1.0
AGENT_SCREEN = "swarm_tui.room.screens.agent"
REST_AFTER_KEY = 1.0
"""The order of the grid stays for so long after a key: nothing jumps under a moving cursor."""


class SweepScreen(RoomScreen):
    """The grid of the whole sweep."""

    NAME = "sweep"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.grid = TestGrid(self.cell_of, self._now, id="grid")
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

    def _now(self) -> float:
        return self.store.clock()

    # What is shown.

    @property
    def choice(self) -> Choice:
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
        self._draw_title()

    _known: int = 0

    def _now_is_quiet(self) -> bool:
        now = self._now()
        return now - self._arranged_at > 1.0 and now - self.room.key_at > REST_AFTER_KEY

    def _arrange(self) -> None:
        size = self.grid.size
        records = self.store.state.records
        groups = arrange(records, self.choice, self._now())
        width = self.grid.text_width
        self.grid.show_layout(lay_out(groups, self.choice.zoom, width, max(1, size.height)), self.choice.sort)
        self._arranged_for = (self.choice, self.grid.text_width, size.height if self.choice.zoom is Zoom.DOTS else 0)
        self._arranged_at = self._now()
        self._known = len(records)
        self._is_order_stale = False

    def _refresh_times(self) -> None:
        records = self.store.state.records
        self.grid.tests_changed(test for test in self.grid.visible_tests() if not records[test].is_finished)

    def _draw_title(self) -> None:
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
            lines = draw_side(record, width, self._now(), asked)
            self.side.show([*lines, *self.glimpse.draw(record, width, self.side.visible_rows - len(lines))])

    def _draw_strip(self) -> None:
        patterns = self.store.patterns()
        self.strip.show(draw_strip(patterns, self.size.width) if self.size.height >= 12 else [])

    def on_test_grid_test_changed(self, event: TestGrid.TestChanged) -> None:
        event.stop()
        self.room.current_test = self.grid.test
        if self._range_from is not None:
            marked = self._marked_before_range | set(self.grid.range_to(self._range_from))
            self._mark(marked)
        if self._side_timer is not None:
            self._side_timer.stop()
        self._side_timer = self.set_timer(SIDE_AFTER_MOVE, self._follow_cursor)

    def _follow_cursor(self) -> None:
        self._side_timer = None
        self._draw_title()
        self.side.scroll_rows(0)
        self._draw_side()
        self.draw_foot()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.do_open()

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

    # Filter.

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.choice.words

    def set_filter(self, words: str) -> None:
        self.choose(words=words)

    # Actions.

    def why_not_open(self) -> str:
        if self.grid.test is None:
            return "no test is under the cursor"
        return ""

    def do_open(self) -> None:
        if self.room.has_screen("agent"):
            self.room.open_screen("agent")
        else:
            self.set_focus(self.side)

    def why_not_act(self) -> str:
        return "" if self.current_tests() else "no test is marked or under the cursor"

    def do_act(self) -> None:
        ask_about(self, self.current_tests())

    def do_wanted(self) -> None:
        wanting = [record.test for record in self.store.ledger.wanting(self._now())]
        tests = [test for test in wanting if self.grid.has(test)]
        if not tests:
            hidden = f" here; {len(wanting)} outside this filter do" if wanting else ""
            self.say(f"nobody wants you{hidden}", "good")
            return
        here = tests.index(self.grid.test) + 1 if self.grid.test in tests else 0
        self.grid.go_to(tests[here % len(tests)])
        self.say(f"{here % len(tests) + 1} of {counted(len(tests), 'test')} that want you")

    def _mark(self, tests: Iterable[str]) -> None:
        before = self.room.marks.tests
        self.room.marks = self.room.marks.changed_to(tests)
        self.grid.overlays_changed(before ^ self.room.marks.tests)
        self._draw_title()

    def why_not_mark(self) -> str:
        return self.why_not_open()

    def do_mark(self) -> None:
        if self.grid.test is not None:
            self._mark(self.room.marks.tests ^ {self.grid.test})
            self.grid.move(0, 1) if self.choice.zoom is not Zoom.ROWS else self.grid.move(1)

    def why_not_mark_range(self) -> str:
        return self.why_not_open()

    def do_mark_range(self) -> None:
        if self._range_from is None:
            self._range_from = self.grid.test
            self._marked_before_range = self.room.marks.tests
            self._mark(self._marked_before_range | {self.grid.test or ""})
        else:
            self._range_from = None
            self._draw_title()

    def do_mark_all(self) -> None:
        shown = frozenset(self.grid.order())
        self._mark(frozenset() if shown <= self.room.marks.tests else self.room.marks.tests | shown)

    def do_zoom_in(self) -> None:
        self._zoom(1)

    def do_zoom_out(self) -> None:
        self._zoom(-1)

    def _zoom(self, step: int) -> None:
        zoom = ZOOMS[max(0, min(len(ZOOMS) - 1, ZOOMS.index(self.choice.zoom) + step))]
        self.room.remember(zoom=zoom.value)
        self.choose(zoom=zoom)

    def do_group(self) -> None:
        self._pick("Group by", GROUPINGS, "group")

    def do_sort(self) -> None:
        self._pick("Sort by", SORTINGS, "sort")

    def _pick(self, title: str, values: tuple[str, ...], field: str) -> None:
        def picked(chosen: tuple[str, ...] | None) -> None:
            if chosen:
                self.room.remember(**{field: chosen[0]})
                self.choose(**{field: chosen[0]})

        entries = [Choosable(value, value, key=PICK_KEYS.get(value, value[0])) for value in values]
        self.app.push_screen(PickScreen(title, entries, current=getattr(self.choice, field)), picked)

    def do_states(self) -> None:
        counts = self.store.state.counts
        entries = []
        for pill, marks in PILLS.items():
            look = pill_look(pill)
            number = sum(counts[mark] for mark in marks)
            entries.append(
                Choosable(
                    pill, f"{look.glyph} {look.word}", f"{number:,}", role=look.role, is_on=pill in self.choice.pills
                )
            )

        def picked(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                self.choose(pills=frozenset(chosen))

        self.app.push_screen(PickScreen("Show only (none: all)", entries, is_many=True), picked)

    def do_failed_only(self) -> None:
        failed = frozenset({"failed", "unresolved"})
        self.choose(pills=frozenset() if self.choice.pills == failed else failed)

    def do_next_group(self) -> None:
        self.grid.move_group(1)

    def do_previous_group(self) -> None:
        self.grid.move_group(-1)

    def do_side(self) -> None:
        self.room.remember(has_side=not self.room.settings.remembered.has_side)
        if self.focused is self.side:
            self.set_focus(self.grid)
        self.take_in(NOTHING)

    def do_back(self) -> None:
        if self.focused is self.side:
            self.set_focus(self.grid)
        elif self._range_from is not None:
            self._range_from = None
            self._draw_title()
        elif self.choice.is_filtering:
            self.choose(words="", pills=frozenset(), only=None, only_name="")
        else:
            super().do_back()

    # The whole sweep.

    def _slots_by(self, step: int) -> None:
        ask_engine(self, RequestKind.SLOTS, slots=max(0, self.store.wanted_slots + step))

    def why_not_fewer_slots(self) -> str:
        return self.store.why_not_ask() or ("" if self.store.wanted_slots > 0 else "there are no slots any more")

    def do_fewer_slots(self) -> None:
        self._slots_by(-1)

    def why_not_more_slots(self) -> str:
        return self.store.why_not_ask()

    def do_more_slots(self) -> None:
        self._slots_by(1)

    def why_not_hold_queue(self) -> str:
        return self.store.why_not_ask() or ("the queue is held already" if self.store.state.is_held else "")

    def do_hold_queue(self) -> None:
        ask_engine(self, RequestKind.HOLD)

    def why_not_release_queue(self) -> str:
        return self.store.why_not_ask() or ("" if self.store.state.is_held else "the queue is not held")

    def do_release_queue(self) -> None:
        ask_engine(self, RequestKind.RELEASE)

    def why_not_stop_sweep(self) -> str:
        return self.store.why_not_ask()

    def do_stop_sweep(self) -> None:
        def answered(is_yes: bool | None) -> None:
            if is_yes:
                ask_engine(self, RequestKind.STOP_SWEEP)

        active = counted(self.store.state.active, "agent")
        question = f"Stop the sweep? {active} will be stopped; what was harvested stays, and it can be resumed."
        self.app.push_screen(ConfirmScreen(question), answered)

    def why_not_resume(self) -> str:
        if self.store.engine is EngineState.LIVING:
            return "its engine lives"
        return ""

    def do_resume(self) -> None:
        self.room.resume_sweep(self)
