"""The panel with the tries of a test, its agent's report, and the files that were pulled from the agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from swarm_tui.journal.pulled_files import list_files
from swarm_tui.model.state import TestRecord
from swarm_tui.room.draw.tries import Row, draw_tries_and_files
from swarm_tui.room.widgets.lines import TextLines


class TriesPanel:
    """Shows tries and files; a long failure is folded until it is opened."""

    def __init__(self, open_file: Callable[[Path], None]) -> None:
        self.lines = TextLines(id="tries", has_cursor=True)
        self._open_file = open_file
        self._rows: list[Row] = []
        self._unfolded: frozenset[int] = frozenset()

    def forget(self) -> None:
        """Fold everything: the next update is about another test."""
        self._unfolded = frozenset()

    def update(self, record: TestRecord, folder: Path | None) -> None:
        files = [file for file in list_files(folder) if not file.is_hidden] if folder is not None else []
        width = max(20, self.lines.size.width or 76)
        self._rows = draw_tries_and_files(record, files, self._unfolded, width)
        self.lines.show([row.line for row in self._rows])

    def open_row(self) -> bool:
        """Open the file under the cursor, or unfold the try; True when the panel is to be updated."""
        row = self._rows[self.lines.cursor] if self.lines.cursor < len(self._rows) else None
        if row is not None and row.file is not None:
            self._open_file(row.file)
        elif row is not None and row.number is not None:
            self._unfolded ^= {row.number}
            return True
        return False
