"""Transcript a page at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from textual import events
from textual.message import Message

from swarm_tui.room.draw.spans import Line
from swarm_tui.room.draw.transcript import draw_transcript_line
from swarm_tui.room.followed_files import FollowedFiles
from swarm_tui.room.widgets.lines import Lines
from swarm_tui.transcripts.filters import ERRORS, EntryFilter, SearchStep
from swarm_tui.transcripts.layout import Density
from swarm_tui.transcripts.pager import PageLine, Pager
from swarm_tui.transcripts.window import ByteSource, FileSource, MemorySource, Window, WindowChange

SEARCH_SLICE = 0.012
SEARCH_PAUSE = 0.004
LOOK_SECONDS = 0.04
NEWS_PAUSE = 0.008


class TranscriptLines(Lines):
    """Shows one page of a transcript. The lines of the base class are those of the page."""

    class SearchEnded(Message):
        """A search has finished, with a message for the user."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.pager = Pager(Window(MemorySource()))
        self.page: list[PageLine] = []
        self.is_missing = False
        self.words = ""
        """The last search. Its words are highlighted."""
        self._search: Iterator[SearchStep] | None = None
        self._search_end = ""
        self._is_search_running = False
        self._followed = FollowedFiles(self, self.read_new, pause=NEWS_PAUSE, look_seconds=LOOK_SECONDS)

    def open(self, source: ByteSource, *, is_file: bool = False) -> None:
        """Open another transcript or a plain text file, at its end."""
        self.pager.window.close()
        density, choice = self.pager.density, self.pager.entry_filter
        width, height = max(20, self.text_width), max(1, self.size.height)
        self.pager = Pager(Window(source), width, height, is_file=is_file)
        self.pager.density = density
        self._search = None
        self.is_missing = self.pager.poll(time.monotonic()) is WindowChange.GONE
        if not choice.is_everything:
            self.pager.set_filter(choice)
        self.cursor = 0
        self._show_page(is_at_end=True)
        self._follow_file()

    # For the base class.

    def line_count(self) -> int:
        return len(self.page)

    def draw_line(self, index: int, width: int) -> Line:
        return draw_transcript_line(self.page[index].line, self.words)

    def on_resize(self, event: events.Resize) -> None:
        self.pager.resize(max(20, self.text_width), max(1, self.size.height))
        self._show_page(is_at_end=self.pager.is_following)

    # Following.

    def on_mount(self) -> None:
        self._follow_file()

    def _follow_file(self) -> None:
        source = self.pager.window.source
        self._followed.show([source.path] if isinstance(source, FileSource) else [])

    def on_unmount(self) -> None:
        self._followed.close()

    def read_new(self) -> None:
        if not self.display or not self.is_seen:
            return
        change = self.pager.poll(time.monotonic())
        is_missing = change is WindowChange.GONE and not self.pager.window.end
        if change in (WindowChange.GREW, WindowChange.RESTARTED) or is_missing != self.is_missing:
            self.is_missing = is_missing
            self._show_page(is_at_end=self.pager.is_following)
        self._start_search_worker()

    def _start_search_worker(self) -> None:
        """Search in slices, so that keys are handled in between."""
        if not self._is_search_running and (self.pager.is_searching or self._search is not None):
            self._is_search_running = True
            self.run_worker(self._run_search(), group="search", name="search a transcript")

    async def _run_search(self) -> None:
        try:
            while self.pager.is_searching or self._search is not None:
                matches = self.pager.matches
                if matches is not None and self.pager.is_searching:
                    before = matches.count
                    self.pager.advance(SEARCH_SLICE)
                    if matches.count != before or not self.pager.is_searching:
                        self._show_page(is_at_end=self.pager.is_following)
                if self._search is not None:
                    self._advance_search()
                await asyncio.sleep(SEARCH_PAUSE)
        finally:
            self._is_search_running = False

    def follow(self) -> None:
        self.pager.go_to_end()
        self._show_page(is_at_end=True)

    def toggle_follow(self) -> bool:
        """Follow the end, or stop following. Return whether it follows."""
        if self.pager.is_following:
            self.pager.pause()
        else:
            self.pager.go_to_end()
        self._show_page(is_at_end=self.pager.is_following)
        return self.pager.is_following

    # Moving.

    def move(self, rows: int, columns: int = 0) -> None:
        if not rows:
            return
        target = self.cursor + rows
        if 0 <= target < len(self.page):
            if rows < 0:
                self.pager.pause()
            self.move_to(target)
            self.post_message(self.CursorMoved())
            return
        beyond = target if target < 0 else target - len(self.page) + 1
        moved = self.pager.scroll(beyond)
        if moved != beyond:
            self.cursor = 0 if rows < 0 else self.visible_rows
        self._show_page()

    def move_page(self, pages: float) -> None:
        self.pager.scroll(int(self.visible_rows * pages) or (1 if pages > 0 else -1))
        self._show_page()

    def move_end(self, is_bottom: bool) -> None:
        self._search = None
        if is_bottom:
            self.pager.go_to_end()
        else:
            self.pager.go_to_start()
        self.cursor = self.visible_rows if is_bottom else 0
        self._show_page()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.pager.scroll(-3)
        self._show_page()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.pager.scroll(3)
        self._show_page()

    def bookmark(self) -> Callable[[], None]:
        """Return a function that returns to the current page and line."""
        top, cursor, is_following = self.pager.top, self.cursor, self.pager.is_following

        def restore() -> None:
            if is_following:
                self.follow()
                return
            self.pager.go_to(top.offset, above=-top.line)
            self.cursor = cursor
            self._show_page()

        return restore

    # Display options.

    @property
    def current(self) -> PageLine | None:
        return self.page[self.cursor] if self.cursor < len(self.page) else None

    def show_choice(self, choice: EntryFilter) -> None:
        """Show only entries that match."""
        current = self.current
        self.pager.set_filter(choice)
        if current is not None and not self.pager.is_following:
            self._show_record(current.position.offset)
        self._show_page(is_at_end=self.pager.is_following)
        self._start_search_worker()

    def set_density(self, step: int) -> Density:
        density = Density(max(0, min(len(Density) - 1, self.pager.density + step)))
        current = self.current
        self.pager.set_density(density)
        if current is not None and not self.pager.is_following:
            self._show_record(current.position.offset)
        self._show_page(is_at_end=self.pager.is_following)
        return density

    def toggle_fold(self) -> None:
        """Fold or unfold the record under the cursor. The cursor stays on it."""
        current = self.current
        if current is None:
            return
        self.pager.pause()
        self.pager.toggle(current.position.offset)
        self._show_record(current.position.offset, above=self.cursor - current.position.line)
        self._show_page()

    # Searching.

    def find(self, words: str, is_backwards: bool) -> None:
        self.words = words
        self._begin_search(
            EntryFilter(words=words, roles=self.pager.entry_filter.roles), is_backwards, f"no more matches for /{words}"
        )

    def find_error(self, is_backwards: bool) -> None:
        self._begin_search(ERRORS, is_backwards, f"no {'earlier' if is_backwards else 'later'} error")

    @property
    def is_finding(self) -> bool:
        return self._search is not None

    def _begin_search(self, choice: EntryFilter, is_backwards: bool, end: str) -> None:
        current = self.current
        if current is None:
            return
        self._search = self.pager.search(choice, current.position.offset, is_backwards)
        self._search_end = end
        self._advance_search()
        self._start_search_worker()

    def _advance_search(self) -> None:
        assert self._search is not None
        deadline = time.monotonic() + SEARCH_SLICE
        for step in self._search:
            if step.found is not None:
                self._search = None
                self.pager.go_to(step.found.start, above=self.visible_rows // 3)
                self._show_record(step.found.start)
                self._show_page()
                return
            if time.monotonic() > deadline:
                return
        self._search = None
        self.post_message(self.SearchEnded(self._search_end))

    def _show_record(self, offset: int, above: int | None = None) -> None:
        """Move the cursor to the first line of a record. Scroll only if it is not visible."""
        places = [shown.position for shown in self.pager.visible_lines()]
        if not any(place.offset == offset and place.line == 0 for place in places) or above is not None:
            self.pager.go_to(offset, self.visible_rows // 3 if above is None else max(0, above))
            places = [shown.position for shown in self.pager.visible_lines()]
        self.cursor = next((row for row, place in enumerate(places) if place.offset >= offset), 0)

    def _show_page(self, is_at_end: bool = False) -> None:
        """Draw the current page of the pager."""
        self.page = self.pager.visible_lines()
        last = max(0, len(self.page) - 1)
        self.cursor = last if is_at_end else max(0, min(self.cursor, last))
        self.redraw()
        self.post_message(self.CursorMoved())
