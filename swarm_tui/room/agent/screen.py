"""Screen 2: layout and actions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.journal.pulled_files import list_files
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.actions import Action, ScreenServices
from swarm_tui.room.agent.changes import ChangesPanel
from swarm_tui.room.agent.draw import Row, draw_about, draw_tabs, draw_tries_and_files
from swarm_tui.room.agent.transcript import PagingCommands, TranscriptLines
from swarm_tui.room.colours import segments_strip
from swarm_tui.room.draw.spans import Line, Span
from swarm_tui.room.draw.transcript import read_terminal_text
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import NO_AGENTS, VIEW_CHANGED, SweepChanged
from swarm_tui.room.widgets.lines import Band, Lines, TextLines
from swarm_tui.transcripts.locate import find_transcript, substitute_transcript
from swarm_tui.transcripts.window import FileSource, MemorySource


class CapturedScreenLines(Lines):
    """Shows a captured screen with its colours, scrolled to the bottom."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, has_cursor=False)
        self._text: str | None = None
        self._rows: list[list[Segment]] = []
        self.note = ""

    def show(self, text: str | None, note: str = "") -> None:
        """Show a captured screen. If it is None, show the note."""
        if (text, note) == (self._text, self.note):
            return
        self._text, self.note = text, note
        was_at_end = self.first_visible + self.visible_rows >= len(self._rows)
        self._rows = read_terminal_text(text.rstrip("\n")) if text is not None else []
        self.redraw()
        if was_at_end:
            self.call_after_refresh(self.scroll_rows, len(self._rows))

    def line_count(self) -> int:
        return len(self._rows) if self._text is not None else 1

    def draw_line(self, index: int, width: int) -> Line:
        return [Span(self.note, "dim")]

    def render_line(self, y: int) -> Strip:
        index = y + self.first_visible
        if self._text is None:
            return super().render_line(y)
        return segments_strip(self, self._rows[index] if index < len(self._rows) else ())


class AgentTranscript:
    """The transcript of the agent: its file, or a transcript built from its tries and its screen."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self.lines = TranscriptLines(id="transcript")
        self._source: Path | MemorySource | None = None

    @property
    def title(self) -> str:
        if self.lines.is_missing:
            return "Transcript · file not found"
        is_made_up = isinstance(self._source, MemorySource)
        return "Transcript · from tries and screen" if is_made_up else "Transcript"

    def forget(self) -> None:
        """Close the transcript, because the next update is for another agent."""
        self._source = None

    def update(self, record: TestRecord, folder: Path | None) -> None:
        """Open the agent's transcript if it exists and is not open yet."""
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
    """Captures the screen of one agent, one capture at a time. Capturing does not attach, resize or start anything."""

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
                self._screen.store.note("warning", f"cannot capture the screen: {problem}", record.test)
        kept = self._screen.room.agents.kept_screen(record) if screen is None else None
        if screen is not None:
            self.lines.show(screen)
            self.lines.title("Screen", "live · press i to work in it, a to attach")
        elif kept is not None:
            self.lines.show(kept)
            self.lines.title("Screen", "when the agent finished")
        else:
            self.lines.show(None, problem or "no terminal" + ("" if record.launched_at else " yet"))
            self.lines.title("Screen", "")


class TriesPanel:
    """Shows tries and files. Long failures are folded."""

    def __init__(self, open_file: Callable[[Path], None], open_commit: Callable[[str], None]) -> None:
        self.lines = TextLines(id="tries", has_cursor=True)
        self._open_file = open_file
        self._open_commit = open_commit
        self._rows: list[Row] = []
        self._unfolded: frozenset[int] = frozenset()

    def forget(self) -> None:
        """Fold everything, because the next update is for another test."""
        self._unfolded = frozenset()

    def update(self, record: TestRecord, folder: Path | None) -> None:
        files = [file for file in list_files(folder) if not file.is_hidden] if folder is not None else []
        width = max(20, self.lines.size.width or 76)
        self._rows = draw_tries_and_files(record, files, self._unfolded, width)
        self.lines.show([row.line for row in self._rows])

    def open_row(self) -> bool:
        """Open the file under the cursor, or fold or unfold the try. Return whether the panel must be updated."""
        row = self._rows[self.lines.cursor] if self.lines.cursor < len(self._rows) else None
        if row is not None and row.file is not None:
            self._open_file(row.file)
        elif row is not None and row.commit:
            self._open_commit(row.commit)
        elif row is not None and row.number is not None:
            self._unfolded ^= {row.number}
            return True
        return False


TABS: Final = {"transcript": "transcript", "screen": "screen", "tries": "tries and files", "changes": "changes"}
CAPTURE_SECONDS: Final = 0.25
CHANGES_SECONDS: Final = 0.5
FILES_SECONDS: Final = 1.0
"""Seconds between two searches for files without notifications."""


