"""Answers to items of the inbox: one agent, a whole group, later, or by a rule for the rest of the sweep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from swarm_tui.errors import SwarmError
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import NO, YES, AnswerRule, answer_problem, common_subject, fits
from swarm_tui.questions.groups import proposed_rules
from swarm_tui.questions.inbox import Item
from swarm_tui.room.actions import OF_NO_SWEEP, Action
from swarm_tui.room.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.inbox.draw import has_digits
from swarm_tui.room.store import VIEW_CHANGED

if TYPE_CHECKING:
    from swarm_tui.room.inbox.screen import InboxScreen

NOTHING_HERE: Final = "nothing under the cursor"


class AnswerCommands:
    """Actions that answer items of the inbox."""

    def __init__(self, screen: InboxScreen) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("inbox.yes", ("y",), "yes", "Answer yes to the item under the cursor (one agent)", self.say_yes,
                   self.why_not_yes_or_no, rank=1, is_of_now=True, is_hidden=True),
            Action("inbox.no", ("n",), "no", "Answer no to the item under the cursor (one agent)", self.say_no,
                   self.why_not_yes_or_no, rank=2, is_of_now=True, is_hidden=True),
            Action("inbox.answer_all", ("A",), "answer all",
                   "Answer all items of the group: one agent first, then the others", self.answer_group,
                   self.why_no_group, rank=3, is_of_now=True, is_hidden=True),
            Action("inbox.message", ("m",), "write", "Write an answer (one agent)", self.write_answer,
                   self.why_not_answer, rank=4, is_of_now=True, opens_box=True),
            Action("inbox.later", ("l",), "later", "Defer to the end of the list until it changes; again: undo",
                   self.put_off, lambda: "" if self._screen.current_group() is not None else NOTHING_HERE, rank=5,
                   is_of_now=True),
            Action("inbox.make_rule", ("r",), "always", "Always answer yes to this in this sweep; shows the rule first",
                   self.make_rule, self.why_no_rule, rank=6, is_of_now=True, why_not_in_watch=OF_NO_SWEEP,
                   is_hidden=True),
            Action("inbox.end_rule", ("u",), "", "Remove the rule under the cursor", self.end_rule,
                   self.why_not_end_rule, rank=8, is_of_now=True, why_not_in_watch=OF_NO_SWEEP),
        )  # fmt: skip

    # One item.

    def why_not_answer(self) -> str:
        item = self._screen.current_item()
        if item is None:
            return NOTHING_HERE
        if item.id in self._screen.store.answering():
            return "an answer is being sent"
        return item.problem or self._screen.store.why_no_requests()

    def why_not_yes_or_no(self) -> str:
        item = self._screen.current_item()
        reason = self.why_not_answer()
        if not reason and item is not None and item.options != (YES, NO):
            reason = (
                "yes or no does not answer this: press Enter and a digit, or m"
                if has_digits(item)
                else "this needs a text: press m"
            )
        return reason

    def say_yes(self) -> None:
        self._answer_current(YES)

    def say_no(self) -> None:
        self._answer_current(NO)

    def choose(self, digit: int) -> None:
        """Answer the current item with the option of this number."""
        item, reason = self._screen.current_item(), self.why_not_answer()
        if reason or item is None:
            self._screen.show_message(f"answer: {reason}", "warning")
        elif not 1 <= digit <= len(item.options):
            has = (
                f"this item has {counted(len(item.options), 'option')}"
                if item.options
                else "no options: press m to write an answer"
            )
            self._screen.show_message(f"answer: {has}", "warning")
        elif has_digits(item):
            self._answer_current(str(digit))
        else:
            # A question that allows several options.
            self._write(item, str(digit))

    def _answer_current(self, text: str) -> None:
        """Send the answer to the item under the cursor to the engine."""
        item, store = self._screen.current_item(), self._screen.store
        if item is None:
            return
        problem = store.why_no_requests() or (answer_problem(item.ask, text) if item.ask is not None else "")
        if problem:
            self._screen.show_message(f"answer: {problem}", "warning")
            return
        try:
            store.send_request(RequestKind.ANSWER, text=text, items=[item.id])
        except SwarmError as error:
            store.note("error", f"cannot send the answer: {error}")
            self._screen.show_message(str(error), "error")
            return
        self._screen.show_message("1 answer: sent to the engine")
        self._screen.apply_change(VIEW_CHANGED)

    def write_answer(self) -> None:
        """Open a text box for an answer to one agent, below its question."""
        item = self._screen.current_item()
        if item is not None:
            self._write(item)

    def _write(self, item: Item, text: str = "") -> None:
        from swarm_tui.room.message import MessageScreen, deliver_answer

        store, record = self._screen.store, self._screen.current_record()
        if record is None:
            return
        receiver = record._replace(question=item.text, options=item.options)
        ask = item.ask

        async def deliver(answer: str) -> str:
            return await deliver_answer(store, [(item.id, ask)], answer)

        def tell(is_accepted: bool | None) -> None:
            if not is_accepted:
                self._screen.show_message("nothing was answered")
            self._screen.apply_change(VIEW_CHANGED)

        box = MessageScreen([receiver], self._screen.room.drafts, deliver, ask=ask, text=text)
        self._screen.room.push_screen(box, tell)

    # Whole groups.

    def why_no_group(self) -> str:
        group = self._screen.current_group()
        if group is None:
            return NOTHING_HERE
        reason = self._screen.store.why_no_requests()
        if reason or not group.answerable:
            return reason or group.items[0].problem
        item = group.answerable[0]
        return "" if has_digits(item) or item.options == (YES, NO) else "this needs a text: press m to answer one agent"

    def answer_group(self) -> None:
        """Open the screen that answers all items of the group."""
        from swarm_tui.room.inbox.screen import GroupAnswerScreen

        def tell(words: str | None) -> None:
            self._screen.show_message(words or "nothing was answered")
            self._screen.apply_change(VIEW_CHANGED)

        group = self._screen.current_group()
        if group is not None:
            self._screen.room.push_screen(GroupAnswerScreen(group, self._screen.store), tell)

    # Later.

    def put_off(self) -> None:
        """Defer the item under the cursor, or undo that."""
        group, item = self._screen.current_group(), self._screen.current_item()
        if group is None or item is None:
            return
        items: Iterable[Item] = [item] if self._screen.opened is not None else group.items
        is_later = not group.is_later
        self._screen.store.put_off.change([each.id for each in items], is_later=is_later)
        back = "deferred to the end of the list until it changes" if is_later else "not deferred any more"
        self._screen.show_message(f"later: {back}")
        self._screen.apply_change(VIEW_CHANGED)

    # Rules.

    def _proposed(self) -> list[AnswerRule]:
        item, record = self._screen.current_item(), self._screen.current_record()
        if item is None or item.ask is None or record is None:
            return []
        return proposed_rules(item.ask, record.own_places)

    def why_no_rule(self) -> str:
        if self._screen.current_item() is None:
            return NOTHING_HERE
        reason = self._screen.store.why_no_requests()
        return reason or ("" if self._proposed() else "rules work only for permissions with a complete command")

    def make_rule(self) -> None:
        """Let the user choose how much the rule allows, confirm the rule, and add it."""
        rules = self._proposed()
        entries = [
            Choosable(str(number), rule.words, key=str(number + 1), detail=f"{self._waiting_for(rule)} asking this now")
            for number, rule in enumerate(rules)
        ]

        def confirm(values: tuple[str, ...] | None) -> None:
            if not values:
                self._screen.show_message("no rule was added")
                return
            rule = rules[int(values[0])]
            details = [rule.words, f"{self._waiting_for(rule)} asking this now get the same answer"]
            details.append("press u to remove the rule; earlier answers are not undone")
            question = ConfirmScreen("Always answer yes, until this sweep ends?", details)
            self._screen.room.push_screen(question, lambda is_yes: self._send_rule(rule) if is_yes else None)

        self._screen.room.push_screen(PickScreen("Always answer yes in this sweep to", entries), confirm)

    def _waiting_for(self, rule: AnswerRule) -> str:
        records = self._screen.store.state.records.values()
        number = sum(
            fits(rule, ask.ask, common_subject(ask.ask, record.own_places)) for record in records for ask in record.asks
        )
        return counted(number, "agent")

    def _send_rule(self, rule: AnswerRule) -> None:
        try:
            self._screen.store.send_request(RequestKind.MAKE_RULE, rule=rule)
        except SwarmError as error:
            self._screen.show_message(str(error), "error")

    def why_not_end_rule(self) -> str:
        if self._screen.current_rule() is None:
            return "no rule under the cursor"
        return self._screen.store.why_no_requests()

    def end_rule(self) -> None:
        rule = self._screen.current_rule()
        if rule is not None:
            self._screen.store.send_request(RequestKind.END_RULE, text=rule.id)
