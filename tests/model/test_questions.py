"""Answers are validated against the question before they are sent."""

from __future__ import annotations

import pytest
from msgspec import structs

from swarm_tui.model.questions import (
    Question,
    QuestionKind,
    QuestionPart,
    answer_problem,
    answers_by_key,
    question_lines,
)


def asked(*questions: QuestionPart, kind: QuestionKind = QuestionKind.QUESTION) -> Question:
    return Question(id="1", kind=kind, text="\n".join(question.text for question in questions), parts=questions)


RATE = QuestionPart(key="rate", text="Which rate?", options=("19", "sixteen"), descriptions=("as in the test", ""))
FILES = QuestionPart(key="files", text="Which files?", options=("a.py", "b.py", "c.py"), is_many=True)
PORT = QuestionPart(key="port", text="Port", field="integer", least=1, most=65535)
SHARE = QuestionPart(key="share", text="Share", field="number", most=1, is_needed=False)
MAIL = QuestionPart(key="mail", text="Mail", field="text", format="email", is_needed=False)
MODE = QuestionPart(key="mode", text="Mode", field="text", options=("slow", "fast"))
PUBLIC = QuestionPart(key="public", text="Public?", field="boolean", options=("yes", "no"))


@pytest.mark.parametrize(
    ("question", "text", "problem"),
    [
        (RATE, "1", ""),
        (RATE, "Sixteen", ""),
        (RATE, "as the tutorial says", ""),
        (RATE, "1,2", "choose only one option, 1 to 2"),
        (RATE, "1 2", "choose only one option, 1 to 2"),
        (RATE, "3", "invalid option 3, choose 1 to 2"),
        (RATE, "yes", "invalid option 'yes'; the options are 1 19, 2 sixteen"),
        (RATE, "no", "invalid option 'no'"),
        (RATE, "no, neither of them", ""),
        (FILES, "1,3", ""),
        (FILES, "a.py, C.py", ""),
        (FILES, "1,4", "invalid option 4, choose 1 to 3"),
        (structs.replace(FILES, field="text", most=2), "1,2,3", "choose at most 2 by number"),
        (PORT, "80", ""),
        (PORT, "maybe", "invalid answer 'maybe'; expected a whole number, 1 to 65535"),
        (PORT, "80.5", "invalid answer '80.5'"),
        (PORT, "0", "invalid answer '0'"),
        (PORT, "99999", "invalid answer '99999'"),
        (PORT, "1" * 5_000, "invalid answer"),
        (PORT, " ", "the answer is empty"),
        (SHARE, "0.5", ""),
        (SHARE, "nan", "invalid answer 'nan'; expected a number, at most 1; may be left empty"),
        (SHARE, "inf", "invalid answer"),
        (MAIL, "ada@example.org", ""),
        (MAIL, "ada", "expected an email address"),
        (MODE, "2", ""),
        (MODE, "FAST", ""),
        (MODE, "medium", "invalid option 'medium'; the options are 1 slow, 2 fast"),
        (MODE, "1,2", "choose only one option, 1 to 2"),
        (PUBLIC, "no", ""),
        (PUBLIC, "true", ""),
        (PUBLIC, "perhaps", "invalid option 'perhaps'; the options are 1 yes, 2 no"),
    ],
)
def test_answer_problem_one_question(question: QuestionPart, text: str, problem: str) -> None:
    form = asked(question, kind=QuestionKind.INPUT if question.field else QuestionKind.QUESTION)
    found = answer_problem(form, text)
    assert problem in found
    assert bool(problem) == bool(found)


def test_answer_problem_several_questions_checks_each_line() -> None:
    question = asked(RATE, FILES)
    assert answer_problem(question, "1\n1,2") == ""
    assert answer_problem(question, "1,2\n1").startswith("1 of 2: choose only one option")
    assert answer_problem(question, "1\n").startswith("the agent asks 2 questions")
    form = asked(PORT, SHARE, MAIL, kind=QuestionKind.INPUT)
    assert answer_problem(form, "80") == ""
    assert (
        answer_problem(form, "80\n\nada")
        == "3 of 3: invalid answer 'ada'; expected an email address; may be left empty"
    )
    assert answers_by_key(form, "80\n\nada@example.org") == {"port": "80", "mail": "ada@example.org"}
    assert answer_problem(form, "\n0.5") == "1 of 3: the answer is empty"


def test_asked_lines_lists_all_parts() -> None:
    assert question_lines(asked(RATE, FILES)) == [
        "1 of 2: Which rate?",
        "  1 19: as in the test",
        "  2 sixteen",
        "  (choose one by its number, or answer in words)",
        "2 of 2: Which files?",
        "  1 a.py",
        "  2 b.py",
        "  3 c.py",
        "  (choose one or more by number, such as 1,2, or answer in words)",
        "one line for each question",
    ]
    form = Question(id="1", kind=QuestionKind.INPUT, text="About the server", parts=(PORT,))
    assert question_lines(form) == [
        "About the server",
        "Port",
        "  (a whole number, 1 to 65535)",
        "`decline` to refuse",
    ]