class AgentScreen(RoomScreen):
    NAME = "agent"
    TITLE_WORD = "agent"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.tab = "transcript"
        self.about = Band(id="about")
        self.tabs = Band(id="tabs")
        self.transcript = AgentTranscript(self)
        self.transcript.lines.add_class("main")
        self.screen_panel = AgentScreenPanel(self)
        self.tries = TriesPanel(self._open_file, self.show_changes)
        self.file = TranscriptLines(id="file")
        self.changes = ChangesPanel(self)
        self.panels: dict[str, Lines] = {
            "transcript": self.transcript.lines,
            "screen": self.screen_panel.lines,
            "tries": self.tries.lines,
            "changes": self.changes.lines,
            "file": self.file,
        }
        self.paging = PagingCommands(self, self._shown_pages)
        self._record: TestRecord | None = None
        self._file: Path | None = None
        self._searched_at = 0.0

    def compose_body(self) -> Iterable[Widget]:
        yield self.about
        yield self.tabs
        for name, panel in self.panels.items():
            if name == "changes":
                yield self.changes.box
                continue
            panel.add_class("agent-panel")
            yield panel

    def own_actions(self) -> tuple[Action, ...]:
        return (
            Action("agent.open", ("enter",), "open", "Unfold or fold what is under the cursor, or open the file",
                   self.open_line, is_listed=False),
            Action("agent.next_tab", ("tab", "right", "l"), "tabs", "Next tab: transcript, screen, tries, changes",
                   partial(self._turn_tab, 1), is_listed=False),
            Action("agent.previous_tab", ("shift+tab", "left", "h"), "", "Previous tab", partial(self._turn_tab, -1),
                   is_listed=False),
            *self.paging.actions(),
            Action("agent.diff_down", ("J",), "", "Scroll the diff of changes down", partial(self._scroll_diff, 3),
                   is_listed=False),
            Action("agent.diff_up", ("K",), "", "Scroll the diff up", partial(self._scroll_diff, -3), is_listed=False),
            Action("agent.next_hunk", ("]",), "", "Go to the next hunk of the changes", partial(self._go_to_hunk, 1)),
            Action("agent.previous_hunk", ("[",), "", "Go to the previous hunk", partial(self._go_to_hunk, -1)),
            Action("agent.next_test", ("}",), "", "Go to the next test", partial(self._turn_test, 1),
                   watch_description="Go to the next agent"),
            Action("agent.previous_test", ("{",), "", "Go to the previous test", partial(self._turn_test, -1),
                   watch_description="Go to the previous agent"),
            Action("agent.act", ("x",), "act", "Stop, retry, hold or release this test", self.requests.choose,
                   lambda: "" if self._record is not None else f"no {self.store.noun} yet", is_of_now=True,
                   watch_description="Stop this agent"),
        )  # fmt: skip

    def on_mount(self) -> None:
        self.set_interval(CAPTURE_SECONDS, self._capture_screen)
        self.set_interval(CHANGES_SECONDS, self._read_changes)
        self._show_panel()

    # Contents.

    def show_change(self, change: SweepChanged) -> None:
        record = self.store.record(self.room.current_test) or next(iter(self.store.state.tests()), None)
        if record is None:
            self.about.show([[Span(NO_AGENTS if self.store.is_watch else "this sweep has no tests yet", "dim")]])
            return
        if self._record is None or record.test != self._record.test:
            self._forget_test(record)
        now = time.monotonic()
        is_due = record is not self._record or now - self._searched_at >= FILES_SECONDS
        self._record = record
        self.screen_panel.show_record(record)
        self.changes.show_record(record)
        folder = self._folder(record)
        if is_due:
            self._searched_at = now
            self.transcript.update(record, folder)
        self.about.show(draw_about(record, self.store.clock(), self.size.width or 80))
        are_newer = self.store.past is not None and self.tab != "tries"
        self.tabs.show([draw_tabs(self._tab_words(), self.tab, are_newer=are_newer)])
        if self.tab == "tries" and (is_due or change.is_view):
            self.tries.update(record, folder)
        self._draw_title()

    def _forget_test(self, record: TestRecord) -> None:
        """Reset everything that belongs to the previous test."""
        self.tries.forget()
        self.transcript.forget()
        self._file = None
        self.room.current_test = record.test
        if self.tab == "file":
            self.show_tab("tries")

    def _folder(self, record: TestRecord) -> Path | None:
        try:
            return self.store.folder.agent(record.agent)
        except ValueError:
            return None

    def _capture_screen(self) -> None:
        if self.tab == "screen" and self.is_current:
            self.screen_panel.capture()

    def _read_changes(self) -> None:
        if self.tab == "changes" and self.is_current:
            self.changes.read()

    def _shown_pages(self) -> TranscriptLines | None:
        return {"transcript": self.transcript.lines, "file": self.file}.get(self.tab)

    def _draw_title(self) -> None:
        if self._record is None:
            return
        if self.tab == "tries":
            self.tries.lines.title(f"Tries {len(self._record.tries)}", "")
        elif self._shown_pages() is not None:
            is_file = self.tab == "file" and self._file is not None
            self.paging.draw_title(plain(self._file.name, 80) if is_file and self._file else self.transcript.title)

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        if self.tab == "changes":
            self.changes.show_diff()
        self._draw_title()

    def on_transcript_lines_search_ended(self, event: TranscriptLines.SearchEnded) -> None:
        event.stop()
        self.show_message(event.text)
        self._draw_title()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.open_line()

    # Tabs.

    def _tab_words(self) -> dict[str, str]:
        """Return the available tabs and their labels."""
        tabs = {name: words for name, words in TABS.items() if name != "tries" or not self.store.is_watch}
        return tabs if self._file is None else tabs | {"file": self._file.name}

    def click_spot(self, kind: str, rest: str) -> None:
        if kind == "tab":
            self.show_tab(rest)

    def show_tab(self, name: str) -> None:
        self.tab = name
        if self.is_mounted:
            self._show_panel()
            self.apply_change(VIEW_CHANGED)

    def show_transcript(self) -> None:
        self.show_tab("transcript")
        self.transcript.lines.follow()

    def _show_panel(self) -> None:
        for name, panel in self.panels.items():
            shown = self.changes.box if name == "changes" else panel
            shown.display = name == self.tab
        self.changes.set_diff_alone(is_alone=False)
        self._read_changes()
        self.set_focus(self.panels[self.tab])
        pages = self._shown_pages()
        if pages is not None:
            pages.read_new()
        self._capture_screen()

    def _turn_tab(self, step: int) -> None:
        names = list(self._tab_words())
        self.show_tab(names[(names.index(self.tab) + step) % len(names)])

    def on_unmount(self) -> None:
        self.changes.close()

    # For the base class.

    def current_tests(self) -> tuple[str, ...]:
        return (self._record.test,) if self._record is not None else ()

    def current_record(self) -> TestRecord | None:
        return self.store.record(self.room.current_test or next(iter(self.current_tests()), None))

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.paging.words

    def set_filter(self, words: str) -> None:
        self.paging.set_words(words)
        self._draw_title()

    def why_not_filter(self) -> str:
        return self.paging.why_not()

    def bookmark(self) -> Callable[[], None]:
        pages = self._shown_pages()
        return pages.bookmark() if pages is not None else super().bookmark()

    def show_changes(self, commit: str = "") -> None:
        """Show the agent's changes, with the cursor on one of its commits."""
        self.changes.go_to_commit(commit)
        self.show_tab("changes")

    def close_something(self) -> bool:
        if super().close_something():
            return True
        if self._close_diff():
            return True
        if self.tab == "file":
            self._close_file()
        elif self.paging.is_errors_only:
            self.paging.switch_errors_only()
        else:
            return False
        return True

    def go_back(self) -> None:
        if self._close_diff():
            return
        if self.tab == "file":
            self._close_file()
        else:
            super().go_back()

    def _close_diff(self) -> bool:
        """Return from a single diff to the list of changes. Return whether a diff was open."""
        is_alone = self.tab == "changes" and self.changes.is_diff_alone
        if is_alone:
            self.changes.set_diff_alone(is_alone=False)
            self.set_focus(self.changes.lines)
        return is_alone

    def _close_file(self) -> None:
        self._file = None
        self.show_tab("tries")

    # Actions.

    def open_line(self) -> None:
        pages = self._shown_pages()
        if pages is not None:
            pages.toggle_fold()
        elif self.tab == "changes" and self.changes.current is not None:
            self.changes.set_diff_alone(is_alone=True)
            self.set_focus(self.changes.diff)
        elif self.tab == "tries" and self.tries.open_row():
            self.apply_change(VIEW_CHANGED)

    def _scroll_diff(self, rows: int) -> None:
        self.changes.diff.scroll_rows(self.changes.diff.first_visible + rows)

    def _go_to_hunk(self, direction: int) -> None:
        if self.tab == "changes" and not self.changes.diff.move_hunk(direction):
            self.show_message(f"this is the {'last' if direction > 0 else 'first'} hunk")

    def _open_file(self, path: Path) -> None:
        if path.suffix == ".cast":
            from swarm_tui.room.agent.recording import RecordingScreen

            self.room.push_screen(RecordingScreen(path))
            return
        self._file = path
        self.file.open(FileSource(path), is_file=path.suffix != ".jsonl")
        self.file.move_end(False)
        self.show_tab("file")

    def _turn_test(self, step: int) -> None:
        tests = self.room.view.order or list(self.store.state.records)
        if self._record is None or not tests:
            return
        here = tests.index(self._record.test) if self._record.test in tests else 0
        if not 0 <= here + step < len(tests):
            self.show_message(f"this is the {'last' if step > 0 else 'first'} {self.store.noun}")
            return
        self.room.move_grid_to(tests[here + step])
        self.apply_change(VIEW_CHANGED)
