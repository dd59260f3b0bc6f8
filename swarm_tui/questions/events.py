"""Events about questions and rules, how they change the state, and their log lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from swarm_tui.model.event import Event, LogLine, TestEvent
from swarm_tui.model.questions import AnswerRule, OpenQuestion, Question, item_id
from swarm_tui.model.results import State

if TYPE_CHECKING:
    from swarm_tui.journal.state import SweepState


BY_TYPING: Final = "on the screen while a message was being typed there; a keystroke may have answered it"
"""The reason why a question was closed that the user perhaps did not answer on purpose."""


def _change_questions(state: SweepState, test: str, open_questions: tuple[OpenQuestion, ...], **more: Any) -> None:
    """Replace the open questions of a test. A waiting agent shows its oldest question until the next poll."""
    record = state.find(test)
    if record is not None and record.state is State.WAITING:
        first = open_questions[0].question if open_questions else None
        more |= {"question": first.text if first else "", "options": first.options if first else ()}
    state.change(test, open_questions=open_questions, **more)


class QuestionAsked(TestEvent, frozen=True):
    """An agent asked a question through its hook and is waiting for the answer."""

    question: Question

    def apply(self, state: SweepState) -> None:
        record = state.find_or_new(self.test)
        open_questions = tuple(each for each in record.open_questions if each.question.id != self.question.id)
        open_questions = (*open_questions, OpenQuestion(self.question, item_id(self.test, self.question)))
        _change_questions(
            state, self.test, open_questions, questions_until=max(record.questions_until, self.question.at)
        )


class QuestionAnswered(TestEvent, frozen=True):
    """An answer was written to the file that the agent's hook reads."""

    question: str
    text: str = ""
    by: str = ""
    rule: str = ""
    """The id of the rule that answered; empty if the user answered."""

    def apply(self, state: SweepState) -> None:
        by = f"{self.by} ({self.rule})" if self.rule else self.by
        open_questions = tuple(
            each._replace(answered_at=self.at, answered_by=by) if each.question.id == self.question else each
            for each in state.find_or_new(self.test).open_questions
        )
        state.change(self.test, open_questions=open_questions)
        if self.rule:
            state.rule_uses[self.rule] += 1

    def log_line(self) -> LogLine | None:
        by_rule = f" by rule {self.rule}" if self.rule else ""
        return self.logged(f"{self.by or 'a user'} answered{by_rule}: {self.text}", test=self.test)


class QuestionClosed(TestEvent, frozen=True):
    """An agent no longer waits for an answer to a question."""

    question: str
    why: str = ""
    """`answered` if the agent received the answer; otherwise the reason, such as `on the screen`."""

    def apply(self, state: SweepState) -> None:
        record = state.find_or_new(self.test)
        open_questions = tuple(each for each in record.open_questions if each.question.id != self.question)
        if open_questions != record.open_questions:
            _change_questions(state, self.test, open_questions)
        else:
            state.change(self.test)

    def log_line(self) -> LogLine | None:
        if self.why == "answered":
            return None
        level = "warning" if self.why == BY_TYPING else "info"
        text = f"question closed without an answer from swarm-tui: {self.why or 'its hook exited'}"
        return self.logged(text, level, self.test)


class RuleAdded(Event, frozen=True):
    """The user added a rule that answers matching questions from now on."""

    rule: AnswerRule

    def apply(self, state: SweepState) -> None:
        state.rules[self.rule.id] = self.rule
        state.rules_made += 1

    def log_line(self) -> LogLine | None:
        rule = self.rule
        return self.logged(f"{rule.by or 'a user'} added rule {rule.id}, {rule.answer} to: {rule.words}")


class RuleRemoved(Event, frozen=True):
    """The user removed a rule."""

    rule: str
    by: str = ""

    def apply(self, state: SweepState) -> None:
        state.rules.pop(self.rule, None)

    def log_line(self) -> LogLine | None:
        return self.logged(f"{self.by or 'a user'} removed rule {self.rule}")
