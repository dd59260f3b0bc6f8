"""Screen 5: layout and actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import ClassVar, Final

from msgspec import structs
from textual import events
from textual.containers import Container
from textual.widget import Widget

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import NO, YES, AnswerRule
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.questions.inbox import Item, ItemGroup, ItemKind, inbox_as_markdown
from swarm_tui.room.actions import OF_NO_SWEEP, action
from swarm_tui.room.dialog import Choosable, ConfirmScreen, Dialog, key_of
from swarm_tui.room.draw.spans import Line, Span, cut_line, width_of, wrap_text
from swarm_tui.room.engine_requests import choose_request, why_no_tests
from swarm_tui.room.followed_files import TranscriptEnd
from swarm_tui.room.inbox.draw import (
    draw_different,
    draw_group_row,
    draw_item_detail,
    draw_item_row,
    draw_question,
    draw_rule_detail,
    draw_rule_row,
    draw_transcript_end,
    has_digits,
)
from swarm_tui.room.inbox.session import POLL, InboxSession, Row, deliver_answer
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.store import VIEW_CHANGED, Store, SweepChanged
from swarm_tui.room.view import open_items
from swarm_tui.room.widgets.border import PanelBorder
from swarm_tui.room.widgets.lines import Lines, TextLines

SCROLL: Final = {"J": 3, "K": -3, "down": 1, "up": -1, "pagedown": 10, "pageup": -10}
WHEN_EMPTY: Final = "Nothing needs you. Questions, stuck agents, failures and fixes to review are listed here."


class AnswerGroupScreen(Dialog[str]):
    """Takes one answer for all items of a group. Returns a summary, or "" without an answer."""

    WIDTH = 96

    def __init__(self, group: ItemGroup, store: Store) -> None:
        super().__init__()
        self._group = group
        self._store = store
        self._is_sending = False
        self._problem = ""
        """Why the group was not answered."""

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(POLL, self._notice_if_gone)

    def draw(self) -> None:
        width = min(self.WIDTH, self.app.size.width) - 4
        lines = self._draw_problem(width) if self._problem else self._draw_question(width)
        self.resize_panel(width + 4, len(lines))
        self.panel.title("Answer all", self._keys(len(lines)))
        self.panel.show(lines)

    def _keys(self, lines: int) -> str:
        """Return the keys. They are in the border, so that a long question does not hide them."""
        if self._problem:
            return "Enter closes"
        options = self._group.answerable[0].options
        answers = "y yes · n no" if options == (YES, NO) else f"1-{min(9, len(options))} choose"
        scroll = "J K scroll" if lines > self.app.size.height - 4 else ""
        return " · ".join(filter(None, ("" if self._is_sending else answers, scroll, "Esc closes")))

    def _draw_problem(self, width: int) -> list[Line]:
        lines: list[Line] = [[Span(line, "error")] for line in wrap_text(plain(self._problem, 900), width, 8)]
        return [*lines, [Span("details of each agent: 6", "dim")], [Span("Enter", "key"), Span(" closes", "dim")]]

    def _draw_question(self, width: int) -> list[Line]:
        group = self._group
        item, number = group.answerable[0], len(group.answerable)
        head = counted(number, "agent")
        head += f" of {len(group.items):,}; the others need their terminals" if number < len(group.items) else ""
        first = [Span(head, "strong"), Span(f"  {group.kind.value}: ", "waiting"), Span(group.title)]
        lines: list[Line] = [[Span("answering one agent first, then the others …", "pending")], ()]
        lines = [*(lines if self._is_sending else []), cut_line(first, width)]
        if item.question is not None and item.question.parts:
            lines += draw_question(item.question, width, are_keys=not self._is_sending)
        elif item.text != group.title or width_of(first) > width:
            lines += [[Span(line)] for line in wrap_text(plain_lines(item.text), width)]
        if len(group.different) > 1:
            lines += [(), *draw_different(group, width, len(group.different))]
        return lines

    def on_key(self, event: events.Key) -> None:
        event.stop()
        key = key_of(event)
        if key in ("escape", "q") or (self._problem and key == "enter"):
            self.dismiss("")
        elif key in SCROLL:
            self.panel.move(SCROLL[key])
        elif not self._is_sending and not self._problem:
            self._answer(self._text_for(key))

    def _text_for(self, key: str) -> str:
        """Return the answer that a key gives, or ""."""
        options = self._group.answerable[0].options
        if options == (YES, NO) and key in ("y", "n"):
            return YES if key == "y" else NO
        return key if key.isascii() and key.isdigit() and 1 <= int(key) <= len(options) else ""

    def _answer(self, text: str) -> None:
        if not text:
            self.panel.title("Answer all", f"not one of the options · {self._keys(0)}")
            return
        self._is_sending = True
        self._redraw()
        self.run_worker(self._deliver(text), group="answer")

    async def _deliver(self, text: str) -> None:
        items = self._group.answerable
        self._problem = await deliver_answer(self._store, [(item.id, item.question) for item in items], text)
        self._is_sending = False
        if self._problem:
            self._redraw()
        else:
            self.dismiss(f"{counted(len(items), 'agent')} answered")

    def _notice_if_gone(self) -> None:
        if not (self._is_sending or self._problem) and all(one.key != self._group.key for one in self._store.inbox()):
            self._problem = "these questions are answered or closed"
            self._redraw()

    def _redraw(self) -> None:
        self.draw()
        self.panel.scroll_rows(0)


class InboxScreen(RoomScreen):
    """The list of groups, or the items of the open group, and the details of the item under the cursor."""

    NAME = "inbox"
    TITLE_WORD = "inbox"
    can_filter: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.list = TextLines(id="list", has_cursor=True)
        self.list.add_class("main")
        self.detail = TextLines(id="detail")
        self._end: TranscriptEnd | None = None
        self.panel_border = PanelBorder(self, self.detail)

    @cached_property
    def session(self) -> InboxSession:
        return InboxSession(self.store, partial(self.apply_change, VIEW_CHANGED))

    def compose_body(self) -> Iterable[Widget]:
        yield Container(self.list, self.detail, id="body")

    def on_unmount(self) -> None:
        if self._end is not None:
            self._end.close()

    def current_tests(self) -> tuple[str, ...]:
        return self.session.tests

    def current_record(self) -> TestRecord | None:
        return self.session.record

    def name_to_copy(self) -> str:
        return self.session.item.id if self.session.item is not None else ""

    # Drawing.

    def show_change(self, change: SweepChanged) -> None:
        session = self.session
        if session.update(self.filter_words):
            self.show_message("all of these are answered or gone", "good")
        if self.list.cursor != session.cursor:
            self.list.cursor = session.cursor
            self.list.redraw()
        group = session.group if session.opened is not None else None
        width = max(20, self.list.text_width)
        self.list.show([self._draw_row(row, group, width) for row in session.rows])
        self._draw_title(group)
        self._draw_detail()

    def _draw_row(self, row: Row, group: ItemGroup | None, width: int) -> Line:
        if isinstance(row, AnswerRule):
            return draw_rule_row(row, self.store.state.rule_uses[row.id], width)
        is_answering = self.session.is_answering(row)
        if isinstance(row, ItemGroup):
            return draw_group_row(row, width, self.store.now, is_answering=is_answering)
        assert group is not None
        return draw_item_row(row, group, width, is_answering=is_answering)

    def _draw_title(self, group: ItemGroup | None) -> None:
        shown = len(self.session.rows)
        if group is not None:
            title = f"{len(group.items):,} {group.kind.value} · {group.title}"
        else:
            title = f"Inbox {len(open_items(self.store)):,}"
        title += f" · {shown:,} match /{self.filter_words}" if self.filter_words else ""
        back = " · Esc back" if group is not None else ""
        self.list.title(title, f"{self.session.cursor + 1:,} of {shown:,}{back}" if shown else "")

    def _draw_detail(self) -> None:
        width, row = max(20, self.detail.text_width), self.session.row
        self.detail.title("a rule" if isinstance(row, AnswerRule) else "details" if row is not None else "")
        if isinstance(row, AnswerRule):
            self.detail.show(draw_rule_detail(row, self.store.state.rule_uses[row.id], width))
            return
        group, item = self.session.group, self.session.item
        if group is None or item is None:
            why = "No entry matches the filter." if self.store.inbox() else WHEN_EMPTY
            self.detail.show([[Span(line, "dim")] for line in wrap_text(why, width, 6)])
            return
        why_not, is_open = self.store.why_no_requests(), self.session.opened is not None
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

    # Keys and clicks.

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self.session.cursor = self.list.cursor
        self.detail.scroll_rows(0)
        self.apply_change(VIEW_CHANGED)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        if not self.session.why_no_row():
            self.open_row()

    def press_key(self, event: events.Key) -> bool:
        """Choose an option by its digit if a group is open. Otherwise digits switch screens."""
        digit = event.character or ""
        if self.session.opened is not None and digit.isdigit() and digit.isascii():
            self.choose_option(int(digit))
            return True
        return super().press_key(event)

    def leave_inner(self) -> bool:
        is_open = self.session.opened is not None
        if is_open:
            self.session.close_group()
        return is_open

    # Actions.

    @action("enter", "inbox.open", "open", "Open the items of this row; digits choose an answer there",
            lambda screen: screen.session.why_no_row(), rank=0)  # fmt: skip
    def open_row(self) -> None:
        row = self.session.row
        if isinstance(row, ItemGroup) and row.kind is ItemKind.REVIEW:
            self.room.open_screen("fixes")
        elif isinstance(row, ItemGroup) and row.tests:
            self.session.open_group(row)
        elif isinstance(row, Item) and self.store.record(row.test) is not None:
            self.room.show_test(row.test)

    @action("y", "inbox.yes", "yes", "Answer yes to the item under the cursor (one agent)",
            lambda screen: screen.session.why_not_yes_or_no(), (YES,), rank=1, is_of_now=True,
            is_hidden=True)  # fmt: skip
    @action("n", "inbox.no", "no", "Answer no to the item under the cursor (one agent)",
            lambda screen: screen.session.why_not_yes_or_no(), (NO,), rank=2, is_of_now=True,
            is_hidden=True)  # fmt: skip
    def answer(self, text: str) -> None:
        item = self.session.item
        if text == YES and item is not None and (risk := self.session.risk()):
            self._confirm_risk(risk, [item.title], partial(self._send_to, item.id, text))
        else:
            self._send(text)

    def _confirm_risk(self, risk: str, details: Iterable[str], approve: Callable[[], object]) -> None:
        """Ask again before a dangerous command is approved."""

        def decide(is_approved: bool | None) -> None:
            if is_approved:
                approve()
            else:
                self.show_message("nothing was answered")

        self.room.push_screen(ConfirmScreen(f"This {risk}. Approve it?", details), decide)

    def _send_to(self, item: str, text: str) -> None:
        if self.session.item is not None and self.session.item.id == item:
            self._send(text)
        else:
            self.show_message("answer: the list has changed; nothing was answered", "warning")

    def _send(self, text: str) -> None:
        problem = self.session.answer(text)
        if problem:
            self.show_message(f"answer: {problem}", "warning")
        else:
            self.show_message("1 answer: sent to the engine")

    def choose_option(self, number: int) -> None:
        """Answer with the option of this number. For a question that allows several options, open the text box."""
        reason, item = self.session.why_no_option(number), self.session.item
        if reason or item is None:
            self.show_message(f"answer: {reason}", "warning")
        elif has_digits(item):
            self.answer(str(number))
        else:
            self.write_answer(str(number))

    @action("A", "inbox.answer_all", "answer all", "Answer all items of the group: one agent first, then the others",
            lambda screen: screen.session.why_not_answer_all(), rank=3, is_of_now=True, is_hidden=True)  # fmt: skip
    def answer_all(self) -> None:
        def tell(words: str | None) -> None:
            self.show_message(words or "nothing was answered")
            self.apply_change(VIEW_CHANGED)

        group = self.session.group
        if group is None:
            return
        show = partial(self.room.push_screen, AnswerGroupScreen(group, self.store), tell)
        if risk := self.session.risk(of_all=True):
            self._confirm_risk(risk, [item.title for item in group.answerable], show)
        else:
            show()

    @action("m", "inbox.message", "write", "Write an answer (one agent)",
            lambda screen: screen.session.why_not_answer(), rank=4, is_of_now=True, opens_box=True)  # fmt: skip
    def write_answer(self, text: str = "") -> None:
        """Open a text box for an answer to one agent, below its question."""
        item, record = self.session.item, self.session.record
        if item is None or record is None:
            return
        receiver = structs.replace(record, question=item.text, options=item.options)

        async def deliver(answer: str) -> str:
            return await deliver_answer(self.store, [(item.id, item.question)], answer)

        self.write_text([receiver], deliver, "nothing was answered", question=item.question, text=text)

    @action("l", "inbox.later", "later", "Defer to the end of the list until it changes; again: undo",
            lambda screen: screen.session.why_no_group(), rank=5, is_of_now=True)  # fmt: skip
    def defer(self) -> None:
        is_deferred = self.session.defer()
        self.show_message(
            f"later: {'deferred to the end of the list until it changes' if is_deferred else 'no longer deferred'}"
        )

    @action("r", "inbox.make_rule", "always", "Always answer yes to this in this sweep; shows the rule first",
            lambda screen: screen.session.why_no_rule(), rank=6, is_of_now=True, why_not_in_watch=OF_NO_SWEEP,
            is_hidden=True)  # fmt: skip
    def add_rule(self) -> None:
        """Let the user choose how much the rule allows, confirm the rule, and add it."""
        rules = self.session.proposed_rules()
        waiting = [f"{counted(self.session.waiting_for(rule), 'agent')} asking this now" for rule in rules]
        entries = [
            Choosable(str(number), rule.words, key=str(number + 1), detail=waiting[number])
            for number, rule in enumerate(rules)
        ]

        def confirm(value: str) -> None:
            number = int(value)
            risk = self.session.risk()
            details = [rules[number].words, f"{waiting[number]} get the same answer"]
            details += [f"this command {risk}"] if risk else []
            details.append("press u to remove the rule; earlier answers are not undone")
            question = ConfirmScreen("Always answer yes, until this sweep ends?", details)
            self.room.push_screen(question, lambda is_yes: self.session.add_rule(rules[number]) if is_yes else None)

        self.choose("Always answer yes in this sweep to", entries, confirm, "no rule was added")

    @action("x", "inbox.act", "act", "Stop, retry, hold or release the tests of this row",
            why_no_tests, rank=7, is_of_now=True,
            watch_description="Stop the agents of this row")  # fmt: skip
    def act(self) -> None:
        choose_request(self)

    @action("u", "inbox.end_rule", "", "Remove the rule under the cursor",
            lambda screen: screen.session.why_not_remove_rule(), rank=8, is_of_now=True,
            why_not_in_watch=OF_NO_SWEEP)  # fmt: skip
    def remove_rule(self) -> None:
        self.session.remove_rule()

    @action("J", "inbox.detail_down", "", "Scroll the details down", arguments=(3,), is_listed=False)
    @action("K", "inbox.detail_up", "", "Scroll the details up", arguments=(-3,), is_listed=False)
    def scroll_detail(self, rows: int) -> None:
        self.detail.move(rows)

    @action("c", "inbox.copy_list", "", "Copy the whole inbox as Markdown",
            lambda screen: "" if screen.store.inbox() else "the inbox is empty")  # fmt: skip
    def copy_list(self) -> None:
        groups = self.store.inbox()
        self.app.copy_to_clipboard(inbox_as_markdown(groups, self.store.opened.spec.sweep))
        self.show_message(f"copied as Markdown: {counted(len(groups), 'entry', 'entries')}")
