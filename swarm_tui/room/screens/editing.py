"""Opens the file of a test in the person's editor, at its line; the room waits behind it."""

from __future__ import annotations

import os
from pathlib import Path

from swarm_tui.errors import SwarmError
from swarm_tui.room.actions import Action
from swarm_tui.room.screens.services import ScreenServices


class Editing:
    """What leads from a screen to the editor."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("room.edit", ("o",), "", "Open the test in your editor, at its line", self.open_test, self.why_not),
        )

    def why_not(self) -> str:
        record = self._screen.current_record()
        if record is None:
            return "no test is under the cursor"
        path = self.path_of(record.file)
        return "" if path and os.path.isfile(path) else f"{record.file or record.test} is not on this machine"

    def path_of(self, file: str) -> str:
        """Return where a test's file lies in the repository of the sweep; empty where that is unknown."""
        repository = self._screen.store.opened.spec.repository
        return os.path.join(repository, file) if repository and file else ""

    def open_test(self) -> None:
        record = self._screen.current_record()
        if record is not None:
            self.open_file(self.path_of(record.file), record.line)

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
