"""Events of questions and rules: what they change, and their log lines."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from swarm_tui.model.event import Event
from swarm_tui.model.questions import AnswerRule, OpenQuestion, item_id
from swarm_tui.model.results import State
from swarm_tui.questions.events import (
    BY_TYPING,
    QuestionAnswered,
    QuestionAsked,
    QuestionClosed,
    RuleAdded,
    RuleRemoved,
)
from tests.journal.folding import ASK, FULL, MORE, TEST, check_line, check_record, check_sweep, folded, type_name

RULE = AnswerRule(id="r1", tool="Bash", way="begins", pattern="pytest", by="ann")


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (
            QuestionAsked(at=9, test=TEST, question=MORE),
            {"open_questions": (*FULL.open_questions, OpenQuestion(MORE, item_id(TEST, MORE))), "questions_until": 9.0},
        ),
        (
            QuestionAnswered(at=9, test=TEST, question="1", text="yes", by="bob", rule="r1"),
            {"open_questions": (OpenQuestion(ASK, "item", 9, "bob (r1)"),)},
        ),
        (QuestionAnswered(at=9, test=TEST, question="2", text="yes", by="bob"), {}),
        (QuestionClosed(at=9, test=TEST, question="1", why="answered"), {"open_questions": ()}),
        (QuestionClosed(at=9, test=TEST, question="2"), {}),
    ],
    ids=type_name,
)
def test_event_changes_fields_of_record(event: Event, changes: dict[str, Any]) -> None:
    check_record(event, changes)


@pytest.mark.parametrize(
    ("events", "changes"),
    [
        ([RuleAdded(seq=3, at=3, rule=RULE)], {"rules": {"r1": RULE}, "rules_made": 1}),
        ([RuleAdded(seq=2, at=2, rule=RULE), RuleRemoved(seq=3, at=3, rule="r1")], {"rules_made": 1}),
    ],
)
def test_event_changes_fields_of_sweep(events: list[Event], changes: dict[str, Any]) -> None:
    check_sweep(events, changes)


def test_waiting_agent_shows_oldest_question() -> None:
    waiting = structs.replace(
        FULL, state=State.WAITING, question="may I? (and 1 more)", open_questions=(OpenQuestion(ASK, "1"),)
    )
    both = folded(waiting, QuestionAsked(at=8, test=TEST, question=MORE))
    assert both.records[TEST].question == "may I?"
    both.apply_all([QuestionClosed(at=9, test=TEST, question="1")])
    assert (both.records[TEST].question, both.records[TEST].options) == ("and that?", ("yes", "no"))
    both.apply_all([QuestionClosed(at=9, test=TEST, question="2")])
    assert (both.records[TEST].question, both.records[TEST].options, both.records[TEST].open_questions) == ("", (), ())


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (QuestionAsked(test=TEST, question=MORE), None),
        (
            QuestionAnswered(test=TEST, question="1", text="yes", by="bob", rule="r1"),
            ("info", "bob answered by rule r1: yes", TEST),
        ),
        (QuestionClosed(test=TEST, question="1", why="answered"), None),
        (
            QuestionClosed(test=TEST, question="1"),
            ("info", "question closed without an answer from swarm-tui: its hook exited", TEST),
        ),
        (
            QuestionClosed(test=TEST, question="1", why=BY_TYPING),
            ("warning", f"question closed without an answer from swarm-tui: {BY_TYPING}", TEST),
        ),
        (RuleRemoved(rule="r1", by="ann"), ("info", "ann removed rule r1", "")),
    ],
    ids=type_name,
)
def test_event_gives_log_line(event: Event, line: tuple[str, str, str] | None) -> None:
    check_line(event, line)
