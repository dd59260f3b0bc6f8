"""Opens the file of a test, or a place that its agent names, in the person's editor; the room waits behind it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from swarm_tui.errors import SwarmError
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.actions import Action
from swarm_tui.room.screens.dialog import Choosable, PickScreen
from swarm_tui.room.screens.services import ScreenServices

PLACES_OFFERED = 9


class FilePlace(NamedTuple):
    """A place that can be opened."""

    path: str
    line: int
    about: str
    """Why one might want to see it."""


class Editing:
    """What leads from a screen to the editor."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("room.edit", ("o",), "", "Open the test in your editor, or a place that its agent names",
                   self.open_test, self.why_not,
                   watch_description="Open a place that the agent names in your editor"),
        )  # fmt: skip

    def why_not(self) -> str:
        record = self._screen.current_record()
        if record is None:
            return f"no {self._screen.store.noun} is under the cursor"
        return "" if self._places_of(record) else f"{record.file or record.test} is not on this machine"

    def path_of(self, file: str) -> str:
        """Return where a test's file lies in the repository of the sweep; empty where that is unknown."""
        repository = self._screen.store.opened.spec.repository
        return os.path.join(repository, file) if repository and file else ""

    def _places_of(self, record: TestRecord) -> list[FilePlace]:
        """Return what can be opened: the test, then the places that its agent names."""
        from swarm_tui.adapters.git.names import is_inside

        places = [FilePlace(self.path_of(record.file), record.line, "the test")]
        for found in record.harvest.escalations:
            about = f"{found.title} ({found.kind_in_words})"
            places += [
                FilePlace(self.path_of(each.path), each.line or 0, about)
                for each in found.locations
                if is_inside(each.path)
            ]
        unique: dict[tuple[str, int], FilePlace] = {}
        for place in places:
            unique.setdefault((place.path, place.line), place)
        return [place for place in unique.values() if os.path.isfile(place.path)][:PLACES_OFFERED]

    def open_test(self) -> None:
        """Open the one file that there is to open, or let the person choose."""
        record = self._screen.current_record()
        places = self._places_of(record) if record is not None else []
        if len(places) == 1:
            self.open_file(places[0].path, places[0].line)
            return
        top = self._screen.store.opened.spec.repository
        shown = [f"{os.path.relpath(place.path, top)}:{place.line}".removesuffix(":0") for place in places]
        entries = [
            Choosable(str(number), plain(name, 200), plain(place.about, 200), key=str(number))
            for number, (name, place) in enumerate(zip(shown, places, strict=True), 1)
        ]

        def choose(chosen: tuple[str, ...] | None) -> None:
            if chosen:
                place = places[int(chosen[0]) - 1]
                self.open_file(place.path, place.line)

        self._screen.room.push_screen(PickScreen("Open in your editor", entries), choose)

    def open_file(self, path: str, line: int) -> None:
        """Open a file by its absolute path, which no editor takes for an option."""
        from swarm_tui.adapters.foreground import editor_command
        from swarm_tui.room.screens.external_view import run_in_terminal

        if not os.path.isfile(path):
            self._screen.show_message(f"{path} is not on this machine", "warning")
            return
        words = (*editor_command(), *((f"+{line}",) if line else ()), os.path.abspath(path))
        try:
            problem = run_in_terminal(self._screen.room, words, Path(path).parent)
        except SwarmError as error:
            problem = str(error)
        if problem:
            self._screen.show_message(problem, "error")
