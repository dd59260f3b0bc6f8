"""What can be done in the grid of tests: mark, zoom, group, sort, filter by state."""

from __future__ import annotations

from functools import partial

from swarm_tui.room.actions import Action
from swarm_tui.room.draw.arrange import GROUPINGS, SORTINGS, WATCH_SORTINGS, Zoom, watch_groupings
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill
from swarm_tui.room.screens.dialog import Choosable, PickScreen
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.screens.tests_panel import TestsPanel

CHOICE_KEYS = {"state": "t", "name": "a", "type": "y"}
"""Of choices whose first letter is the key of another one."""
ZOOMS = (Zoom.FOLDERS, Zoom.DOTS, Zoom.CHIPS, Zoom.ROWS)
FAILED = frozenset({"failed", "unresolved"})


class GridCommands:
    """The actions on the grid's tests and options."""

    def __init__(self, screen: ScreenServices, panel: TestsPanel) -> None:
        self._screen = screen
        self._panel = panel

    def actions(self) -> tuple[Action, ...]:
        panel, grid = self._panel, self._panel.grid
        return (
            Action("sweep.mark", ("space",), "mark", "Mark or unmark the test, or all of the folder, under the cursor",
                   panel.mark_cursor, self.why_no_test, rank=20,
                   watch_description="Mark or unmark the agent, or all of the group, under the cursor"),
            Action("sweep.zoom_in", ("+", "="), "zoom", "Larger: folders, dots, chips, rows", partial(self.zoom, 1),
                   rank=21),
            Action("sweep.zoom_out", ("-",), "", "Smaller: rows, chips, dots, folders", partial(self.zoom, -1)),
            Action("sweep.group", ("b",), "group", "Group by file, state, result, cause, host, or not at all",
                   partial(self._choose, "Group by", "group"), rank=22,
                   watch_description="Group by project, host, type, state, a label, or not at all"),
            Action("sweep.sort", ("s",), "sort", "Sort by file, state, need, duration, cost or name",
                   partial(self._choose, "Sort by", "sort"), rank=23,
                   watch_description=f"Sort by {', '.join(WATCH_SORTINGS[:-1])} or {WATCH_SORTINGS[-1]}"),
            Action("sweep.states", ("f",), "states", "Show only the states you choose", self.choose_states, rank=24),
            Action("sweep.failed_only", ("!",), "", "Show only what failed or is unresolved; again: all",
                   self.switch_failed_only),
            Action("sweep.next_group", ("}",), "", "To the next group", partial(grid.move_group, 1), is_listed=False),
            Action("sweep.previous_group", ("{",), "", "To the previous group", partial(grid.move_group, -1),
                   is_listed=False),
            Action("sweep.mark_range", ("v",), "", "Mark a range, from here to where you move; again: end it",
                   panel.switch_range, self.why_no_test),
            Action("sweep.mark_all", ("*",), "", "Mark all tests that are shown; again: none", panel.mark_shown,
                   watch_description="Mark all agents that are shown; again: none"),
        )  # fmt: skip

    def why_no_test(self) -> str:
        return "" if self._panel.grid.test is not None else f"no {self._screen.store.noun} is under the cursor"

    def zoom(self, step: int) -> None:
        place = ZOOMS.index(self._panel.options.zoom) + step
        zoom = ZOOMS[max(0, min(len(ZOOMS) - 1, place))]
        self._screen.room.is_zoom_chosen = True
        self._screen.room.remember_for_project(zoom=zoom.value)
        self._panel.change_options(zoom=zoom)

    def _values(self, option: str) -> tuple[str, ...]:
        """Return what there is to choose from."""
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
        """Sort by what a column shows; once more, by file again."""
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
