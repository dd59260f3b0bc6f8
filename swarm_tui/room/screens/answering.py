"""Answers from the inbox: one, a whole group, words, later, and rules for the rest of the sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from swarm_tui.errors import SwarmError
from swarm_tui.insight.ask_groups import proposed_rules
from swarm_tui.insight.inbox import Item, ItemGroup
from swarm_tui.model.asks import NO, YES, answer_problem
from swarm_tui.model.formatting import counted
from swarm_tui.model.requests import Request, RequestKind
from swarm_tui.model.rules import AnswerRule, common_subject, fits
from swarm_tui.room.actions import OF_NO_SWEEP, Action
from swarm_tui.room.screens.dialog import Choosable, ConfirmScreen, PickScreen
from swarm_tui.room.store import VIEW_CHANGED

if TYPE_CHECKING:
    from swarm_tui.room.screens.inbox import InboxScreen

NOTHING_HERE: Final = "there is nothing under the cursor"


class AnswerCommands:
    """The actions by which the inbox is answered."""

    def __init__(self, screen: InboxScreen) -> None:
        self._screen = screen

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("inbox.yes", ("y",), "yes", "Yes to what is under the cursor: to one agent", self.say_yes,
                   self.why_not_yes_or_no, rank=1, is_of_now=True),
            Action("inbox.no", ("n",), "no", "No to what is under the cursor: to one agent", self.say_no,
                   self.why_not_yes_or_no, rank=2, is_of_now=True),
            Action("inbox.answer_all", ("A",), "answer all", "Answer whole groups, from this one on: one agent first, "
                   "then the others", self.answer_groups, self.why_no_group, rank=3, is_of_now=True),
            Action("inbox.message", ("m",), "write", "Write the answer: to one agent", self.write_answer, rank=4),
            Action("inbox.later", ("l",), "later", "Later: to the end of the list until it changes; again: back",
                   self.put_off, lambda: "" if self._screen.current_group() is not None else NOTHING_HERE, rank=5,
                   is_of_now=True),
            Action("inbox.make_rule", ("r",), "always", "Always yes to this, for this sweep: shows the rule first",
                   self.make_rule, self.why_no_rule, rank=6, is_of_now=True, why_not_in_watch=OF_NO_SWEEP),
            Action("inbox.end_rule", ("u",), "", "Take the rule under the cursor back", self.end_rule,
                   self.why_not_end_rule, rank=8, is_of_now=True, why_not_in_watch=OF_NO_SWEEP),
        )  # fmt: skip

    # One.

    def why_not_answer(self) -> str:
        item = self._screen.current_item()
        if item is None:
            return NOTHING_HERE
        if item.id in self._screen.store.answering():
            return "an answer is on its way"
        return item.problem or self._screen.store.why_no_requests()

    def why_not_yes_or_no(self) -> str:
        item = self._screen.current_item()
        reason = self.why_not_answer()
        if not reason and item is not None and item.options != (YES, NO):
            reason = "it wants more than yes or no: Enter, then a digit, or m" if item.options else "it wants words: m"
        return reason

    def say_yes(self) -> None:
        self._answer_current(YES)

    def say_no(self) -> None:
        self._answer_current(NO)

    def choose(self, digit: int) -> None:
        """Answer the member under the cursor with the option of this number."""
        item, reason = self._screen.current_item(), self.why_not_answer()
        if reason or item is None:
            self._screen.show_message(f"answer: {reason}", "warning")
        elif not 1 <= digit <= len(item.options):
            has = f"it has {counted(len(item.options), 'option')}" if item.options else "it has no options: m writes"
            self._screen.show_message(f"answer: {has}", "warning")
        else:
            self._answer_current(str(digit))

    def _answer_current(self, text: str) -> None:
        item = self._screen.current_item()
        if item is not None:
            self.send([item], text)

    def send(self, items: Sequence[Item], text: str) -> Request | None:
        """Have the engine answer these very items; return the request, None when there is none."""
        store = self._screen.store
        problem = store.why_no_requests()
        problem = problem or next((answer_problem(item.ask, text) for item in items if item.ask is not None), "")
        if problem:
            self._screen.show_message(f"answer: {problem}", "warning")
            return None
        try:
            request = store.send_request(RequestKind.ANSWER, text=text, items=[item.id for item in items])
        except SwarmError as error:
            store.note("error", f"the answer could not be handed over: {error}")
            self._screen.show_message(str(error), "error")
            return None
        self._screen.show_message(f"{counted(len(items), 'answer')}: handed to the engine")
        self._screen.apply_change(VIEW_CHANGED)
        return request

    def write_answer(self) -> None:
        """Write an answer to one agent, below what it asks."""
        from swarm_tui.room.screens.message import MessageScreen

        item = self._screen.current_item()
        record = self._screen.current_record()
        drafts, why_nobody = self._screen.room.drafts, self.why_not_answer()
        asking = [] if record is None or item is None else [record._replace(question=item.text, options=item.options)]

        def send(text: str | None) -> None:
            if not text or item is None:
                self._screen.show_message("nothing was answered")
            elif self.send([item], text) is None and record is not None:
                drafts[record.test] = text

        # In the past the composer opens on those whom the draft is for.
        receivers = asking if self._screen.store.past is not None or not why_nobody else []
        self._screen.room.push_screen(MessageScreen(receivers, drafts, why_nobody=why_nobody), send)

    # Whole groups.

    def why_no_group(self) -> str:
        if self._screen.current_group() is None:
            return NOTHING_HERE
        return self._screen.store.why_no_requests() or (
            "" if self._groups() else "nothing from here on can be answered as a group"
        )

    def _groups(self) -> list[ItemGroup]:
        """Return the groups from the one under the cursor on that can be answered; only the open one if one is."""
        current, groups = self._screen.current_group(), self._screen.store.inbox()
        keys = [group.key for group in groups]
        if current is None or current.key not in keys:
            return []
        chosen = [current] if self._screen.opened is not None else groups[keys.index(current.key) :]
        choosable = [group for group in chosen if group.answerable and group.answerable[0].options]
        return [group for group in choosable if not group.is_later or group is current]

    def answer_groups(self) -> None:
        """Walk through the groups from here on, each answered as a whole."""
        from swarm_tui.room.screens.group_walk import GroupWalkScreen

        def tell(words: str | None) -> None:
            self._screen.show_message(words or "nothing was answered")
            self._screen.apply_change(VIEW_CHANGED)

        self._screen.room.push_screen(GroupWalkScreen(self._groups(), self._screen.store), tell)

    # Later.

    def put_off(self) -> None:
        """Put off what is under the cursor, or bring it back."""
        group, item = self._screen.current_group(), self._screen.current_item()
        if group is None or item is None:
            return
        items: Iterable[Item] = [item] if self._screen.opened is not None else group.items
        is_later = not group.is_later
        self._screen.store.put_off.change([each.id for each in items], is_later=is_later)
        back = "at the end of the list; it comes back when it changes" if is_later else "back in its place"
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
        return reason or ("" if self._proposed() else "a rule is for permissions whose command is seen whole")

    def make_rule(self) -> None:
        """Let the person choose how much is allowed from now on, and confirm the very rule."""
        rules = self._proposed()
        entries = [
            Choosable(str(number), rule.words, key=str(number + 1), detail=f"{self._waiting_for(rule)} ask that now")
            for number, rule in enumerate(rules)
        ]

        def confirm(values: tuple[str, ...] | None) -> None:
            if not values:
                self._screen.show_message("no rule was made")
                return
            rule = rules[int(values[0])]
            details = [rule.words, f"{self._waiting_for(rule)} that ask this now get the same answer"]
            details.append("u takes the rule back; what was allowed until then stays done")
            question = ConfirmScreen("Always yes, until this sweep ends?", details)
            self._screen.room.push_screen(question, lambda is_yes: self._send_rule(rule) if is_yes else None)

        self._screen.room.push_screen(PickScreen("Always yes, for this sweep, to", entries), confirm)

    def _waiting_for(self, rule: AnswerRule) -> str:
        records = self._screen.store.state.records.values()
        asked = sum(
            fits(rule, asked.ask, common_subject(asked.ask, record.own_places))
            for record in records
            for asked in record.asks
        )
        return counted(asked, "agent")

    def _send_rule(self, rule: AnswerRule) -> None:
        try:
            self._screen.store.send_request(RequestKind.MAKE_RULE, rule=rule)
        except SwarmError as error:
            self._screen.show_message(str(error), "error")

    def why_not_end_rule(self) -> str:
        if self._screen.current_rule() is None:
            return "there is no rule under the cursor"
        return self._screen.store.why_no_requests()

    def end_rule(self) -> None:
        rule = self._screen.current_rule()
        if rule is not None:
            self._screen.store.send_request(RequestKind.END_RULE, text=rule.id)
