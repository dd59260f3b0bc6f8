"""Screen 1: layout and actions."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
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
from swarm_tui.model.results import State
from swarm_tui.model.text import plain
from swarm_tui.questions.inbox import attention_class
from swarm_tui.room.actions import OF_NO_SWEEP, Action, ScreenServices, screen_entry
from swarm_tui.room.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.draw.frame import LOW, draw_first_lines, draw_next
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill, word_of
from swarm_tui.room.draw.patterns import draw_strip
from swarm_tui.room.draw.spans import Line, Span
from swarm_tui.room.draw.transcript import draw_progress
from swarm_tui.room.engine_requests import BudgetCommands, EngineRequests
from swarm_tui.room.grid.draw_layout import GROUPINGS, SORTINGS, WATCH_SORTINGS, Zoom, watch_groupings
from swarm_tui.room.grid.panel import TestsPanel
from swarm_tui.room.grid.side import SidePanel
from swarm_tui.room.grid.widget import TestGrid
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import NO_AGENTS, VIEW_CHANGED, EngineState, SweepChanged
from swarm_tui.room.time_travel import TimeCommands
from swarm_tui.room.view import next_facts
from swarm_tui.room.widgets.border import PanelBorder
from swarm_tui.room.widgets.lines import Band, Lines


class AttentionWalk:
    """Visits the tests that need the user. A test that starts to wait for an answer is visited next."""

    def __init__(self, screen: ScreenServices, grid: TestGrid) -> None:
        self._screen = screen
        self._grid = grid
        self._visited: set[tuple[str, float]] = set()
        """Visited tests, each with the start time of its state."""

    def go_to_next(self) -> None:
        """Move the cursor to the next test that needs the user."""
        store = self._screen.store
        found = store.insights.tests_needing_person()
        walk = in_walking_order(found, self._grid.rank_of)
        if not walk:
            hidden = f" here; {len(found)} hidden by the filter {'does' if len(found) == 1 else 'do'}" if found else ""
            self._screen.show_message(f"no {self._screen.store.noun} needs you{hidden}", "good")
            return
        ahead = [record for record in walk if (record.test, record.since) not in self._visited]
        if not ahead:
            self._visited.clear()
        target = (ahead or walk)[0]
        self._visited.add((target.test, target.since))
        self._grid.go_to(target.test)
        total = counted(len(walk), self._screen.store.noun)
        place = f"{walk.index(target) + 1} of {total} that {'needs' if len(walk) == 1 else 'need'} you"
        self._screen.show_message(f"{reason_of(target)} · {place}")


def in_walking_order(records: Iterable[TestRecord], rank_of: Callable[[str], int | None]) -> list[TestRecord]:
    """Return the tests in the grid: those that wait for an answer first, then in the order of the grid."""
    shown = [(rank, record) for record in records if (rank := rank_of(record.test)) is not None]
    shown.sort(key=lambda entry: (attention_class(entry[1]), entry[0]))
    return [record for _, record in shown]


def reason_of(record: TestRecord) -> str:
    """Return why a test needs the user, with the key to press if there is one."""
    if record.state is State.WAITING:
        return "waits for your answer: press m"
    if record.stuck:
        return f"stuck: {plain(record.stuck, 200)}"
    return word_of(record)


LISTED: Final = 500
"""Maximum number of sweeps or lines in a list; `swarm-tui compare` prints all."""


class Comparing:
    """The action that compares two sweeps."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("sweep.compare", ("C",), "", "Compare with another sweep: newly green, red and flaky tests",
                   self.choose, self.why_not, why_not_in_watch=OF_NO_SWEEP),
        )  # fmt: skip

    def _others(self) -> list[SweepFolder]:
        """Return the other sweeps of the project, newest first."""
        here = self._screen.store.folder
        return [folder for folder in reversed(sweeps_in(here.root.parent)) if folder.name != here.name]

    def why_not(self) -> str:
        return "" if self._screen.store.state.records else "the sweep has no tests yet"

    def choose(self) -> None:
        """Let the user choose the other sweep. The previous one is first in the list."""
        here, others = self._screen.store.folder.name, self._others()
        if not others:
            self._screen.show_message("this is the only sweep of its project", "warning")
            return
        others.sort(key=lambda folder: folder.name > here)
        entries = [Choosable(str(folder.root), plain(folder.name, 60)) for folder in others[:LISTED]]

        def compare(values: tuple[str, ...] | None) -> None:
            for folder in others:
                if values == (str(folder.root),):
                    self._screen.show_message(f"comparing with {plain(folder.name, 60)} …")
                    self._screen.room.run_worker(self._compare(folder), group="compare", exclusive=True)

        self._screen.room.push_screen(PickScreen(f"Compare {plain(here, 60)} with", entries), compare)

    async def _compare(self, other: SweepFolder) -> None:
        here = self._screen.store.folder
        before, after = (here, other) if here.name < other.name else (other, here)
        try:
            comparison = await asyncio.to_thread(_compared, before, after)
        except SwarmError as error:
            self._screen.show_message(str(error), "error")
            return
        self._screen.show_message("")
        self._show(comparison)

    def _show(self, comparison: SweepComparison) -> None:
        lines = comparison_lines(comparison)
        entries = [Choosable(line.test, line.text, role=line.role) for line in lines[:LISTED]]
        if len(lines) > LISTED:
            more = counted(len(lines) - LISTED, "line")
            entries.append(Choosable("", f"… {more} more: `swarm-tui compare` prints all"))
        title = f"{comparison.before.sweep} and {comparison.after.sweep}"
        self._screen.room.push_screen(PickScreen(plain(title, 120), entries), self._go)

    def _go(self, values: tuple[str, ...] | None) -> None:
        if values and values[0] in self._screen.store.state.records:
            self._screen.room.show_test(values[0])


