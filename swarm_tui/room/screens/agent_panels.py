"""The panels of the agent screen: the transcript, the live screen, the tries and files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from swarm_tui.errors import SwarmError
from swarm_tui.journal.pulled_files import list_files
from swarm_tui.model.state import TestRecord
from swarm_tui.room.draw.agent import Row, draw_tries_and_files
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.widgets.captured_screen import CapturedScreenLines
from swarm_tui.room.widgets.lines import TextLines
from swarm_tui.room.widgets.transcript import TranscriptLines
from swarm_tui.transcripts.locate import find_transcript, substitute_transcript
from swarm_tui.transcripts.window import FileSource, MemorySource


class AgentTranscript:
    """The transcript of the agent that is shown: its file, or one made of its tries and its screen."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self.lines = TranscriptLines(id="transcript")
        self._source: Path | MemorySource | None = None

    @property
    def title(self) -> str:
        if self.lines.is_missing:
            return "Transcript · its file is not there"
        is_made_up = isinstance(self._source, MemorySource)
        return "Transcript · tries and screen, for it writes none" if is_made_up else "Transcript"

    def forget(self) -> None:
        """Forget the transcript: the next update is about another agent."""
        self._source = None

    def update(self, record: TestRecord, folder: Path | None) -> None:
        """Open the transcript when there is one, or another one than before."""
        agents = self._screen.room.agents
        sources = agents.kind_of(record).transcript_sources
        path = find_transcript(record.state_dir_here, folder, sources, record.agent_id)
        if path is not None:
            if path != self._source:
                self._source = path
                self.lines.open(FileSource(path))
            return
        content = substitute_transcript(record, agents.kept_screen(record) or "")
        if isinstance(self._source, MemorySource):
            if bytes(self._source.content) != content:
                self._source.replace(content)
                self.lines.read_new()
            return
        self._source = MemorySource(content)
        self.lines.open(self._source)


class AgentScreenPanel:
    """Captures the screen of one agent, one capture at a time; it never attaches, resizes or starts anything."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self.lines = CapturedScreenLines(id="peek")
        self._record: TestRecord | None = None
        self._is_capturing = False
        self._problem = ""

    def show_record(self, record: TestRecord) -> None:
        if self._record is None or record.test != self._record.test:
            self._problem = ""
            self.lines.show(None, "looking …")
        self._record = record

    def capture(self) -> None:
        if self._record is not None and not self._is_capturing:
            self._is_capturing = True
            self.lines.run_worker(self._capture(self._record), group="peek", name="capture the screen")

    async def _capture(self, record: TestRecord) -> None:
        screen, problem = None, ""
        try:
            screen = (await self._screen.room.agents.capture([record])).get(record.test)
        except SwarmError as error:
            problem = str(error)
        finally:
            self._is_capturing = False
        if self._record is None or self._record.test != record.test:
            return
        if problem != self._problem:
            self._problem = problem
            if problem:
                self._screen.store.note("warning", f"the screen cannot be looked at: {problem}", record.test)
        kept = self._screen.room.agents.kept_screen(record) if screen is None else None
        if screen is not None:
            self.lines.show(screen)
            self.lines.title("Screen", "live · i works in it · a attaches")
        elif kept is not None:
            self.lines.show(kept)
            self.lines.title("Screen", "as it was at its end")
        else:
            self.lines.show(None, problem or "it has no terminal" + ("" if record.launched_at else " yet"))
            self.lines.title("Screen", "")


class TriesPanel:
    """Shows tries and files; a long failure is folded until it is opened."""

    def __init__(self, open_file: Callable[[Path], None], open_commit: Callable[[str], None]) -> None:
        self.lines = TextLines(id="tries", has_cursor=True)
        self._open_file = open_file
        self._open_commit = open_commit
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
        elif row is not None and row.commit:
            self._open_commit(row.commit)
        elif row is not None and row.number is not None:
            self._unfolded ^= {row.number}
            return True
        return False
