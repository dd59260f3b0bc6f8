"""Screen 2: layout and actions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar, Final

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.journal.pulled_files import list_files
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.actions import action
from swarm_tui.room.agent.changes import ChangesPanel
from swarm_tui.room.agent.draw import Row, draw_about, draw_tabs, draw_tries_and_files
from swarm_tui.room.agent.transcript import TranscriptLines
from swarm_tui.room.colours import segments_strip
from swarm_tui.room.dialog import Choosable, PickScreen
from swarm_tui.room.draw.spans import Line, Span
from swarm_tui.room.draw.transcript import read_terminal_text
from swarm_tui.room.engine_requests import choose_request
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import NO_AGENTS, VIEW_CHANGED, SweepChanged
from swarm_tui.room.widgets.lines import Band, Lines, TextLines
from swarm_tui.transcripts.entries import Role
from swarm_tui.transcripts.filters import ALL_ROLES, EntryFilter
from swarm_tui.transcripts.locate import substitute_transcript
from swarm_tui.transcripts.window import FileSource, MemorySource


class CapturedScreenLines(Lines):
    """Shows the captured screen of an agent with its colours, scrolled to the bottom.

    Capturing does not attach, resize or start anything.
    """

    def __init__(self, screen: RoomScreen) -> None:
        super().__init__(id="peek", has_cursor=False)
        self._screen = screen
        self._record: TestRecord | None = None
        self._is_capturing = False
        self._problem = ""
        self._text: str | None = None
        self._rows: list[list[Segment]] = []
        self.note = ""

    def show_record(self, record: TestRecord) -> None:
        if self._record is None or record.test != self._record.test:
            self._problem = ""
            self.show(None, "looking …")
        self._record = record

    def capture(self) -> None:
        """Capture the screen, one capture at a time."""
        if self._record is not None and not self._is_capturing:
            self._is_capturing = True
            self.run_worker(self._capture(self._record), group="peek", name="capture the screen")

    async def _capture(self, record: TestRecord) -> None:
        captured, problem, agents = None, "", self._screen.room.agents
        try:
            captured = (await agents.capture([record])).get(record.test)
        except SwarmError as error:
            problem = str(error)
        finally:
            self._is_capturing = False
        if self._record is None or self._record.test != record.test:
            return
        if problem and problem != self._problem:
            self._screen.store.note("warning", f"cannot capture the screen: {problem}", record.test)
        self._problem = problem
        kept = agents.kept_screen(record) if captured is None else None
        if captured is not None:
            self.show(captured)
            self.title("Screen", "live · press i to work in it, a to attach")
        elif kept is not None:
            self.show(kept)
            self.title("Screen", "when the agent finished")
        else:
            self.show(None, problem or "no terminal" + ("" if record.launched_at else " yet"))
            self.title("Screen", "")

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


class TriesLines(TextLines):
    """Shows tries and files. Long failures are folded."""

    def __init__(self) -> None:
        super().__init__(id="tries", has_cursor=True)
        self._drawn: list[Row] = []
        self._unfolded: frozenset[int] = frozenset()

    def show_record(self, record: TestRecord, folder: Path | None) -> None:
        files = [file for file in list_files(folder) if not file.is_hidden] if folder is not None else []
        self._drawn = draw_tries_and_files(record, files, self._unfolded, max(20, self.size.width or 76))
        self.show([row.line for row in self._drawn])

    @property
    def current(self) -> Row | None:
        return self._drawn[self.cursor] if self.cursor < len(self._drawn) else None

    def toggle_fold(self, number: int) -> None:
        """Fold or unfold the failure of a try in the next update."""
        self._unfolded ^= {number}

    def fold_all(self) -> None:
        self._unfolded = frozenset()


DENSITY_MESSAGES: Final = ("one line for each event", "whole messages, folded results", "everything")
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
        self.transcript = TranscriptLines(id="transcript")
        self.transcript.add_class("main")
        self.captured = CapturedScreenLines(self)
        self.tries = TriesLines()
        self.file = TranscriptLines(id="file")
        self.changes = ChangesPanel(self)
        self.panels: dict[str, Lines] = {
            "transcript": self.transcript,
            "screen": self.captured,
            "tries": self.tries,
            "changes": self.changes.lines,
            "file": self.file,
        }
        self.entry_words = ""
        """The filter of the transcript and the file."""
        self.is_errors_only = False
        self._roles = ALL_ROLES
        self._source: Path | MemorySource | None = None
        """The transcript: a file, or a transcript built from the tries and the screen."""
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
        self.captured.show_record(record)
        self.changes.show_record(record)
        if is_due:
            self._searched_at = now
            self._update_transcript(record)
        self.about.show(draw_about(record, self.store.clock(), self.size.width or 80))
        are_newer = self.store.past is not None and self.tab != "tries"
        self.tabs.show([draw_tabs(self._tab_words(), self.tab, are_newer=are_newer)])
        if self.tab == "tries" and (is_due or change.is_view):
            self.tries.show_record(record, self.room.agents.folder_of(record))
        self._draw_title()

    def _forget_test(self, record: TestRecord) -> None:
        """Reset everything that belongs to the previous test."""
        self.tries.fold_all()
        self._source = self._file = None
        self.room.current_test = record.test
        if self.tab == "file":
            self.show_tab("tries")

    def _update_transcript(self, record: TestRecord) -> None:
        """Open the agent's transcript if it exists and is not open yet, else build one."""
        path = self.room.agents.transcript_of(record)
        if path is not None:
            if path != self._source:
                self._source = path
                self.transcript.open(FileSource(path))
            return
        content = substitute_transcript(record, self.room.agents.kept_screen(record) or "")
        if not isinstance(self._source, MemorySource):
            self._source = MemorySource(content)
            self.transcript.open(self._source)
        elif bytes(self._source.content) != content:
            self._source.replace(content)
            self.transcript.read_new()

    def _capture_screen(self) -> None:
        if self.tab == "screen" and self.is_current:
            self.captured.capture()

    def _read_changes(self) -> None:
        if self.tab == "changes" and self.is_current:
            self.changes.read()

    def _shown_pages(self) -> TranscriptLines | None:
        return {"transcript": self.transcript, "file": self.file}.get(self.tab)

    def _draw_title(self) -> None:
        if self._record is None:
            return
        if self.tab == "tries":
            self.tries.title(f"Tries {len(self._record.tries)}", "")
            return
        pages = self._shown_pages()
        if pages is not None:
            title = plain(self._file.name, 80) if self.tab == "file" and self._file is not None else "Transcript"
            if self.tab == "transcript":
                is_built = isinstance(self._source, MemorySource)
                title += " · file not found" if pages.is_missing else " · from tries and screen" if is_built else ""
            pages.title(title + self._filter_title(pages), self._position(pages))

    def _filter_title(self, pages: TranscriptLines) -> str:
        """Return the filter and the number of matches."""
        title, matches = "", pages.pager.matches
        if matches is not None:
            title = f" · {matches.count:,} match" + (" so far" if pages.pager.is_searching else "")
            title += f" /{self.entry_words}" if self.entry_words else ""
            title += " errors only" if self.is_errors_only else ""
        hidden = ", ".join(role.value for role in Role if role not in self._roles)
        return f"{title} · without {hidden}" if hidden else title

    def _position(self, pages: TranscriptLines) -> str:
        """Return the position in the transcript, and whether its end is followed."""
        pager = pages.pager
        paused = f"paused · +{pager.unseen} new" if pager.unseen else "paused"
        mode = "searching …" if pages.is_finding else "following" if pager.is_following else paused
        return f"{mode} · {pager.percent()} %"

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
        self.transcript.follow()

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

    def on_unmount(self) -> None:
        self.changes.close()

    # For the base class.

    def current_tests(self) -> tuple[str, ...]:
        return (self._record.test,) if self._record is not None else ()

    def current_record(self) -> TestRecord | None:
        return self.store.record(self.room.current_test or next(iter(self.current_tests()), None))

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.entry_words

    def set_filter(self, words: str) -> None:
        self.entry_words = words
        self._pages.words = "" if words.startswith("!") else words
        self._apply_filter()

    def why_not_filter(self) -> str:
        return self.why_no_pages()

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
        if not self.is_errors_only:
            return False
        self.switch_errors_only()
        return True

    def leave_inner(self) -> bool:
        """Return from a single diff to the list of changes, or from a file to the list of files."""
        if self.tab == "changes" and self.changes.is_diff_alone:
            self.changes.set_diff_alone(is_alone=False)
            self.set_focus(self.changes.lines)
        elif self.tab == "file":
            self._file = None
            self.show_tab("tries")
        else:
            return False
        return True

    # Actions.

    def why_no_pages(self) -> str:
        return "" if self._shown_pages() is not None else "only for the transcript: press t to open it"

    @property
    def _pages(self) -> TranscriptLines:
        pages = self._shown_pages()
        assert pages is not None, "only while a transcript or a file is shown"
        return pages

    @action("enter", "agent.open", "open", "Unfold or fold what is under the cursor, or open the file",
            is_listed=False)  # fmt: skip
    def open_line(self) -> None:
        if self._shown_pages() is not None:
            self._pages.toggle_fold()
        elif self.tab == "changes" and self.changes.current is not None:
            self.changes.set_diff_alone(is_alone=True)
            self.set_focus(self.changes.diff)
        elif self.tab == "tries" and (row := self.tries.current) is not None:
            if row.file is not None:
                self._open_file(row.file)
            elif row.commit:
                self.show_changes(row.commit)
            elif row.number is not None:
                self.tries.toggle_fold(row.number)
                self.apply_change(VIEW_CHANGED)

    def _open_file(self, path: Path) -> None:
        if path.suffix == ".cast":
            # Late: 200 ms, for the emulator.
            from swarm_tui.room.agent.terminal import RecordingScreen

            self.room.push_screen(RecordingScreen(path))
            return
        self._file = path
        self.file.open(FileSource(path), is_file=path.suffix != ".jsonl")
        self.file.move_end(False)
        self.show_tab("file")

    @action("tab right l", "agent.next_tab", "tabs", "Next tab: transcript, screen, tries, changes", None, (1,),
            is_listed=False)  # fmt: skip
    @action("shift+tab left h", "agent.previous_tab", "", "Previous tab", None, (-1,), is_listed=False)
    def turn_tab(self, step: int) -> None:
        names = list(self._tab_words())
        self.show_tab(names[(names.index(self.tab) + step) % len(names)])

    @action("e", "agent.next_error", "errors", "Go to the next error", why_no_pages, (False,))
    @action("E", "agent.previous_error", "", "Go to the previous error", why_no_pages, (True,))
    def find_error(self, is_backwards: bool) -> None:
        self._pages.find_error(is_backwards=is_backwards)

    @action("F", "agent.follow", "follow", "Follow the end, or stay", why_no_pages)
    def switch_following(self) -> None:
        self._pages.toggle_follow()

    @action("n", "agent.next_match", "", "Go to the next match, with all entries shown", why_no_pages, (False,))
    @action("N", "agent.previous_match", "", "Go to the previous match, with all entries shown", why_no_pages, (True,))
    def find_match(self, is_backwards: bool) -> None:
        """Go to the next match and show all entries around it."""
        words = (self.entry_words or self._pages.words).removeprefix("!")
        if not words:
            self.show_message("press / to search first, then n and N")
            return
        if self.entry_words:
            self.set_filter("")
        self._pages.find(words, is_backwards)

    @action("+ =", "agent.more", "", "Show more of each entry", why_no_pages, (1,))
    @action("-", "agent.less", "", "Show less: one line per event", why_no_pages, (-1,))
    def change_density(self, step: int) -> None:
        self.show_message(DENSITY_MESSAGES[self._pages.set_density(step)])

    @action("f", "agent.roles", "roles", "Choose whose entries to show: user, agent, calls, results ...", why_no_pages)
    def choose_roles(self) -> None:
        entries = [Choosable(role.value, role.value or "text", is_on=role in self._roles) for role in Role]

        def change(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                self._roles = frozenset(Role(value) for value in chosen) or ALL_ROLES
                self._apply_filter()

        self.room.push_screen(PickScreen("Show", entries, is_many=True), change)

    @action("!", "agent.errors_only", "", "Show only entries with errors; again: all", why_no_pages)
    def switch_errors_only(self) -> None:
        self.is_errors_only = not self.is_errors_only
        self._apply_filter()

    def _apply_filter(self) -> None:
        words = self.entry_words.removeprefix("!")
        is_inverse = self.entry_words.startswith("!") and bool(words)
        self._pages.show_choice(EntryFilter(words, is_inverse, self._roles, self.is_errors_only))
        self._draw_title()

    @action("J", "agent.diff_down", "", "Scroll the diff of changes down", None, (3,), is_listed=False)
    @action("K", "agent.diff_up", "", "Scroll the diff up", None, (-3,), is_listed=False)
    def scroll_diff(self, rows: int) -> None:
        self.changes.diff.move(rows)

    @action("]", "agent.next_hunk", "", "Go to the next hunk of the changes", None, (1,))
    @action("[", "agent.previous_hunk", "", "Go to the previous hunk", None, (-1,))
    def go_to_hunk(self, direction: int) -> None:
        if self.tab == "changes" and not self.changes.diff.move_hunk(direction):
            self.show_message(f"this is the {'last' if direction > 0 else 'first'} hunk")

    @action("}", "agent.next_test", "", "Go to the next test", None, (1,), watch_description="Go to the next agent")
    @action("{", "agent.previous_test", "", "Go to the previous test", None, (-1,),
            watch_description="Go to the previous agent")  # fmt: skip
    def turn_test(self, step: int) -> None:
        tests = self.room.view.order or list(self.store.state.records)
        if self._record is None or not tests:
            return
        here = tests.index(self._record.test) if self._record.test in tests else 0
        if not 0 <= here + step < len(tests):
            self.show_message(f"this is the {'last' if step > 0 else 'first'} {self.store.noun}")
            return
        self.room.move_grid_to(tests[here + step])
        self.apply_change(VIEW_CHANGED)

    def why_not_act(self) -> str:
        return "" if self._record is not None else f"no {self.store.noun} yet"

    @action("x", "agent.act", "act", "Stop, retry, hold or release this test", why_not_act, is_of_now=True,
            watch_description="Stop this agent")  # fmt: skip
    def act(self) -> None:
        choose_request(self)
