"""The end of one agent's transcript in a few lines, for panels that show more than one thing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.transcripts.locate import find_transcript
from swarm_tui.transcripts.merged import MergedTail
from swarm_tui.transcripts.window import FileSource

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp

LINES_KEPT: Final = 40


class TranscriptEnd:
    """Follows the transcript of one test's agent at a time."""

    def __init__(self, room: RoomApp) -> None:
        self._room = room
        self._record: TestRecord | None = None
        self._tail: MergedTail | None = None
        self._path: Path | None = None

    @property
    def path(self) -> Path | None:
        """The file that is followed."""
        return self._path if self._tail is not None else None

    def lines_of(self, record: TestRecord | None) -> list[str]:
        """Return the last lines that an agent has written; none without a transcript on this machine."""
        if record is None:
            self.close()
            return []
        is_same = self._record is not None and self._record.agent_id == record.agent_id
        if self._tail is None or not is_same:
            self._open(record)
        if self._tail is None:
            return []
        self._tail.poll(time.monotonic())
        entries = [entry.entry for entry in self._tail.entries[-LINES_KEPT:]]
        words = [(entry.tool, line) for entry in entries for line in entry.text.split("\n") if line.strip()]
        return [plain(f"{tool}  {line}" if tool else line, 600) for tool, line in words[-LINES_KEPT:]]

    def _open(self, record: TestRecord) -> None:
        self.close()
        self._record = record
        try:
            folder, sources = (
                self._room.store.folder.agent(record.agent),
                self._room.agents.kind_of(record).transcript_sources,
            )
            path = find_transcript(record.state_dir, folder, sources, record.agent_id)
        except (ValueError, OSError):
            # An agent's name or folder that cannot be one: there is nothing to read.
            path = None
        self._path = path
        if path is not None:
            self._tail = MergedTail({record.test: FileSource(path)}, time.monotonic())

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()
        self._record = self._tail = None
