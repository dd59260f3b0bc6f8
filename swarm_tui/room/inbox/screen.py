"""Screen 5: layout and actions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Final

from textual import events
from textual.containers import Container
from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import NO, YES, AnswerRule
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.questions.inbox import Item, ItemGroup, ItemKind, inbox_as_markdown
from swarm_tui.room.actions import Action
from swarm_tui.room.dialog import Dialog, key_of
from swarm_tui.room.draw.spans import Line, Span, cut_line, width_of, wrap_text
from swarm_tui.room.followed_files import TranscriptEnd
from swarm_tui.room.grid.draw_layout import fits_words
from swarm_tui.room.inbox.draw import (
    draw_ask,
    draw_different,
    draw_group_row,
    draw_item_detail,
    draw_item_row,
    draw_rule_detail,
    draw_rule_row,
    draw_transcript_end,
)
from swarm_tui.room.inbox.session import AnswerCommands
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import VIEW_CHANGED, Store, SweepChanged
from swarm_tui.room.view import open_items
from swarm_tui.room.widgets.border import PanelBorder
from swarm_tui.room.widgets.lines import Lines, TextLines

POLL: Final = 0.1
SCROLL: Final = {"J": 3, "K": -3, "down": 1, "up": -1, "pagedown": 10, "pageup": -10}


class GroupAnswerScreen(Dialog[str]):
    """Takes one answer for all items of a group. Returns a summary."""

    WIDTH = 96

    def __init__(self, group: ItemGroup, store: Store) -> None:
        super().__init__()
        self._group = group
        self._store = store
        self._request = ""
        """Id of the request in progress."""
        self._problem: list[Line] = []

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(POLL, self._follow)

    def draw(self) -> None:
        width = min(self.WIDTH, self.app.size.width) - 4
        lines = self._problem or self._question(width)
        self.resize_panel(width + 4, len(lines))
        self.panel.title("Answer all", self._keys(len(lines)))
        self.panel.show(lines)

    def _keys(self, lines: int) -> str:
        """Return the keys. They are in the border, so that a long question does not hide them."""
        if self._problem:
            return "Enter closes"
        options = self._group.answerable[0].options
        answers = (
            [] if self._request else ["y yes · n no"] if options == (YES, NO) else [f"1-{min(9, len(options))} choose"]
        )
        scroll = ["J K scroll"] if lines > self.app.size.height - 4 else []
        return " · ".join([*answers, *scroll, "Esc closes"])

    def _question(self, width: int) -> list[Line]:
        group = self._group
        item, number = group.answerable[0], len(group.answerable)
        head = counted(number, "agent")
        head += f" of {len(group.items):,}; the others need their terminals" if number < len(group.items) else ""
        lines: list[Line] = [
            [Span(head, "strong"), Span(f"  {group.kind.value}: ", "waiting"), Span(group.title)],
        ]
        if item.ask is not None and item.ask.questions:
            lines += draw_ask(item.ask, width, are_keys=not self._request)
        elif item.text != group.title or width_of(lines[0]) > width:
            lines += [[Span(line)] for line in wrap_text(plain_lines(item.text), width)]
        lines[0] = cut_line(lines[0], width)
        if len(group.different) > 1:
            lines += [(), *draw_different(group, width, len(group.different))]
        if self._request:
            return [[Span("answering one agent first, then the others …", "pending")], (), *lines]
        return lines

    def on_key(self, event: events.Key) -> None:
        event.stop()
        key = key_of(event)
        if key in ("escape", "q") or (self._problem and key == "enter"):
            self.dismiss("")
        elif key in SCROLL:
            self.panel.scroll_rows(self.panel.first_visible + SCROLL[key])
        elif not self._request and not self._problem:
            self._answer(self._text_for(key))

    def _text_for(self, key: str) -> str:
        options = self._group.answerable[0].options
        if options == (YES, NO) and key in ("y", "n"):
            return YES if key == "y" else NO
        return key if key.isascii() and key.isdigit() and 1 <= int(key) <= len(options) else ""

    def _answer(self, text: str) -> None:
        problem = self._store.why_no_requests() if text else "not one of the options"
        if problem:
            self.panel.title("Answer all", problem)
            return
        try:
            items = [item.id for item in self._group.answerable]
            self._request = self._store.send_request(RequestKind.ANSWER, text=text, items=items).id
        except SwarmError as error:
            self._fail(str(error))
            return
        self.draw()
        self.panel.scroll_rows(0)

    def _follow(self) -> None:
        """Close the dialog when the engine has answered. If it fails, show why."""
        if not self._request:
            return
        answer, problem = self._store.live_state.answers.get(self._request), self._store.why_no_requests()
        if answer is None and not problem:
            return
        self._request = ""
        if answer is not None and answer.is_done:
            self.dismiss(f"{counted(len(self._group.answerable), 'agent')} answered")
        else:
            self._fail(answer.detail if answer is not None else f"not answered: {problem}")

    def _fail(self, text: str) -> None:
        width = min(self.WIDTH, self.app.size.width) - 4
        self._problem = [[Span(line, "error")] for line in wrap_text(plain(text, 900), width, 8)]
        self._problem += [[Span("details of each agent: 6", "dim")], [Span("Enter", "key"), Span(" closes", "dim")]]
        self.draw()
        self.panel.scroll_rows(0)


WHEN_EMPTY: Final = "Nothing needs you. Questions, stuck agents, failures and fixes to review are listed here."
NOTHING_HERE: Final = "nothing under the cursor"

Row = ItemGroup | Item | AnswerRule


class InboxScreen(RoomScreen):
    """The list of groups, or the items of the open group, and the details of the item under the cursor."""

    NAME = "inbox"
    TITLE_WORD = "inbox"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.rows = TextLines(id="list", has_cursor=True)
        self.rows.add_class("main")
        self.detail = TextLines(id="detail")
        self.shown: list[Row] = []
        self.opened: str | None = None
        """Key of the open group."""
        self.answering = AnswerCommands(self)
        self._end: TranscriptEnd | None = None
        self.panel_border = PanelBorder(self, self.detail)

    def compose_body(self) -> Iterable[Widget]:
        yield Container(self.rows, self.detail, id="body")

    def on_unmount(self) -> None:
        if self._end is not None:
            self._end.close()

    def own_actions(self) -> tuple[Action, ...]:
        return (
            Action("inbox.open", ("enter",), "open", "Open the items of this row; digits choose an answer there",
                   self.open_row, self.why_no_row, rank=0),
            *self.answering.actions(),
            Action("inbox.act", ("x",), "act", "Stop, retry, hold or release the tests of this row",
                   self.requests.choose, self.requests.why_no_tests, rank=7, is_of_now=True,
                   watch_description="Stop the agents of this row"),
            Action("inbox.detail_down", ("J",), "", "Scroll the details down", partial(self._scroll, 3),
                   is_listed=False),
            Action("inbox.detail_up", ("K",), "", "Scroll the details up", partial(self._scroll, -3), is_listed=False),
            Action("inbox.copy_list", ("c",), "", "Copy the whole inbox as Markdown",
                   self.copy_list, lambda: "" if self.store.inbox() else "the inbox is empty"),
        )  # fmt: skip

    # Under the cursor.

    def current_row(self) -> Row | None:
        return self.shown[self.rows.cursor] if self.rows.cursor < len(self.shown) else None

    def current_group(self) -> ItemGroup | None:
        """Return the open group, or the one under the cursor."""
        if self.opened is not None:
            return next((group for group in self.store.inbox() if group.key == self.opened), None)
        row = self.current_row()
        return row if isinstance(row, ItemGroup) else None

    def current_item(self) -> Item | None:
        """Return the item under the cursor. For a group, return its first item."""
        row = self.current_row()
        if isinstance(row, ItemGroup):
            return next(iter(row.answerable), row.items[0])
        return row if isinstance(row, Item) else None

    def current_rule(self) -> AnswerRule | None:
        row = self.current_row()
        return row if isinstance(row, AnswerRule) else None

    def current_tests(self) -> tuple[str, ...]:
        row = self.current_row()
        if isinstance(row, ItemGroup):
            return row.tests
        return (row.test,) if isinstance(row, Item) and row.test else ()

    def current_record(self) -> TestRecord | None:
        item = self.current_item()
        return self.store.record(item.test) if item is not None else None

    def name_to_copy(self) -> str:
        item = self.current_item()
        return item.id if item is not None else ""

    def why_no_row(self) -> str:
        return "" if self.current_row() is not None else NOTHING_HERE

    # Contents.

    def show_change(self, change: SweepChanged) -> None:
        was = self.current_row()
        group = self.current_group() if self.opened is not None else None
        if self.opened is not None and group is None:
            self.opened = None
            self.show_message("all of these are answered or gone", "good")
        self.shown = list(self._rows(group))
        keys = [_key_of(row) for row in self.shown]
        if was is not None and (key := _key_of(was)) in keys and self.rows.cursor != keys.index(key):
            self.rows.cursor = keys.index(key)
            self.rows.redraw()
        width, answering = max(20, self.rows.text_width), self.store.answering()
        self.rows.show([self._draw_row(row, group, width, answering) for row in self.shown])
        self._draw_title(group)
        self._draw_detail()

    def _rows(self, group: ItemGroup | None) -> Iterable[Row]:
        if group is not None:
            return [item for item in group.items if self._fits(f"{item.title} {item.test} {item.agent}")]
        groups: list[Row] = [each for each in self.store.inbox() if self._fits(_words_of(each))]
        rules = self.store.state.rules.values()
        return [*groups, *(rule for rule in rules if self._fits(f"rule {rule.id} {rule.words}"))]

    def _fits(self, words: str) -> bool:
        return not self.filter_words or fits_words(self.filter_words, words)

    def _draw_row(self, row: Row, group: ItemGroup | None, width: int, answering: frozenset[str]) -> Line:
        if isinstance(row, AnswerRule):
            return draw_rule_row(row, self.store.state.rule_uses[row.id], width)
        if isinstance(row, ItemGroup):
            is_answering = any(item.id in answering for item in row.items)
            return draw_group_row(row, width, self.store.now, is_answering=is_answering)
        assert group is not None
        return draw_item_row(row, group, width, is_answering=row.id in answering)

    def _draw_title(self, group: ItemGroup | None) -> None:
        if group is not None:
            title = f"{len(group.items):,} {group.kind.value} · {group.title}"
        else:
            title = f"Inbox {len(open_items(self.store)):,}"
        title += f" · {len(self.shown):,} match /{self.filter_words}" if self.filter_words else ""
        back = " · Esc back" if group is not None else ""
        self.rows.title(title, f"{self.rows.cursor + 1:,} of {len(self.shown):,}{back}" if self.shown else "")

    def _draw_detail(self) -> None:
        width, row = max(20, self.detail.text_width), self.current_row()
        self.detail.title("a rule" if isinstance(row, AnswerRule) else "details" if row is not None else "")
        if isinstance(row, AnswerRule):
            self.detail.show(draw_rule_detail(row, self.store.state.rule_uses[row.id], width))
            return
        group, item = self.current_group(), self.current_item()
        if group is None or item is None:
            why = "No entry matches the filter." if self.store.inbox() else WHEN_EMPTY
            self.detail.show([[Span(line, "dim")] for line in wrap_text(why, width, 6)])
            return
        why_not, is_open = self.store.why_no_requests(), self.opened is not None
        lines = draw_item_detail(group, item, width, self.store.now, why_not, is_open=is_open)
        more = "J K scroll" if len(lines) > self.detail.visible_rows > 0 else ""
        self.detail.title("details", more)
        end = self._transcript_end(item)
        self.detail.show([*lines, *draw_transcript_end(end, width, self.detail.visible_rows - len(lines))])

    def _transcript_end(self, item: Item) -> list[str]:
        if not self.is_mounted or not item.test:
            return []
        if self._end is None:
            self._end = TranscriptEnd(self.room)
        return self._end.lines_of(self.store.record(item.test))

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self.detail.scroll_rows(0)
        self.apply_change(VIEW_CHANGED)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        if not self.why_no_row():
            self.open_row()

    # Keys.

    def press_key(self, event: events.Key) -> bool:
        """Choose an option by its digit if a group is open. Otherwise digits switch screens."""
        digit = event.character or ""
        if self.opened is not None and digit.isdigit() and digit.isascii():
            self.answering.choose(int(digit))
            return True
        return super().press_key(event)

    def _scroll(self, rows: int) -> None:
        self.detail.scroll_rows(self.detail.first_visible + rows)

    def open_row(self) -> None:
        row = self.current_row()
        if isinstance(row, ItemGroup) and row.kind is ItemKind.REVIEW:
            self.room.open_screen("fixes")
        elif isinstance(row, ItemGroup) and row.tests:
            self.opened = row.key
            self.rows.cursor = 0
            self.apply_change(VIEW_CHANGED)
            self.rows.redraw()
        elif isinstance(row, Item) and self.store.record(row.test) is not None:
            self.room.show_test(row.test)

    def close_something(self) -> bool:
        if super().close_something():
            return True
        if self.opened is None:
            return False
        self._close_group()
        return True

    def go_back(self) -> None:
        if self.opened is None:
            super().go_back()
        else:
            self._close_group()

    def _close_group(self) -> None:
        key, self.opened = self.opened, None
        self.apply_change(VIEW_CHANGED)
        keys = [_key_of(row) for row in self.shown]
        self.rows.move_to(keys.index(key) if key in keys else 0)

    def copy_list(self) -> None:
        groups = self.store.inbox()
        self.app.copy_to_clipboard(inbox_as_markdown(groups, self.store.opened.spec.sweep))
        self.show_message(f"copied as Markdown: {counted(len(groups), 'entry', 'entries')}")


def _key_of(row: Row) -> str:
    return row.key if isinstance(row, ItemGroup) else row.id


def _words_of(group: ItemGroup) -> str:
    return " ".join((group.kind.value, group.title, *(item.title for item in group.items), *group.tests))