def _compared(before: SweepFolder, after: SweepFolder) -> SweepComparison:
    from swarm_tui.review.kept import kept_fixes

    first, second = open_sweep(before).state, open_sweep(after).state
    kept_after = len(kept_fixes(after, second))
    return compare_sweeps((before.name, first), (after.name, second), kept_fixes(before, first), kept_after)


CHOICE_KEYS = {"state": "t", "name": "a", "type": "y"}
"""Keys of choices whose first letter is the key of another choice."""
ZOOMS = (Zoom.FOLDERS, Zoom.DOTS, Zoom.CHIPS, Zoom.ROWS)
FAILED = frozenset({"failed", "unresolved"})


class GridCommands:
    """Actions on the tests and the view settings of the grid."""

    def __init__(self, screen: ScreenServices, panel: TestsPanel) -> None:
        self._screen = screen
        self._panel = panel

    def actions(self) -> tuple[Action, ...]:
        panel, grid = self._panel, self._panel.grid
        return (
            Action("sweep.mark", ("space",), "mark", "Mark or unmark the test, or all tests of the folder",
                   panel.mark_cursor, self.why_no_test, rank=20,
                   watch_description="Mark or unmark the agent, or all agents of the group"),
            Action("sweep.zoom_in", ("+", "="), "zoom", "Zoom in: folders, dots, chips, rows", partial(self.zoom, 1),
                   rank=21),
            Action("sweep.zoom_out", ("-",), "", "Zoom out: rows, chips, dots, folders", partial(self.zoom, -1)),
            Action("sweep.group", ("b",), "group", "Group by file, state, result, cause, host, or not at all",
                   partial(self._choose, "Group by", "group"), rank=22,
                   watch_description="Group by project, host, type, state, a label, or not at all"),
            Action("sweep.sort", ("s",), "sort", "Sort by file, state, need, duration, cost or name",
                   partial(self._choose, "Sort by", "sort"), rank=23,
                   watch_description=f"Sort by {', '.join(WATCH_SORTINGS[:-1])} or {WATCH_SORTINGS[-1]}"),
            Action("sweep.states", ("f",), "states", "Choose the states to show", self.choose_states, rank=24),
            Action("sweep.failed_only", ("!",), "", "Show only failed and unresolved ones; again: all",
                   self.switch_failed_only),
            Action("sweep.next_group", ("}",), "", "Go to the next group", partial(grid.move_group, 1),
                   is_listed=False),
            Action("sweep.previous_group", ("{",), "", "Go to the previous group", partial(grid.move_group, -1),
                   is_listed=False),
            Action("sweep.mark_range", ("v",), "", "Mark a range from here to the cursor; again: end the range",
                   panel.switch_range, self.why_no_test),
            Action("sweep.mark_all", ("*",), "", "Mark all shown tests; again: none", panel.mark_shown,
                   watch_description="Mark all shown agents; again: none"),
        )  # fmt: skip

    def why_no_test(self) -> str:
        return "" if self._panel.grid.test is not None else f"no {self._screen.store.noun} under the cursor"

    def zoom(self, step: int) -> None:
        place = ZOOMS.index(self._panel.options.zoom) + step
        zoom = ZOOMS[max(0, min(len(ZOOMS) - 1, place))]
        self._screen.room.is_zoom_chosen = True
        self._screen.room.remember_for_project(zoom=zoom.value)
        self._panel.change_options(zoom=zoom)

    def _values(self, option: str) -> tuple[str, ...]:
        """Return the values to choose from."""
        store = self._screen.store
        if not store.is_watch:
            return GROUPINGS if option == "group" else SORTINGS
        return watch_groupings(store.state.tests()) if option == "group" else WATCH_SORTINGS

    def _choose(self, title: str, option: str) -> None:
        def change(chosen: tuple[str, ...] | None) -> None:
            if chosen:
                self._screen.room.remember_for_project(**{option: chosen[0]})
                self._panel.change_options(**{option: chosen[0]})

        labels = iter("123456789")
        entries = [
            Choosable(value, value, key=next(labels, "") if " " in value else CHOICE_KEYS.get(value, value[0]))
            for value in self._values(option)
        ]
        current = getattr(self._panel.options, option)
        self._screen.room.push_screen(PickScreen(title, entries, current=current), change)

    def sort_by(self, sort: str) -> None:
        """Sort by a column. The second time, sort by file again."""
        sort = "file" if sort == self._panel.options.sort else sort
        self._screen.room.remember_for_project(sort=sort)
        self._panel.change_options(sort=sort)

    def choose_states(self) -> None:
        counts, shown = self._screen.store.state.counts, self._panel.options.pills
        entries = []
        for pill, marks in PILLS.items():
            mark = mark_of_pill(pill)
            number = sum(counts[name] for name in marks)
            name = f"{mark.glyph} {mark.word}"
            entries.append(Choosable(pill, name, f"{number:,}", role=mark.role, is_on=pill in shown))

        def change(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                self._panel.change_options(pills=frozenset(chosen))

        self._screen.room.push_screen(PickScreen("Show only (none: all)", entries, is_many=True), change)

    def switch_failed_only(self) -> None:
        self._panel.change_options(pills=frozenset() if self._panel.options.pills == FAILED else FAILED)


class SweepCommands:
    """Actions on the whole sweep."""

    def __init__(self, screen: ScreenServices, requests: EngineRequests) -> None:
        self._screen = screen
        self._requests = requests

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("sweep.fewer_slots", ("<",), "", "One slot less: fewer agents at once", partial(self._add_slots, -1),
                   self.why_not_fewer_slots, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            Action("sweep.more_slots", (">",), "", "One slot more: more agents at once", partial(self._add_slots, 1),
                   self._why_no_engine, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            *BudgetCommands(self._screen, self._requests).actions(),
            Action("sweep.hold_queue", (), "", "Hold the queue: launch no more tests",
                   partial(self._requests.send, RequestKind.HOLD), self.why_not_hold, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            Action("sweep.release_queue", ("L",), "", "Release the queue; continue after a lost login or a limit",
                   partial(self._requests.send, RequestKind.RELEASE), self.why_not_release, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            Action("sweep.stop_sweep", (), "", "Stop the sweep: stop its engine and keep all pulled work", self.stop,
                   self._why_no_engine, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
            Action("sweep.resume", ("R",), "", "Resume the sweep: start an engine that continues it", self.resume,
                   self.why_not_resume, is_of_now=True,
                   why_not_in_watch=OF_NO_SWEEP),
        )  # fmt: skip

    def _why_no_engine(self) -> str:
        return self._screen.store.why_no_requests()

    def _add_slots(self, number: int) -> None:
        slots = max(0, self._screen.store.wanted_slots + number)
        self._requests.send(RequestKind.SLOTS, slots=slots)

    def why_not_fewer_slots(self) -> str:
        return self._why_no_engine() or (
            "" if self._screen.store.wanted_slots > 0 else "the number of slots is already 0"
        )

    def why_not_hold(self) -> str:
        return self._why_no_engine() or ("the queue is already held" if self._screen.store.state.is_held else "")

    def why_not_release(self) -> str:
        store = self._screen.store
        is_holding = store.state.is_held or store.state.access.is_holding(store.clock())
        return self._why_no_engine() or ("" if is_holding else "the queue is not held")

    def stop(self) -> None:
        def send(is_yes: bool | None) -> None:
            if is_yes:
                self._requests.send(RequestKind.STOP_SWEEP)

        active = counted(self._screen.store.state.active, "agent")
        question = f"Stop the sweep? {active} will be stopped. Pulled work is kept, and the sweep can be resumed."
        self._screen.room.push_screen(ConfirmScreen(question), send)

    def why_not_resume(self) -> str:
        return "its engine is running" if self._screen.store.engine is EngineState.RUNNING else ""

    def resume(self) -> None:
        self._screen.show_message(self._screen.room.resume_sweep())


LINES_FOR_ALL = 30
"""From this height the next steps and the patterns have a line each."""
SIDE_AFTER_MOVE = 0.02
"""Seconds. The cursor is drawn first. The panel about its test follows when the cursor rests for this time."""
CAPTURE_SECONDS = 1.0
PRELOAD_AFTER = 0.3


class GridScreen(RoomScreen):
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
        """The introduction at the first start, next steps, and patterns."""
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
            Action("sweep.open", ("enter",), "open", "Open the test or folder under the cursor", self.open_test,
                   self.grid_commands.why_no_test, is_listed=False, rank=0,
                   watch_description="Open the agent or group under the cursor"),
            Action("sweep.act", ("x",), "act", "Stop, retry, hold or release the marked tests, or this one",
                   self.requests.choose, self.requests.why_no_tests, rank=15, is_of_now=True,
                   watch_description="Stop the marked agents, or this one"),
            Action("sweep.wanted", ("w",), "needs you", "Go to the next one that needs you: waiting, blocked, others",
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
        return not self.tests.is_arranged or (not self.store.state.records and super().is_loading)

    def show_change(self, change: SweepChanged) -> None:
        if not self.grid.size:
            # The grid exists only after the first layout.
            return
        self.tests.show_change(change)
        self.set_class(not self.side.is_wanted, "-alone")
        self.side.show(self.store.record(self.grid.test))
        self.below.show(self._lines_below())
        self.tests.draw_title()

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

    # For the base class.

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
