"""Screen 5: who needs something from outside its test, and what; a list to hand to someone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.containers import Container
from textual.widget import Widget

from swarm_tui.insight.blockers import Blocker, blockers_as_markdown
from swarm_tui.room.draw.arrange import fits_words
from swarm_tui.room.draw.blocked import draw_blocker_detail, draw_blocker_row
from swarm_tui.room.draw.words import counted
from swarm_tui.room.screens.asking import ask_about
from swarm_tui.room.screens.base import NOTHING, RoomScreen
from swarm_tui.room.store import Changes
from swarm_tui.room.widgets.lines import Lines, TextLines


class BlockedScreen(RoomScreen):
    """The blockers, those of the most tests first."""

    NAME = "blocked"
    TITLE_WORD = "blocked"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.rows = TextLines(id="list", has_cursor=True)
        self.rows.add_class("main")
        self.detail = TextLines(id="detail")
        self.blockers: list[Blocker] = []
        self.words = ""

    def compose_body(self) -> Iterable[Widget]:
        yield Container(self.rows, self.detail, id="body")

    @property
    def filter_words(self) -> str:  # type: ignore[override]
        return self.words

    def set_filter(self, words: str) -> None:
        self.words = words
        self.take_in(NOTHING)

    def current(self) -> Blocker | None:
        """Give the blocker under the cursor."""
        return self.blockers[self.rows.cursor] if self.rows.cursor < len(self.blockers) else None

    def show_changes(self, changes: Changes) -> None:
        was = self.current()
        every = self.store.blockers()
        self.blockers = [
            blocker
            for blocker in every
            if not self.words or fits_words(self.words, " ".join((blocker.kind, blocker.title, *blocker.tests)))
        ]
        titles = [blocker.title for blocker in self.blockers]
        if was is not None and was.title in titles and self.rows.cursor != titles.index(was.title):
            self.rows.cursor = titles.index(was.title)
            self.rows.redraw()
        width = max(20, self.rows.text_width)
        self.rows.show([draw_blocker_row(blocker, width) for blocker in self.blockers])
        title = f"Blocked {len(every):,}" + (f" · {len(self.blockers):,} match /{self.words}" if self.words else "")
        self.rows.title(title, f"{self.rows.cursor + 1:,} of {len(self.blockers):,}" if self.blockers else "")
        blocker = self.current()
        self.detail.title(counted(len(blocker.tests), "test") if blocker else "")
        self.detail.show(draw_blocker_detail(blocker, max(20, self.detail.text_width)) if blocker else [])

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self.detail.scroll_rows(0)
        self.take_in(NOTHING)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        if not self.why_not_open():
            self.do_open()

    def current_tests(self) -> tuple[str, ...]:
        blocker = self.current()
        return blocker.tests if blocker is not None else ()

    def name_to_copy(self) -> str:
        blocker = self.current()
        return blocker.title if blocker is not None else ""

    def why_not_open(self) -> str:
        return "" if self.current() is not None else "nothing is blocked here"

    def do_open(self) -> None:
        tests = self.current_tests()
        if len(tests) == 1:
            self.room.show_test(tests[0])
        else:
            self.room.show_only(tests, f"these {len(tests)} blocked")

    why_not_act = why_not_open

    def do_act(self) -> None:
        ask_about(self, self.current_tests())

    def why_not_copy_list(self) -> str:
        return "" if self.blockers else "the list is empty"

    def do_copy_list(self) -> None:
        self.app.copy_to_clipboard(blockers_as_markdown(self.blockers, self.store.opened.spec.sweep))
        self.say(f"copied as Markdown: {counted(len(self.blockers), 'entry', 'entries')}")
