"""Opens the transcript of an agent: its file, or one made of its tries and its screen."""

from __future__ import annotations

from pathlib import Path

from swarm_tui.model.state import TestRecord
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.widgets.transcript import TranscriptLines
from swarm_tui.transcripts.locate import find_transcript, substitute_transcript
from swarm_tui.transcripts.window import FileSource, MemorySource


class AgentTranscript:
    """The transcript of the agent that is shown."""

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
        self.lines.set_live(not record.is_finished)
        path = find_transcript(record.state_dir, folder, agents.kind.transcript_sources, record.agent_id)
        if path is not None:
            if path != self._source:
                self._source = path
                self.lines.open(FileSource(path))
            return
        content = substitute_transcript(record, agents.kept_screen(record) or "")
        if isinstance(self._source, MemorySource):
            if bytes(self._source.content) != content:
                self._source.replace(content)
            return
        self._source = MemorySource(content)
        self.lines.open(self._source)
