"""`InboxSession`: what the Inbox screen works on: rows, answers, deferred items, rules. Without Textual."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import Request, RequestKind
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import NO, YES, AnswerRule, Question, answer_problem, common_subject, fits
from swarm_tui.questions.danger import risk_of
from swarm_tui.questions.groups import proposed_rules
from swarm_tui.questions.inbox import Item, ItemGroup
from swarm_tui.room.grid.draw_layout import fits_words
from swarm_tui.room.inbox.draw import has_digits
from swarm_tui.room.store import Store

NOTHING_HERE: Final = "nothing under the cursor"
POLL: Final = 0.1

Row = ItemGroup | Item | AnswerRule
Target = tuple[str, Question | None]
"""The id of an inbox item with its question."""


def send_answer(store: Store, targets: Iterable[Target], text: str) -> tuple[Request | None, str]:
    """Check an answer to inbox items and send it to the engine. Return the request, or why it was not sent."""
    items = list(targets)
    problems = (answer_problem(question, text) for _, question in items if question is not None)
    if problem := store.why_no_requests() or next(filter(None, problems), ""):
        return None, problem
    try:
        return store.send_request(RequestKind.ANSWER, text=text, items=[item for item, _ in items]), ""
    except SwarmError as error:
        store.note("error", f"cannot send the answer: {error}")
        return None, str(error)


async def deliver_answer(store: Store, targets: Sequence[Target], text: str) -> str:
    """Send an answer and wait until the agent has received it. Return why it did not, or ""."""
    request, problem = send_answer(store, targets, text)
    while request is not None and not problem:
        if (answer := store.live_state.answers.get(request.id)) is not None:
            return "" if answer.is_done else answer.detail or "it was not answered"
        await asyncio.sleep(POLL)
        problem = store.why_no_requests() if request.id not in store.live_state.answers else ""
    return problem


class InboxSession:
    """The rows of the inbox, the one under the cursor, and the actions on it. Calls `changed` after each change."""

    def __init__(self, store: Store, changed: Callable[[], None] = lambda: None) -> None:
        self.store = store
        self.rows: list[Row] = []
        self.cursor = 0
        self.opened: str | None = None
        """Key of the open group."""
        self._changed = changed

    # Rows.

    def update(self, filter_words: str = "") -> bool:
        """Compute the rows. The cursor stays on its row. Return whether the open group is gone."""
        was, group = self.row, self.group if self.opened is not None else None
        is_gone = self.opened is not None and group is None
        if is_gone:
            self.opened = None
        self.rows = [row for row in self._all_rows(group) if not filter_words or fits_words(filter_words, _words(row))]
        self._move_to(row_key(was) if was is not None else "")
        return is_gone

    def _all_rows(self, group: ItemGroup | None) -> Sequence[Row]:
        return group.items if group is not None else [*self.store.inbox(), *self.store.state.rules.values()]

    def _move_to(self, key: str) -> None:
        keys = [row_key(row) for row in self.rows]
        self.cursor = keys.index(key) if key in keys else max(0, min(self.cursor, len(keys) - 1))

    def open_group(self, group: ItemGroup) -> None:
        self.opened, self.cursor = group.key, 0
        self._changed()

    def close_group(self) -> None:
        """Return to the list of groups, with the cursor on the group that was open."""
        key, self.opened = self.opened, None
        self.update()
        self._move_to(key or "")
        self._changed()

    @property
    def row(self) -> Row | None:
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def group(self) -> ItemGroup | None:
        """The open group, or the one under the cursor."""
        if self.opened is not None:
            return next((group for group in self.store.inbox() if group.key == self.opened), None)
        return self.row if isinstance(self.row, ItemGroup) else None

    @property
    def item(self) -> Item | None:
        """The item under the cursor. For a group, its first item."""
        if isinstance(self.row, ItemGroup):
            return next(iter(self.row.answerable), self.row.items[0])
        return self.row if isinstance(self.row, Item) else None

    @property
    def rule(self) -> AnswerRule | None:
        return self.row if isinstance(self.row, AnswerRule) else None

    @property
    def tests(self) -> tuple[str, ...]:
        if isinstance(self.row, ItemGroup):
            return self.row.tests
        return (self.row.test,) if isinstance(self.row, Item) and self.row.test else ()

    @property
    def record(self) -> TestRecord | None:
        return self.store.record(self.item.test) if self.item is not None else None

    def is_answering(self, row: Row) -> bool:
        """Return whether an answer to the row is being delivered."""
        items = row.items if isinstance(row, ItemGroup) else (row,)
        return any(item.id in self.store.answering() for item in items)

    def why_no_row(self) -> str:
        return "" if self.row is not None else NOTHING_HERE

    def why_no_group(self) -> str:
        return "" if self.group is not None else NOTHING_HERE

    # Answers.

    def why_not_answer(self) -> str:
        """Return why the item under the cursor cannot be answered with a text, or ""."""
        if self.item is None:
            return NOTHING_HERE
        if self.is_answering(self.item):
            return "an answer is being sent"
        return self.item.problem or self.store.why_no_requests()

    def why_not_yes_or_no(self) -> str:
        reason, item = self.why_not_answer(), self.item
        if reason or item is None or item.options == (YES, NO):
            return reason
        if has_digits(item):
            return "yes or no does not answer this: press Enter and a digit, or m"
        return "this needs a text: press m"

    def why_no_option(self, number: int) -> str:
        """Return why the option of this number cannot be chosen, or ""."""
        reason, item = self.why_not_answer(), self.item
        if reason or item is None or 1 <= number <= len(item.options):
            return reason
        has = f"this item has {counted(len(item.options), 'option')}"
        return has if item.options else "no options: press m to write an answer"

    def why_not_answer_all(self) -> str:
        group = self.group
        if group is None:
            return NOTHING_HERE
        reason = self.store.why_no_requests()
        if reason or not group.answerable:
            return reason or group.items[0].problem
        item = group.answerable[0]
        return "" if has_digits(item) or item.options == (YES, NO) else "this needs a text: press m to answer one agent"

    def answer(self, text: str) -> str:
        """Send an answer to the item under the cursor. Return why it was not sent, or ""."""
        item = self.item
        if item is None:
            return NOTHING_HERE
        _, problem = send_answer(self.store, [(item.id, item.question)], text)
        if not problem:
            self._changed()
        return problem

    def risk(self, *, of_all: bool = False) -> str:
        """Return what makes the item under the cursor, or any of its group, dangerous to approve, or ""."""
        group = self.group
        items = group.answerable if of_all and group is not None else (self.item,)
        return next(filter(None, (risk_of(item.question) for item in items if item is not None)), "")

    # Later.

    def defer(self) -> bool:
        """Defer the item or group under the cursor, or undo that. Return whether it is now deferred."""
        group, item = self.group, self.item
        assert group is not None
        assert item is not None
        items = (item,) if self.opened is not None else group.items
        self.store.put_off.change([each.id for each in items], is_deferred=not group.is_deferred)
        self._changed()
        return not group.is_deferred

    # Rules.

    def proposed_rules(self) -> list[AnswerRule]:
        """Return the rules that would answer the item under the cursor, narrowest first."""
        item, record = self.item, self.record
        return proposed_rules(item.question, record.own_places) if record and item is not None and item.question else []

    def waiting_for(self, rule: AnswerRule) -> int:
        """Return the number of open questions that a rule would answer."""
        records = self.store.state.records.values()
        questions = [(record, each.question) for record in records for each in record.open_questions]
        return sum(fits(rule, question, common_subject(question, record.own_places)) for record, question in questions)

    def why_no_rule(self) -> str:
        if self.item is None:
            return NOTHING_HERE
        reason = self.store.why_no_requests()
        return reason or ("" if self.proposed_rules() else "rules work only for permissions with a complete command")

    def add_rule(self, rule: AnswerRule) -> None:
        self.store.send_request(RequestKind.ADD_RULE, rule=rule)

    def why_not_remove_rule(self) -> str:
        return self.store.why_no_requests() if self.rule is not None else "no rule under the cursor"

    def remove_rule(self) -> None:
        if self.rule is not None:
            self.store.send_request(RequestKind.REMOVE_RULE, text=self.rule.id)


def row_key(row: Row) -> str:
    """Return the key that identifies a row in the next update."""
    return row.key if isinstance(row, ItemGroup) else row.id


def _words(row: Row) -> str:
    """Return the words that a filter searches."""
    if isinstance(row, AnswerRule):
        return f"rule {row.id} {row.words}"
    if isinstance(row, Item):
        return f"{row.title} {row.test} {row.agent}"
    return " ".join((row.kind.value, row.title, *(item.title for item in row.items), *row.tests))
