"""Compares the sweep with another one of its project: a list of sweeps, then what is different in the later one."""

from __future__ import annotations

import asyncio
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.insight.compare import compare_sweeps, comparison_lines
from swarm_tui.journal.folder import SweepFolder, sweeps_in
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.comparison import Comparison
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.room.actions import OF_NO_SWEEP, Action
from swarm_tui.room.screens.dialog import Choosable, PickScreen
from swarm_tui.room.screens.services import ScreenServices

LISTED: Final = 500
"""So many sweeps or lines are listed; `swarm-tui compare` prints all."""


class Comparing:
    """The action that compares two sweeps."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("sweep.compare", ("C",), "", "Compare with another sweep: what became green, red, flaky",
                   self.choose, self.why_not, why_not_in_watch=OF_NO_SWEEP),
        )  # fmt: skip

    def _others(self) -> list[SweepFolder]:
        """Return the other sweeps of the project, the newest first."""
        here = self._screen.store.folder
        return [folder for folder in reversed(sweeps_in(here.root.parent)) if folder.name != here.name]

    def why_not(self) -> str:
        return "" if self._screen.store.state.records else "the sweep has no tests yet"

    def choose(self) -> None:
        """Let the person choose the other sweep; the one before this comes first."""
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

    def _show(self, comparison: Comparison) -> None:
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


def _compared(before: SweepFolder, after: SweepFolder) -> Comparison:
    from swarm_tui.triage.kept import kept_fixes

    first, second = open_sweep(before).state, open_sweep(after).state
    kept_after = len(kept_fixes(after, second))
    return compare_sweeps((before.name, first), (after.name, second), kept_fixes(before, first), kept_after)
