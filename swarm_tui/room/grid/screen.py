"""Screen 1: layout and actions."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from textual.containers import Container
from textual.timer import Timer
from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.journal.compare import SweepComparison, compare_sweeps, comparison_lines
from swarm_tui.journal.folder import SweepFolder, sweeps_in
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.money.budget import cost_text
from swarm_tui.money.events import limit_text
from swarm_tui.room.actions import OF_NO_SWEEP, action, screen_entry
from swarm_tui.room.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.draw.frame import LOW, draw_first_lines, draw_next
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill
from swarm_tui.room.draw.patterns_hosts import draw_strip
from swarm_tui.room.draw.spans import Line, Span
from swarm_tui.room.draw.transcript import draw_progress
from swarm_tui.room.engine_requests import choose_request, send_request, suggested_limits, why_no_tests
from swarm_tui.room.grid.draw import Cell, table_of
from swarm_tui.room.grid.draw_layout import GROUPINGS, SORTINGS, WATCH_SORTINGS, Layout, Zoom, watch_groupings
from swarm_tui.room.grid.session import SweepView
from swarm_tui.room.grid.side import SidePanel
from swarm_tui.room.grid.widget import TestGrid
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import NO_AGENTS, VIEW_CHANGED, SweepChanged
from swarm_tui.room.time_travel import NO_HISTORY, TimeTravel
from swarm_tui.room.view import next_facts
from swarm_tui.room.widgets.border import PanelBorder
from swarm_tui.room.widgets.lines import Band, Lines

LISTED: Final = 500
"""Maximum number of sweeps or lines in a list; `swarm-tui compare` prints all."""
CHOICE_KEYS: Final = {"state": "t", "name": "a", "type": "y"}
"""Keys of choices whose first letter is the key of another choice."""
LINES_FOR_ALL: Final = 30
"""From this height the next steps and the patterns have a line each."""
SIDE_AFTER_MOVE: Final = 0.02
"""Seconds. The cursor is drawn first. The panel about its test follows when the cursor rests for this time."""
CAPTURE_SECONDS: Final = 1.0
PRELOAD_AFTER: Final = 0.3


sweep_action = partial(action, is_of_now=True, why_not_in_watch=OF_NO_SWEEP)
"""Makes a method an action on the present sweep as a whole."""


class GridScreen(RoomScreen):
    """The grid of tests with the panels around it."""

    NAME = "sweep"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.grid = TestGrid(self._cell_of, lambda: self.store.clock(), id="grid")
        self.grid.add_class("main")
        self.side = SidePanel(self)
        self.panel_border = PanelBorder(self, self.side.lines)
        self.below = Band(id="below")
        """The introduction at the first start, next steps, and patterns."""
        self._side_timer: Timer | None = None

    @property
    def view(self) -> SweepView:
        return self.room.view

    def compose_body(self) -> Iterable[Widget]:
        yield Container(self.grid, self.side.lines, id="body")
        yield self.below

    def on_mount(self) -> None:
        self.set_interval(CAPTURE_SECONDS, self._capture_screen)
        self.set_timer(PRELOAD_AFTER, lambda: self.run_worker(self._load_rest(), group="preload", exit_on_error=False))

    async def _load_rest(self) -> None:
        """Import modules for the most likely next keys, and for the transcript next to the grid."""
        await asyncio.to_thread(importlib.import_module, screen_entry("agent").place.partition(":")[0])
        self.side.begin_to_follow()

    def on_unmount(self) -> None:
        self.side.close()

    def _capture_screen(self) -> None:
        if self.is_current:
            self.side.capture_screen()

    # Contents.

    @property
    def is_loading(self) -> bool:
        # Tests are added at the beginning of a journal. Later events only change them.
        return not self.view.is_arranged or (not self.store.state.records and super().is_loading)

    def _cell_of(self, test: str) -> Cell:
        record = self.store.state.records.get(test) or TestRecord(test)
        overlay = "marked" if test in self.view.marks.tests else ""
        if self.store.pending and self.store.pending_for(test) is not None:
            overlay = f"{overlay} pending".lstrip()
        return Cell(record, overlay)

    def show_change(self, change: SweepChanged) -> None:
        if not self.grid.size:
            # The grid exists only after the first layout.
            return
        layout = self.view.update(change, self.grid.text_width, self.grid.size.height, self.room.key_at)
        if layout is not None:
            self._show_layout(layout)
        else:
            self.grid.fit_table(self.store.records_of(change.tests))
            self.grid.tests_changed(change.tests)
        if not change.tests and not change.is_everything and self.view.options.zoom is Zoom.ROWS:
            self._refresh_durations()
        self.set_class(not self.side.is_wanted, "-alone")
        self.side.show(self.store.record(self.grid.test))
        self.below.show(self._lines_below())
        self._draw_title()

    def _show_layout(self, layout: Layout) -> None:
        if self.grid.test is None:
            self.grid.test = self.room.current_test
        if layout.zoom is Zoom.ROWS:
            self.grid.table = table_of(self.store.records_of(self.view.order), self.store.noun)
        self.grid.show_layout(layout, self.view.options.sort)

    def _refresh_durations(self) -> None:
        visible = self.store.records_of(self.grid.visible_tests())
        self.grid.tests_changed(
            record.test for record in visible if record.launched_at is not None and record.ended_at is None
        )

    def _draw_title(self) -> None:
        shown = len(self.view.order)
        self.grid.title(self.view.title(), f"{self.grid.rank_of_cursor() + 1:,} of {shown:,}" if shown else "")

    def _lines_below(self) -> list[Line]:
        """Return the lines below the panels that fit into the height."""
        width, height, state = self.size.width, self.size.height, self.store.state
        is_watch = self.store.is_watch
        if is_watch and not state.records:
            return [[Span(f" {NO_AGENTS}", "warning")]]
        if height < LOW:
            return []
        lines = draw_first_lines(width, "an agent" if is_watch else "a test") if self.room.is_first_time else []
        comes_next = next_facts(self.store, self.room.review_session)
        lines += [draw_next(comes_next, width)] if comes_next is not None else []
        integrating = self.store.integration_progress()
        if integrating is not None:
            lines.append(draw_progress(replace(integrating, doing=f"Integrating: {integrating.doing}"), width))
        if (not lines or height >= LINES_FOR_ALL) and not is_watch:
            lines += draw_strip(self.store.patterns(), state.alerts, state.records, width)
        return lines

    def _show_cursor(self) -> None:
        self._side_timer = None
        self._draw_title()
        self.side.lines.scroll_rows(0)
        self.side.show(self.store.record(self.grid.test))
        self.side.follow_transcript()
        self.draw_footer()

    # Keys and clicks.

    def on_test_grid_test_changed(self, event: TestGrid.TestChanged) -> None:
        event.stop()
        self.room.current_test = self.grid.test
        self.view.extend_range(self.grid.test)
        if self._side_timer is not None:
            self._side_timer.stop()
        self._side_timer = self.set_timer(SIDE_AFTER_MOVE, self._show_cursor)

    def on_test_grid_head_clicked(self, event: TestGrid.HeadClicked) -> None:
        """Sort by the clicked column. The second time, sort by file again."""
        event.stop()
        self._change_setting("sort", "file" if event.sort == self.view.options.sort else event.sort)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.open_test()

    def click_spot(self, kind: str, rest: str) -> None:
        if kind == "pill":
            self.view.change(pills=self.view.options.pills ^ {rest})
        elif kind == "pattern":
            self.room.open_screen("patterns")

    def current_tests(self) -> tuple[str, ...]:
        return self.view.marked_or(self.grid.test)

    def current_record(self) -> TestRecord | None:
        return self.store.record(self.room.current_test or next(iter(self.current_tests()), None))

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.view.options.words

    def set_filter(self, words: str) -> None:
        self.view.change(words=words)

    def close_something(self) -> bool:
        if self.room.is_first_time:
            self.room.is_first_time = False
            self.apply_change(VIEW_CHANGED)
            return True
        return self._leave_side() or self.view.close_innermost()

    def go_to(self, test: str) -> None:
        """Move the cursor to a test. If a filter hides the test, the filter is cleared."""
        self.room.current_test = test
        if not self.grid.go_to(test):
            self.view.show_all()
            self.show_change(VIEW_CHANGED)
            self.grid.go_to(test)

    # Actions on tests.

    def why_no_test(self) -> str:
        return "" if self.grid.test is not None else f"no {self.store.noun} under the cursor"

    @action("enter", "sweep.open", "open", "Open the test or folder under the cursor",
            why_no_test, is_listed=False, rank=0,
            watch_description="Open the agent or group under the cursor")  # fmt: skip
    def open_test(self) -> None:
        if not self.view.open_folder(self.grid.run_of_cursor()):
            self.room.open_screen("agent")

    @action("x", "sweep.act", "act", "Stop, retry, hold or release the marked tests, or this one",
            why_no_tests, rank=15, is_of_now=True,
            watch_description="Stop the marked agents, or this one")  # fmt: skip
    def act(self) -> None:
        choose_request(self)

    @action("w", "sweep.wanted", "needs you", "Go to the next one that needs you: waiting, blocked, others",
            rank=14)  # fmt: skip
    def go_to_next_needing_user(self) -> None:
        test, message = self.view.next_needing_user()
        if test is not None:
            self.grid.go_to(test)
        self.show_message(message, "info" if test is not None else "good")

    @action("space", "sweep.mark", "mark", "Mark or unmark the test, or all tests of the folder",
            why_no_test, rank=20,
            watch_description="Mark or unmark the agent, or all agents of the group")  # fmt: skip
    def mark(self) -> None:
        run, zoom = self.grid.run_of_cursor(), self.view.options.zoom
        if zoom is Zoom.FOLDERS and run is not None:
            self.view.switch_marks(run.tests)
        elif self.grid.test is not None:
            self.view.switch_marks((self.grid.test,))
        is_row = zoom in (Zoom.FOLDERS, Zoom.ROWS)
        self.grid.move(1 if is_row else 0, 0 if is_row else 1)

    # View settings.

    @action("+ =", "sweep.zoom_in", "zoom", "Zoom in: folders, dots, chips, rows", arguments=(1,), rank=21)
    @action("-", "sweep.zoom_out", "", "Zoom out: rows, chips, dots, folders", arguments=(-1,))
    def zoom(self, step: int) -> None:
        self.view.change_zoom(step)
        self.room.remember_for_project(zoom=self.view.options.zoom.value)

    @action("b", "sweep.group", "group", "Group by file, state, result, cause, host, or not at all",
            arguments=("Group by", "group"), rank=22,
            watch_description="Group by project, host, type, state, a label, or not at all")  # fmt: skip
    @action("s", "sweep.sort", "sort", "Sort by file, state, need, duration, cost or name",
            arguments=("Sort by", "sort"), rank=23,
            watch_description=f"Sort by {', '.join(WATCH_SORTINGS[:-1])} or {WATCH_SORTINGS[-1]}")  # fmt: skip
    def choose_setting(self, title: str, setting: str) -> None:
        """Let the user choose how the tests are grouped or sorted."""

        labels = iter("123456789")
        entries = [
            Choosable(value, value, key=next(labels, "") if " " in value else CHOICE_KEYS.get(value, value[0]))
            for value in self._values_of(setting)
        ]
        change = partial(self._change_setting, setting)
        self.choose(title, entries, change, current=getattr(self.view.options, setting))

    def _values_of(self, setting: str) -> tuple[str, ...]:
        if not self.store.is_watch:
            return GROUPINGS if setting == "group" else SORTINGS
        return watch_groupings(self.store.state.tests()) if setting == "group" else WATCH_SORTINGS

    def _change_setting(self, setting: str, value: str) -> None:
        self.room.remember_for_project(**{setting: value})
        self.view.change(**{setting: value})

    @action("f", "sweep.states", "states", "Choose the states to show", rank=24)
    def choose_states(self) -> None:
        counts, shown = self.store.state.counts, self.view.options.pills
        entries = []
        for pill, marks in PILLS.items():
            mark, number = mark_of_pill(pill), sum(counts[name] for name in marks)
            name = f"{mark.glyph} {mark.word}"
            entries.append(Choosable(pill, name, f"{number:,}", role=mark.role, is_on=pill in shown))

        def change(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                self.view.change(pills=frozenset(chosen))

        self.room.push_screen(PickScreen("Show only (none: all)", entries, is_many=True), change)

    @action("!", "sweep.unsolved_only", "", "Show only error and unresolved; again: all")
    def switch_unsolved_only(self) -> None:
        self.view.switch_unsolved_only()

    @action("}", "sweep.next_group", "", "Go to the next group", arguments=(1,), is_listed=False)
    @action("{", "sweep.previous_group", "", "Go to the previous group", arguments=(-1,), is_listed=False)
    def move_group(self, step: int) -> None:
        self.grid.move_group(step)

    @action("v", "sweep.mark_range", "", "Mark a range from here to the cursor; again: end the range",
            why_no_test)  # fmt: skip
    def switch_range(self) -> None:
        if self.grid.test is not None:
            self.view.switch_range(self.grid.test)

    @action("*", "sweep.mark_all", "", "Mark all shown tests; again: none",
            watch_description="Mark all shown agents; again: none")  # fmt: skip
    def mark_shown(self) -> None:
        self.view.mark_shown()

    @action("p", "sweep.side", "", "Show or hide the panel about the test under the cursor",
            watch_description="Show or hide the panel about the agent under the cursor")  # fmt: skip
    def switch_side(self) -> None:
        self.room.remember(has_side=not self.side.is_wanted)
        self._leave_side()
        self.apply_change(VIEW_CHANGED)

    def _leave_side(self) -> bool:
        if self.focused is not self.side.lines:
            return False
        self.set_focus(self.grid)
        return True

    # Earlier moments and other sweeps.

    def why_not_earlier(self) -> str:
        return "" if self.store.live_state.started_at is not None else "nothing has happened yet"

    def why_not_later(self) -> str:
        return "" if self.store.past is not None else "this is the present: press [ to go back"

    @action("[", "sweep.earlier", "", "Go back one change in time; Esc returns to the present",
            why_not_earlier, (TimeTravel.step, -1), why_not_in_watch=NO_HISTORY)  # fmt: skip
    @action("]", "sweep.later", "", "Go forward one change, up to the present",
            why_not_later, (TimeTravel.step, 1), why_not_in_watch=NO_HISTORY)  # fmt: skip
    @action("(", "sweep.much_earlier", "", "Go back a twentieth of the duration; `:at 12:04` goes to a time",
            why_not_earlier, (TimeTravel.large_step, -1), why_not_in_watch=NO_HISTORY)  # fmt: skip
    @action(")", "sweep.much_later", "", "Go forward a twentieth",
            why_not_later, (TimeTravel.large_step, 1), why_not_in_watch=NO_HISTORY)  # fmt: skip
    def move_in_time(self, step: Callable[[TimeTravel, int], None], direction: int) -> None:
        step(self.room.time_travel, direction)

    def _other_sweeps(self) -> list[SweepFolder]:
        """Return the other sweeps of the project, newest first."""
        here = self.store.folder
        return [folder for folder in reversed(sweeps_in(here.root.parent)) if folder.name != here.name]

    @action("C", "sweep.compare", "", "Compare with another sweep: newly green, red and flaky tests",
            lambda screen: "" if screen.store.state.records else "the sweep has no tests yet",
            why_not_in_watch=OF_NO_SWEEP)  # fmt: skip
    def choose_comparison(self) -> None:
        """Let the user choose the other sweep. The previous one is first in the list."""
        here, others = self.store.folder.name, self._other_sweeps()
        if not others:
            self.show_message("this is the only sweep of its project", "warning")
            return
        others.sort(key=lambda folder: folder.name > here)
        entries = [Choosable(str(folder.root), plain(folder.name, 60)) for folder in others[:LISTED]]

        def compare(path: str) -> None:
            other = SweepFolder(Path(path))
            self.show_message(f"comparing with {plain(other.name, 60)} …")
            self.room.run_worker(self._compare(other), group="compare", exclusive=True)

        self.choose(f"Compare {plain(here, 60)} with", entries, compare)

    async def _compare(self, other: SweepFolder) -> None:
        here = self.store.folder
        before, after = (here, other) if here.name < other.name else (other, here)
        try:
            comparison = await asyncio.to_thread(_compared, before, after)
        except SwarmError as error:
            self.show_message(str(error), "error")
            return
        self.show_message("")
        self._show_comparison(comparison)

    def _show_comparison(self, comparison: SweepComparison) -> None:
        def go(test: str) -> None:
            if test in self.store.state.records:
                self.room.show_test(test)

        lines = comparison_lines(comparison)
        entries = [Choosable(line.test, line.text, role=line.role) for line in lines[:LISTED]]
        if len(lines) > LISTED:
            more = counted(len(lines) - LISTED, "line")
            entries.append(Choosable("", f"… {more} more: `swarm-tui compare` prints all"))
        title = f"{comparison.before.sweep} and {comparison.after.sweep}"
        self.choose(plain(title, 120), entries, go)

    # Actions on the whole sweep.

    def why_no_requests(self) -> str:
        return self.store.why_no_requests()

    @sweep_action("<", "sweep.fewer_slots", "", "One slot less: fewer agents at once",
                  lambda screen: screen.view.why_not_fewer_slots(), (-1,))  # fmt: skip
    @sweep_action(">", "sweep.more_slots", "", "One slot more: more agents at once", why_no_requests, (1,))
    def add_slots(self, number: int) -> None:
        send_request(self, RequestKind.SLOTS, slots=max(0, self.store.wanted_slots + number))

    @sweep_action("$", "sweep.budget", "", "Change the budget; launches stop when it is reached", why_no_requests)
    def choose_budget(self) -> None:
        state = self.store.state
        limits = suggested_limits(state.budget.total, state.spending.dollars)
        entries = [Choosable(str(limit), limit_text(limit), key=str(key)) for key, limit in enumerate(limits, 1)]
        entries.append(Choosable("0", "none", "for any other limit: :budget 40", key="n"))
        spent = cost_text(state, is_imputed=self.store.opened.spec.is_cost_imputed)

        def send(limit: str) -> None:
            send_request(self, RequestKind.BUDGET, dollars=float(limit))

        self.choose(f"Budget · {spent}" if spent else "Budget", entries, send)

    @sweep_action("", "sweep.hold_queue", "", "Hold the queue: launch no more tests",
                  lambda screen: screen.view.why_not_hold(), (RequestKind.HOLD,))  # fmt: skip
    @sweep_action("L", "sweep.release_queue", "", "Release the queue; continue after a lost login or a limit",
                  lambda screen: screen.view.why_not_release(), (RequestKind.RELEASE,))  # fmt: skip
    def request(self, kind: RequestKind) -> None:
        send_request(self, kind)

    @sweep_action("", "sweep.stop_sweep", "", "Stop the sweep: stop its engine and keep all pulled work",
                  why_no_requests)  # fmt: skip
    def stop_sweep(self) -> None:
        active = counted(self.store.state.active, "agent")
        question = f"Stop the sweep? {active} will be stopped. Pulled work is kept, and the sweep can be resumed."
        confirm = ConfirmScreen(question)
        self.room.push_screen(confirm, lambda is_yes: self.request(RequestKind.STOP_SWEEP) if is_yes else None)

    @sweep_action("R", "sweep.resume", "", "Resume the sweep: start an engine that continues it",
                  lambda screen: screen.view.why_not_resume())  # fmt: skip
    def resume(self) -> None:
        self.show_message(self.room.resume_sweep())


def _compared(before: SweepFolder, after: SweepFolder) -> SweepComparison:
    # Late: 170 ms, for git and pydantic.
    from swarm_tui.review.open import kept_fixes

    first, second = open_sweep(before).state, open_sweep(after).state
    kept_after = len(kept_fixes(after, second))
    return compare_sweeps((before.name, first), (after.name, second), kept_fixes(before, first), kept_after)
