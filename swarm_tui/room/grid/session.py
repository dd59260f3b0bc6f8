"""`SweepView`: the tests that the grid shows, their order, and the marks. Without Textual."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import State
from swarm_tui.model.text import plain
from swarm_tui.questions.inbox import attention_class
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill, word_of
from swarm_tui.room.grid.draw import by_folder
from swarm_tui.room.grid.draw_layout import CellRun, GridOptions, Layout, Zoom, arrange, largest_zoom, lay_out
from swarm_tui.room.store import VIEW_CHANGED, EngineState, Store, SweepChanged

STEPS_KEPT: Final = 200
REST_SECONDS: Final = 0.5
"""Seconds without a key or a change before the grid is reordered, so that tests do not move under the cursor."""
STALE_SECONDS: Final = 1.0
"""Maximum number of seconds that groups and order may be out of date."""
ZOOMS: Final = (Zoom.FOLDERS, Zoom.DOTS, Zoom.CHIPS, Zoom.ROWS)
UNSOLVED: Final = frozenset({"error", "unresolved"})


@dataclass(frozen=True, slots=True)
class Marks:
    """The marked tests and the history of marks."""

    tests: frozenset[str] = frozenset()
    _before: tuple[frozenset[str], ...] = ()
    _after: tuple[frozenset[str], ...] = ()

    def changed_to(self, tests: Iterable[str]) -> Marks:
        marked = frozenset(tests)
        if marked == self.tests:
            return self
        return Marks(marked, (*self._before, self.tests)[-STEPS_KEPT:])

    def undone(self) -> Marks:
        if not self._before:
            return self
        return Marks(self._before[-1], self._before[:-1], (self.tests, *self._after))

    def redone(self) -> Marks:
        if not self._after:
            return self
        return replace(self, tests=self._after[0], _before=(*self._before, self.tests), _after=self._after[1:])

    @property
    def can_undo(self) -> bool:
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        return bool(self._after)


class SweepView:
    """View settings, order and marks of the tests, shared by all screens of a room. Calls `changed` after a change."""

    def __init__(
        self,
        store: Store,
        options: GridOptions | None = None,
        *,
        is_zoom_chosen: bool = False,
        changed: Callable[[SweepChanged], None] = lambda change: None,
    ) -> None:
        self.store = store
        self.options = options or GridOptions()
        self.is_zoom_chosen = is_zoom_chosen
        """If False, the grid uses the largest zoom that shows all tests."""
        self.marks = Marks()
        self.order: list[str] = []
        """The tests in the grid."""
        self._changed = changed
        self._size = (0, 0)
        self._stale_since: float | None = None
        """The time since which tests may be in the wrong group or order."""
        self._arranged_at = 0.0
        self._arranged_for: tuple[object, ...] = ()
        self._arranged_tests = 0
        self._range_start: str | None = None
        self._marked_before_range: frozenset[str] = frozenset()
        self._closed: list[GridOptions] = []
        """View settings before each of the nested open folders was opened."""
        self._visited: set[tuple[str, float]] = set()
        """Tests visited with `w`, each with the start time of its state."""

    # View settings.

    def change(self, **changes: Any) -> None:
        """Change view settings."""
        self.options = replace(self.options, **changes)
        self._changed(VIEW_CHANGED)

    def show_all(self) -> None:
        self.change(words="", pills=frozenset(), only=None, only_name="")

    def show_only(self, tests: Iterable[str], name: str) -> None:
        self.change(only=frozenset(tests), only_name=name, words="", pills=frozenset())

    def change_zoom(self, step: int) -> None:
        self.is_zoom_chosen = True
        self.change(zoom=ZOOMS[max(0, min(len(ZOOMS) - 1, ZOOMS.index(self.options.zoom) + step))])

    def switch_unsolved_only(self) -> None:
        self.change(pills=frozenset() if self.options.pills == UNSOLVED else UNSOLVED)

    def open_folder(self, run: CellRun | None) -> bool:
        """Show only the tests of a folder, as large as possible. Return False if folders are not shown."""
        if self.options.zoom is not Zoom.FOLDERS or run is None:
            return False
        self._closed.append(self.options)
        inner = replace(self.options, only=frozenset(run.tests), only_name=run.label)
        groups = arrange(self.store.state.records, inner, self.store.clock())
        self.change(only=inner.only, only_name=run.label, zoom=largest_zoom(groups, *self._size))
        return True

    def close_innermost(self) -> bool:
        """End the range, unmark all tests, close the folder or clear the filter. Return whether there was one."""
        if self.end_range():
            return True
        if self.marks.tests:
            self.mark(())
        elif self._closed and self.options.only is not None:
            self.options = self._closed.pop()
            self._changed(VIEW_CHANGED)
        elif self.options.is_filtering:
            self._closed.clear()
            self.show_all()
        else:
            self._closed.clear()
            return False
        return True

    # Order.

    @property
    def is_arranged(self) -> bool:
        """Whether the tests have been laid out. Before that, keys would find no test."""
        return bool(self._arranged_for)

    def update(self, change: SweepChanged, width: int, height: int, key_at: float) -> Layout | None:
        """Return the new layout for a grid of this size if tests may have moved, otherwise None.

        `key_at` is the time of the last key.
        """
        self._size, records, now = (width, max(1, height)), self.store.state.records, self.store.live_clock()
        is_other = self._shape() != self._arranged_for or len(records) != self._arranged_tests
        if not (change.is_everything or is_other):
            if change.tests and self.options.moves_by_state and self._stale_since is None:
                self._stale_since = now
            is_quiet = now - self._arranged_at > REST_SECONDS and now - key_at > REST_SECONDS
            if self._stale_since is None or not (is_quiet or now - self._stale_since > STALE_SECONDS):
                return None
        layout = self._arrange()
        self._arranged_for, self._arranged_at, self._arranged_tests = self._shape(), now, len(records)
        self._stale_since = None
        return layout

    def _shape(self) -> tuple[object, ...]:
        width, height = self._size
        return self.options, width, height if self.options.zoom is Zoom.DOTS or not self.is_zoom_chosen else 0

    def _arrange(self) -> Layout:
        width, height = self._size
        groups = arrange(self.store.state.records, self.options, self.store.clock())
        if not self.is_zoom_chosen and not self.options.is_filtering:
            # A filter does not change the zoom, because the zoom would change while the user types.
            self.options = replace(self.options, zoom=largest_zoom(groups, width, height))
        if self.options.zoom is Zoom.FOLDERS and self.options.group == "file":
            groups = by_folder(groups, height)
        layout = lay_out(groups, self.options.zoom, width, height)
        self.order = layout.order()
        return layout

    def title(self) -> str:
        """Return the number of tests and the view settings."""
        options, marked = self.options, len(self.marks.tests)
        title = f"{self.store.noun.capitalize()}s {len(self.store.state.records):,}"
        if options.is_filtering:
            title += f" · {len(self.order):,} match"
            title += f" /{options.words}" if options.words else ""
            title += "".join(f" {mark_of_pill(pill).word}" for pill in PILLS if pill in options.pills)
            title += f" {options.only_name}" if options.only is not None else ""
        if options.group not in ("file", "none", "project"):
            title += f" · by {options.group}"
        if options.sort != "file":
            title += f" · sorted by {options.sort}"
        title += f" · {marked:,} marked" if marked else ""
        return title + (" · range" if self._range_start is not None else "")

    # Tests that need the user.

    def next_needing_user(self) -> tuple[str | None, str]:
        """Return the next test that needs the user, and a message about it. The longest unvisited one comes first."""
        found = self.store.insights.tests_needing_person()
        walk = in_walking_order(found, self.order)
        if not walk:
            hidden = f" here; {len(found)} hidden by the filter {'does' if len(found) == 1 else 'do'}" if found else ""
            return None, f"no {self.store.noun} needs you{hidden}"
        ahead = [record for record in walk if (record.test, record.since) not in self._visited]
        if not ahead:
            self._visited.clear()
        target = (ahead or walk)[0]
        self._visited.add((target.test, target.since))
        total = counted(len(walk), self.store.noun)
        place = f"{walk.index(target) + 1} of {total} that {'needs' if len(walk) == 1 else 'need'} you"
        return target.test, f"{_reason_of(target)} · {place}"

    # Marks.

    def change_marks(self, marks: Marks) -> None:
        changed = self.marks.tests ^ marks.tests
        self.marks = marks
        self._changed(SweepChanged(tests=changed))

    def mark(self, tests: Iterable[str]) -> None:
        self.change_marks(self.marks.changed_to(tests))

    def switch_marks(self, tests: Collection[str]) -> None:
        """Mark these tests. If all are marked, unmark them."""
        chosen, marked = frozenset(tests), self.marks.tests
        self.mark(marked - chosen if chosen <= marked else marked | chosen)

    def mark_shown(self) -> None:
        """Mark all shown tests. If all are marked, unmark every test."""
        shown, marked = frozenset(self.order), self.marks.tests
        self.mark(frozenset() if shown <= marked else marked | shown)

    def marked_or(self, test: str | None) -> tuple[str, ...]:
        """Return the shown marked tests. If there are none, return this test."""
        marked = tuple(each for each in self.order if each in self.marks.tests) if self.marks.tests else ()
        return marked or ((test,) if test is not None else ())

    def switch_range(self, test: str) -> None:
        """Start to mark a range at a test, or end it."""
        if not self.end_range():
            self._range_start, self._marked_before_range = test, self.marks.tests
            self.mark(self._marked_before_range | {test})

    def end_range(self) -> bool:
        """Return whether a range was closed."""
        has_range, self._range_start = self._range_start is not None, None
        if has_range:
            self._changed(VIEW_CHANGED)
        return has_range

    def extend_range(self, test: str | None) -> None:
        """Mark the tests from the start of the range to this test."""
        if self._range_start is not None and {self._range_start, test} <= set(self.order):
            first, last = sorted((self.order.index(self._range_start), self.order.index(test or "")))
            self.mark(self._marked_before_range | set(self.order[first : last + 1]))

    # The whole sweep.

    def why_not_fewer_slots(self) -> str:
        reason = self.store.why_no_requests()
        return reason or ("" if self.store.wanted_slots > 0 else "the number of slots is already 0")

    def why_not_hold(self) -> str:
        return self.store.why_no_requests() or ("the queue is already held" if self.store.state.is_held else "")

    def why_not_release(self) -> str:
        is_holding = self.store.state.is_held or self.store.state.access.is_holding(self.store.clock())
        return self.store.why_no_requests() or ("" if is_holding else "the queue is not held")

    def why_not_resume(self) -> str:
        return "its engine is running" if self.store.engine is EngineState.RUNNING else ""


def in_walking_order(records: Iterable[TestRecord], order: Iterable[str]) -> list[TestRecord]:
    """Return the shown tests: those that wait for an answer first, then in the order of the grid."""
    ranks = {test: rank for rank, test in enumerate(order)}
    shown = [record for record in records if record.test in ranks]
    return sorted(shown, key=lambda record: (attention_class(record), ranks[record.test]))


def _reason_of(record: TestRecord) -> str:
    """Return why a test needs the user, with the key to press if there is one."""
    if record.state is State.WAITING:
        return "waits for your answer: press m"
    return f"stuck: {plain(record.stuck, 200)}" if record.stuck else word_of(record)
