"""Screen 2: everything on one test's agent: its transcript, its live screen, its tries, its changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from textual.widget import Widget

from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.actions import Action
from swarm_tui.room.draw.agent import draw_about, draw_tabs
from swarm_tui.room.draw.parts import Part
from swarm_tui.room.screens.agent_panels import AgentScreenPanel, AgentTranscript, TriesPanel
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.screens.changes_panel import ChangesPanel
from swarm_tui.room.screens.paging_commands import PagingCommands
from swarm_tui.room.store import NO_AGENTS, VIEW_CHANGED, SweepChanged
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.lines import Lines
from swarm_tui.room.widgets.transcript import TranscriptLines
from swarm_tui.transcripts.window import FileSource

TABS: Final = {"transcript": "transcript", "screen": "screen", "tries": "tries and files", "changes": "changes"}
CAPTURE_SECONDS: Final = 0.25
CHANGES_SECONDS: Final = 0.5
FILES_SECONDS: Final = 1.0
"""How often files are searched for when nothing is known to have changed."""


class AgentScreen(RoomScreen):
    """One test and its agent."""

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
            Action("agent.diff_down", ("J",), "", "Scroll the diff of its changes down", partial(self._scroll_diff, 3),
                   is_listed=False),
            Action("agent.diff_up", ("K",), "", "Scroll it up", partial(self._scroll_diff, -3), is_listed=False),
            Action("agent.next_hunk", ("]",), "", "To the next hunk of its changes", partial(self._go_to_hunk, 1)),
            Action("agent.previous_hunk", ("[",), "", "To the previous hunk", partial(self._go_to_hunk, -1)),
            Action("agent.next_test", ("}",), "", "To the next test", partial(self._turn_test, 1),
                   watch_description="To the next agent"),
            Action("agent.previous_test", ("{",), "", "To the previous test", partial(self._turn_test, -1),
                   watch_description="To the previous agent"),
            Action("agent.act", ("x",), "act", "Stop, retry, hold or release this test", self.requests.choose,
                   lambda: "" if self._record is not None else f"there is no {self.store.noun}", is_of_now=True,
                   watch_description="Stop this agent"),
        )  # fmt: skip

    def on_mount(self) -> None:
        self.set_interval(CAPTURE_SECONDS, self._capture_screen)
        self.set_interval(CHANGES_SECONDS, self._read_changes)
        self._show_panel()

    # What is shown.

    def show_change(self, change: SweepChanged) -> None:
        record = self.store.record(self.room.current_test) or next(iter(self.store.state.tests()), None)
        if record is None:
            self.about.show([[Part(NO_AGENTS if self.store.is_watch else "this sweep has no tests yet", "dim")]])
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
        """Begin with another test: nothing of the one before stays."""
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
        """Return the tabs that there are now, and what they are called."""
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

    # What the base class uses.

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
        """Show what the agent has changed, the cursor on one of its commits."""
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
        """Show the list of changes again where one diff is shown alone; return whether it was."""
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
            self.show_message(f"this was the {'last' if direction > 0 else 'first'} hunk")

    def _open_file(self, path: Path) -> None:
        if path.suffix == ".cast":
            from swarm_tui.room.screens.recording import RecordingScreen

            self.room.push_screen(RecordingScreen(path))
            return
        self._file = path
        self.file.open(FileSource(path), is_file=path.suffix != ".jsonl")
        self.file.move_end(False)
        self.show_tab("file")

    def _turn_test(self, step: int) -> None:
        tests = self.room.shown_order() or list(self.store.state.records)
        if self._record is None or not tests:
            return
        here = tests.index(self._record.test) if self._record.test in tests else 0
        if not 0 <= here + step < len(tests):
            self.show_message(f"there is no further {self.store.noun} that way")
            return
        self.room.move_grid_to(tests[here + step])
        self.apply_change(VIEW_CHANGED)
