"""Opens the transcript of an agent: its file, a stream from its host, or one made of its tries and its screen."""

from __future__ import annotations

from pathlib import Path

from swarm_tui.errors import SwarmError
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
        self._followed = ""
        """The test whose transcript is streamed from another host."""

    @property
    def title(self) -> str:
        """What the border calls it."""
        if self.lines.is_missing:
            return "Transcript · its file is not there"
        is_made_up = isinstance(self._source, MemorySource) and not self._followed
        return "Transcript · tries and screen, for it writes none" if is_made_up else "Transcript"

    def forget(self) -> None:
        """Forget the transcript: the next update is about another agent."""
        self._source = None
        self._followed = ""

    def update(self, record: TestRecord, folder: Path | None) -> None:
        """Open the transcript when there is one, or another one than before."""
        agents = self._screen.room.agents
        self.lines.set_live(not record.is_finished)
        path = find_transcript(record.state_dir if agents.is_local else "", folder, agents.kind.transcript_emitters)
        if path is not None:
            if path != self._source:
                self._source = path
                self.lines.open(FileSource(path))
            return
        if not agents.is_local and not record.is_finished and record.launched_at is not None:
            self._follow_remote(record)
            return
        content = substitute_transcript(record, agents.kept_screen(record) or "")
        if isinstance(self._source, MemorySource):
            if bytes(self._source.content) != content:
                self._source.replace(content)
            return
        self._source = MemorySource(content)
        self.lines.open(self._source)

    def _follow_remote(self, record: TestRecord) -> None:
        if isinstance(self._source, MemorySource) and self._followed == record.test:
            return
        self._followed = record.test
        self._source = source = MemorySource()
        self.lines.open(source)
        self.lines.run_worker(self._stream(record, source), group="remote", exclusive=True, name="follow a transcript")

    async def _stream(self, record: TestRecord, source: MemorySource) -> None:
        try:
            await self._screen.room.agents.follow_transcript(record, source)
        except SwarmError as error:
            self._screen.store.note("warning", f"its transcript cannot be followed: {error}", record.test)
            source.append(substitute_transcript(record, ""))
