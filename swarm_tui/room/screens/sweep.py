"""Screen 1, home: every test of the sweep in one grid, the test under the cursor beside it, patterns below."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from swarm_tui.insight.attention import is_stuck, urgency_of
from swarm_tui.model.formatting import counted
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.room.draw.arrange import GROUPINGS, SORTINGS, Zoom
from swarm_tui.room.draw.glyphs import PILLS, pill_look, word_of
from swarm_tui.room.screens.base import NOTHING
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.screens.engine_requests import ask_about, ask_engine
from swarm_tui.room.screens.sweep_view import SweepView
from swarm_tui.room.store import EngineState
from swarm_tui.room.widgets.lines import Lines

PICK_KEYS = {"state": "t", "name": "a"}
ZOOMS = (Zoom.DOTS, Zoom.CHIPS, Zoom.ROWS)


class SweepScreen(SweepView):
    """The walk through the tests, and the sweep as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self._visited: set[tuple[str, float]] = set()
        """Where `w` has led already, and since when those were as they were found."""

    # Filter.

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.choice.words

    def set_filter(self, words: str) -> None:
        self.choose(words=words)

    # Actions.

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.do_open()

    def why_not_open(self) -> str:
        if self.grid.test is None:
            return "no test is under the cursor"
        return ""

    def do_open(self) -> None:
        self.room.open_screen("agent")

    def why_not_act(self) -> str:
        return "" if self.current_tests() else "no test is marked or under the cursor"

    def do_act(self) -> None:
        ask_about(self, self.current_tests())

    def do_wanted(self) -> None:
        """Go to the next that wants a person; one that begins to wait meanwhile comes before those still ahead."""
        every = self.store.ledger.wanting(self.now())
        walk = walk_of(every, self.grid.rank_of, self.now())
        if not walk:
            hidden = f" here; {len(every)} outside this filter {'does' if len(every) == 1 else 'do'}" if every else ""
            self.say(f"nobody wants you{hidden}", "good")
            return
        ahead = [record for record in walk if (record.test, record.since) not in self._visited]
        if not ahead:
            self._visited.clear()
        there = (ahead or walk)[0]
        self._visited.add((there.test, there.since))
        self.grid.go_to(there.test)
        self.say(
            f"{tell_want(there, self.now())} · {walk.index(there) + 1} of {counted(len(walk), 'test')} that want you"
        )

    def why_not_mark(self) -> str:
        return self.why_not_open()

    def do_mark(self) -> None:
        if self.grid.test is not None:
            self.mark(self.room.marks.tests ^ {self.grid.test})
            self.grid.move(0, 1) if self.choice.zoom is not Zoom.ROWS else self.grid.move(1)

    def why_not_mark_range(self) -> str:
        return self.why_not_open()

    def do_mark_range(self) -> None:
        if self._range_from is None:
            self._range_from = self.grid.test
            self._marked_before_range = self.room.marks.tests
            self.mark(self._marked_before_range | {self.grid.test or ""})
        else:
            self._range_from = None
            self.draw_title()

    def do_mark_all(self) -> None:
        shown = frozenset(self.grid.order())
        self.mark(frozenset() if shown <= self.room.marks.tests else self.room.marks.tests | shown)

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
            self.draw_title()
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


def walk_of(wanting: Iterable[TestRecord], rank_of: Callable[[str], int | None], now: float) -> list[TestRecord]:
    """Return those that are shown in the order in which `w` walks them: who waits for an answer first."""
    shown = [(rank, record) for record in wanting if (rank := rank_of(record.test)) is not None]
    shown.sort(key=lambda found: (urgency_of(found[1], now), found[0]))
    return [record for _, record in shown]


def tell_want(record: TestRecord, now: float) -> str:
    """Say why a test wants a person, and what to do where one key does it."""
    if record.state is State.WAITING:
        return "waits for your answer: m writes it"
    if is_stuck(record, now):
        return "nothing was heard of it for long"
    return word_of(record)
