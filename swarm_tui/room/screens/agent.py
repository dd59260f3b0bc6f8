"""Screen 2: everything on one test's agent: its transcript, its live screen, its tries and files."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.journal.pulled_files import list_files
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.draw.agent import draw_about, draw_tabs
from swarm_tui.room.draw.parts import Part
from swarm_tui.room.draw.tries import Row, draw_tries_and_files
from swarm_tui.room.screens.agent_paging import PagingScreen
from swarm_tui.room.screens.base import NOTHING
from swarm_tui.room.screens.engine_requests import ask_about
from swarm_tui.room.store import Changes
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.lines import Lines, TextLines
from swarm_tui.room.widgets.peek import PeekLines
from swarm_tui.room.widgets.transcript import TranscriptLines
from swarm_tui.transcripts.locate import find_transcript, substitute_transcript
from swarm_tui.transcripts.window import FileSource, MemorySource

TABS: Final = {"transcript": "transcript", "screen": "screen", "tries": "tries and files", "file": "file"}
PEEK_SECONDS: Final = 0.25
PEEK_SECONDS_REMOTE: Final = 3.0
LOOK_SECONDS: Final = 1.0
"""How often is looked for files when nothing is known to have changed."""


class AgentScreen(PagingScreen):
    """One test and its agent."""

    NAME = "agent"
    TITLE_WORD = "agent"

    def __init__(self) -> None:
        super().__init__()
        self.tab = "transcript"
        self.about = Band(id="about")
        self.tabs = Band(id="tabs")
        self.transcript = TranscriptLines(id="transcript")
        self.transcript.add_class("main", "agent-panel")
        self.peek = PeekLines(id="peek")
        self.tries = TextLines(id="tries", has_cursor=True)
        self.file = TranscriptLines(id="file")
        for panel in (self.peek, self.tries, self.file):
            panel.add_class("agent-panel")
        self._rows: list[Row] = []
        self._unfolded: frozenset[int] = frozenset()
        self._record: TestRecord | None = None
        self._source: Path | MemorySource | None = None
        self._file: Path | None = None
        self._is_peeking = False
        self._followed = ""
        self._looked_at = 0.0
        self._peek_trouble = ""

    def compose_body(self) -> Iterable[Widget]:
        yield self.about
        yield self.tabs
        yield self.transcript
        yield self.peek
        yield self.tries
        yield self.file

    def on_mount(self) -> None:
        seconds = PEEK_SECONDS if self.room.agents.is_local else PEEK_SECONDS_REMOTE
        self.set_interval(seconds, self._peek_again)
        self._show_panel()

    # What is shown.

    def show_changes(self, changes: Changes) -> None:
        record = self.store.record(self.room.current_test) or next(iter(self.store.state.tests()), None)
        if record is None:
            self.about.show([[Part("this sweep has no tests yet", "dim")]])
            return
        if self._record is None or record.test != self._record.test:
            self._begin(record)
        now = time.monotonic()
        is_due = record is not self._record or now - self._looked_at >= LOOK_SECONDS
        self._record = record
        if is_due:
            self._looked_at = now
            self.transcript.set_live(not record.is_finished)
            self._find_source(record)
        self.about.show(draw_about(record, self.store.clock(), self.size.width or 80))
        self.tabs.show([draw_tabs(self._tab_words(), self.tab)])
        if self.tab == "tries" and (is_due or changes is NOTHING):
            self._show_tries(record)
        self._draw_title()

    def _begin(self, record: TestRecord) -> None:
        """Another test: nothing of the one before stays."""
        self._unfolded = frozenset()
        self._source = None
        self._followed = ""
        self._file = None
        self._peek_trouble = ""
        self.room.current_test = record.test
        if self.tab == "file":
            self.show_tab("tries")
        self.peek.show(None, "looking …")

    def _find_source(self, record: TestRecord) -> None:
        """Open the transcript when there is one, or another one than before."""
        folder = self._folder(record)
        path = find_transcript(
            record.state_dir if self.room.agents.is_local else "", folder, self.room.agents.kind.transcript_emitters
        )
        if path is not None:
            if path != self._source:
                self._source = path
                self.transcript.open(FileSource(path))
            return
        if not self.room.agents.is_local and not record.is_finished and record.launched_at is not None:
            self._follow_remote(record)
            return
        content = substitute_transcript(record, self.room.agents.kept_screen(record) or "")
        if isinstance(self._source, MemorySource):
            if bytes(self._source.content) != content:
                self._source.replace(content)
            return
        self._source = MemorySource(content)
        self.transcript.open(self._source)

    def _follow_remote(self, record: TestRecord) -> None:
        """Follow a transcript on another host, once for each test that is looked at."""
        if isinstance(self._source, MemorySource) and self._followed == record.test:
            return
        self._followed = record.test
        self._source = MemorySource()
        self.transcript.open(self._source)
        self.run_worker(
            self._take_remote(record, self._source), group="remote", exclusive=True, name="follow a transcript"
        )

    async def _take_remote(self, record: TestRecord, source: MemorySource) -> None:
        try:
            await self.room.agents.follow_transcript(record, source)
        except SwarmError as error:
            self.store.note("warning", f"its transcript cannot be followed: {error}", record.test)
            source.append(substitute_transcript(record, ""))

    def _folder(self, record: TestRecord) -> Path | None:
        try:
            return self.store.folder.agent(record.agent)
        except ValueError:
            return None

    @property
    def pages(self) -> TranscriptLines:
        """The transcript or the file, whichever is up."""
        return self.file if self.tab == "file" else self.transcript

    @property
    def is_paged(self) -> bool:
        return self.tab in ("transcript", "file")

    def pages_title(self) -> str:
        if self.tab == "file" and self._file is not None:
            return plain(self._file.name, 80)
        if self.transcript.is_missing:
            return "Transcript · its file is not there"
        is_made_up = isinstance(self._source, MemorySource) and not self._followed
        return "Transcript · tries and screen, for it writes none" if is_made_up else "Transcript"

    def _tab_words(self) -> dict[str, str]:
        """Return the tabs that there are now, and what they are called."""
        words = {name: word for name, word in TABS.items() if name != "file"}
        return words if self._file is None else words | {"file": self._file.name}

    def click_spot(self, kind: str, rest: str) -> None:
        if kind == "tab":
            self.show_tab(rest)

    def show_tab(self, name: str) -> None:
        """Bring up one of the tabs."""
        self.tab = name
        if self.is_mounted:
            self._show_panel()
            self.take_in(NOTHING)

    def _show_panel(self) -> None:
        panels: dict[str, Lines] = {
            "transcript": self.transcript, "screen": self.peek, "tries": self.tries, "file": self.file,
        }  # fmt: skip
        for name, panel in panels.items():
            panel.display = name == self.tab
        self.set_focus(panels[self.tab])
        if self.is_paged:
            self.pages.look()
        self._peek_again()

    def _draw_title(self) -> None:
        if self._record is None:
            return
        if self.tab in ("transcript", "file"):
            self.draw_pages_title()
        elif self.tab == "tries":
            self.tries.title(f"Tries {len(self._record.tries)}", "")

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self._draw_title()

    def on_transcript_lines_search_ended(self, event: TranscriptLines.SearchEnded) -> None:
        event.stop()
        self.say(event.text)
        self._draw_title()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.do_open()

    # The live screen.

    def _peek_again(self) -> None:
        if self.tab == "screen" and self.is_current and not self._is_peeking and self._record is not None:
            self._is_peeking = True
            self.run_worker(self._peek(self._record), group="peek", name="capture the screen")

    async def _peek(self, record: TestRecord) -> None:
        try:
            screens = await self.room.agents.capture([record])
            screen, trouble = screens.get(record.test), ""
        except SwarmError as error:
            screen, trouble = None, str(error)
        finally:
            self._is_peeking = False
        if self._record is None or self._record.test != record.test:
            return
        if trouble != self._peek_trouble:
            self._peek_trouble = trouble
            if trouble:
                self.store.note("warning", f"the screen cannot be looked at: {trouble}", record.test)
        if screen is not None:
            self.peek.show(screen)
            self.peek.title("Screen", "live · i works in it · a attaches")
            return
        kept = self.room.agents.kept_screen(record)
        if kept is not None:
            self.peek.show(kept)
            self.peek.title("Screen", "as it was at its end")
        else:
            self.peek.show(None, trouble or "it has no terminal" + ("" if record.launched_at else " yet"))
            self.peek.title("Screen", "")

    # Tries and files.

    def _show_tries(self, record: TestRecord) -> None:
        folder = self._folder(record)
        files = [file for file in list_files(folder) if not file.is_hidden] if folder is not None else []
        width = max(20, self.tries.size.width or 76)
        self._rows = draw_tries_and_files(record, files, self._unfolded, width)
        self.tries.show([row.line for row in self._rows])

    # Actions.

    def current_tests(self) -> tuple[str, ...]:
        return (self._record.test,) if self._record is not None else ()

    def do_next_tab(self) -> None:
        self._turn_tab(1)

    def do_previous_tab(self) -> None:
        self._turn_tab(-1)

    def _turn_tab(self, step: int) -> None:
        names = list(self._tab_words())
        self.show_tab(names[(names.index(self.tab) + step) % len(names)])

    def do_open(self) -> None:
        if self.is_paged:
            self.pages.toggle_fold()
            return
        row = self._rows[self.tries.cursor] if self.tab == "tries" and self.tries.cursor < len(self._rows) else None
        if row is None:
            return
        if row.file is not None:
            self._open_file(row.file)
        elif row.number is not None:
            self._unfolded ^= {row.number}
            self.take_in(NOTHING)

    def _open_file(self, path: Path) -> None:
        if path.suffix == ".cast":
            from swarm_tui.room.screens.agent_cast import CastScreen

            self.room.push_screen(CastScreen(path))
            return
        self._file = path
        self.file.open(FileSource(path), is_file=path.suffix != ".jsonl")
        self.file.move_end(False)
        self.show_tab("file")

    def why_not_act(self) -> str:
        return "" if self._record is not None else "there is no test"

    def do_act(self) -> None:
        ask_about(self, self.current_tests())

    def do_next_test(self) -> None:
        self._to_test(1)

    def do_previous_test(self) -> None:
        self._to_test(-1)

    def _to_test(self, step: int) -> None:
        tests = self.room.shown_order() or list(self.store.state.records)
        if self._record is None or not tests:
            return
        here = tests.index(self._record.test) if self._record.test in tests else 0
        there = here + step
        if not 0 <= there < len(tests):
            self.say("there is no further test that way")
            return
        self.room.move_grid_to(tests[there])
        self.take_in(NOTHING)

    def do_back(self) -> None:
        if self.tab == "file" and not self.filter_words:
            self._file = None
            self.show_tab("tries")
            return
        if self._is_errors_only and not self.filter_words:
            self.do_errors_only()
            return
        super().do_back()
