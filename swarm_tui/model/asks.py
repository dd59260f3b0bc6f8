"""What agents ask a person through a hook, one by one, and what can be said to it.

Each ask has an identity, so that an answer reaches the very ask that a person has seen, or nothing.
"""

from __future__ import annotations

import base64
import hashlib
from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

YES: Final = "yes"
NO: Final = "no"
YES_WORDS: Final = frozenset({"y", YES, "ok", "allow"})
NO_WORDS: Final = frozenset({"n", NO, "deny"})
ANSWER_LIMIT: Final = 20_000


class AskKind(StrEnum):
    """What an agent may ask for."""

    PERMISSION = "permission"
    PLAN = "plan"
    QUESTION = "question"
    INPUT = "input"


class AskedQuestion(BaseModel):
    """One of the questions of an ask, or one field that is to be filled in."""

    model_config = ConfigDict(frozen=True)

    key: str
    """The name by which the agent gets the answer."""
    text: str
    options: tuple[str, ...] = ()
    is_many: bool = False
    """Whether several of the options may be chosen."""


class Ask(BaseModel):
    """One thing that an agent asks."""

    model_config = ConfigDict(frozen=True)

    id: str
    """As its hook knows it; no other ask of this agent ever has it."""
    at: float = 0.0
    kind: AskKind = AskKind.PERMISSION
    text: str = ""
    """All of it in words."""
    tool: str = ""
    subject: str = ""
    """What the tool is to be used on: the whole command, the file, the address."""
    detail: str = ""
    """What else the tool is called with."""
    questions: tuple[AskedQuestion, ...] = ()
    subagent: str = ""
    is_inexact: bool = False
    """Whether the subject is not what is shown here: it was cut, or had signs that a terminal must not get."""

    @property
    def options(self) -> tuple[str, ...]:
        """The answers that can be chosen by their numbers."""
        if not self.questions:
            return YES, NO
        return self.questions[0].options if len(self.questions) == 1 else ()


class OpenAsk(NamedTuple):
    """An ask that its agent still waits with, and who has answered it so far."""

    ask: Ask
    item: str
    """Its id in the inbox."""
    answered_at: float | None = None
    answered_by: str = ""


class EndedAsk(NamedTuple):
    """An ask that its agent does not wait with any more, and what ended it."""

    ask: Ask
    why: str
    """`answered` where an answer of ours was taken; else in words, such as `on the screen`."""


def identity(*parts: str) -> str:
    """Return a short id that is the same for the same parts, on every machine."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest[:5]).decode().lower()


def item_of_ask(test: str, ask: Ask) -> str:
    """Return the id of an ask in the inbox: another one as soon as anything about it is different."""
    return identity(test, ask.model_dump_json())


def answer_problem(ask: Ask, text: str) -> str:
    """Return why a text is no answer to an ask, or ""."""
    if not text.strip():
        return "there is no answer in that"
    if len(text) > ANSWER_LIMIT:
        return f"an answer has at most {ANSWER_LIMIT:,} characters, and that has {len(text):,}: name a file instead"
    if not ask.questions and _begins_with_yes(text) and not permission_in(text)[0]:
        return "a yes goes without words: say `yes` alone, or `no` and why"
    lines = text.strip().split("\n")
    if len(ask.questions) > 1 and len(lines) != len(ask.questions):
        return f"it asks {len(ask.questions)} questions: the answer needs a line for each of them"
    asked = ask.questions or (AskedQuestion(key="", text="", options=(YES, NO)),)
    problems = (_option_problem(question, line) for question, line in zip(asked, lines, strict=False))
    return next(filter(None, problems), "")


def answers_by_key(ask: Ask, text: str) -> dict[str, str]:
    """Return what a text says to each question: an option by its number, several as `1,3`, or words."""
    lines = [text.strip()] if len(ask.questions) == 1 else text.strip().split("\n")
    return {question.key: _chosen(question, line.strip()) for question, line in zip(ask.questions, lines, strict=False)}


def _chosen(question: AskedQuestion, text: str) -> str:
    numbers = _numbers_in(question, text)
    if numbers and all(1 <= number <= len(question.options) for number in numbers):
        return ", ".join(question.options[number - 1] for number in dict.fromkeys(numbers))
    return text


def _option_problem(question: AskedQuestion, text: str) -> str:
    """Return why a text that is made of numbers chooses no options, or ""."""
    number = len(question.options)
    missing = [each for each in _numbers_in(question, text) if not 1 <= each <= number]
    if not question.options or not missing or text.strip() in question.options:
        return ""
    return f"there is no option {missing[0]}, only 1 to {number}: say it in words if it is no option's number"


def _numbers_in(question: AskedQuestion, text: str) -> list[int]:
    """Return the numbers of a text that has nothing else in it, else nothing."""
    words = text.replace(",", " ").split() if question.is_many else [text.strip()]
    is_made_of_numbers = all(word.isascii() and word.isdigit() and len(word) < 10 for word in words)
    return [int(word) for word in words] if is_made_of_numbers else []


def _begins_with_yes(text: str) -> bool:
    words = text.split(None, 1)
    return bool(words) and words[0].lower().rstrip(",.:;!") in YES_WORDS


def permission_in(text: str) -> tuple[bool, str]:
    """Return whether a text allows, and its further words: whatever is not clearly a yes is a no with a reason."""
    chosen = {"1": YES, "2": NO}.get(text.strip(), text.strip())
    first, _, rest = chosen.partition(" ")
    word = first.lower().rstrip(",.:;!")
    if word in YES_WORDS and not rest.strip():
        return True, ""
    return False, rest.strip() if word in NO_WORDS else chosen
