"""Questions that agents ask the user through a hook, and validation of the answers.

The id of a question depends on its content, so an answer is delivered only to the question that was on screen.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, time
from enum import StrEnum
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

import msgspec

from swarm_tui.model.event import Value

YES: Final = "yes"
NO: Final = "no"
YES_WORDS: Final = frozenset({"y", YES, "ok", "allow"})
NO_WORDS: Final = frozenset({"n", NO, "deny"})
DECLINE: Final = "decline"
ANSWER_LIMIT: Final = 20_000
_IN_WORDS: Final = "; to answer with a number, add words"
_SEVERAL_NUMBERS: Final = re.compile(r"\d+(?:[\s,]+\d+)+", re.ASCII)


class QuestionKind(StrEnum):
    """The kind of a question."""

    PERMISSION = "permission"
    PLAN = "plan"
    QUESTION = "question"
    INPUT = "input"


class QuestionPart(Value, frozen=True, kw_only=True):
    """One part of a question: one of several questions asked together, or one field of a form."""

    key: str
    """The key of the answer that is returned to the agent."""
    text: str
    options: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    """The agent's description of each option; "" for an option without one."""
    is_many: bool = False
    """Whether the user may choose several options."""
    field: Literal["", "text", "integer", "number", "boolean"] = ""
    """The type of a form field; empty for a question, which accepts any text."""
    is_needed: bool = True
    format: str = ""
    """The required format of a text: `date`, `date-time`, `email` or `uri`."""
    least: float | None = None
    most: float | None = None
    """The range of a number, of the length of a text, or of the number of options to choose."""

    @property
    def hint(self) -> str:
        """Return how to answer the question, as text."""
        if self.is_many:
            return f"choose {self._count_words} by number, such as 1,2" + ("" if self.field else ", or answer in words")
        if self.options:
            words = "choose one by its number" + ("" if self.field else ", or answer in words")
        else:
            words = {"integer": "a whole number", "number": "a number", "text": "text"}.get(
                self.field, "answer in words"
            )
            words = FORMATS.get(self.format, words) + self._limit_words
        return words if self.is_needed else f"{words}; may be left empty"

    @property
    def _count_words(self) -> str:
        most = f"at most {self.most:g}" if self.most is not None else ""
        least = f"at least {self.least:g}" if self.least is not None else ""
        return ", ".join(filter(None, (least, most))) or "one or more"

    @property
    def _limit_words(self) -> str:
        unit = " characters" if self.field == "text" else ""
        if self.least is not None and self.most is not None:
            return f", {self.least:g} to {self.most:g}{unit}"
        if self.least is not None:
            return f", at least {self.least:g}{unit}"
        return f", at most {self.most:g}{unit}" if self.most is not None else ""


FORMATS: Final = {
    "date": "a date, such as 2026-11-19",
    "date-time": "a date and time, such as 2026-11-19T14:00:00Z",
    "email": "an email address",
    "uri": "a URL",
}


class Question(Value, frozen=True, kw_only=True):
    """One question of an agent: a permission, a plan to approve, several questions, or a form."""

    id: str
    """The id that the hook assigned; unique for this agent."""
    at: float = 0.0
    kind: QuestionKind = QuestionKind.PERMISSION
    text: str = ""
    """The complete question as text."""
    tool: str = ""
    subject: str = ""
    """The main argument of the tool: a command, a file or a URL."""
    detail: str = ""
    """The other arguments of the tool."""
    parts: tuple[QuestionPart, ...] = ()
    subagent: str = ""
    is_inexact: bool = False
    """Whether `subject` differs from the real one: it was truncated, or control characters were removed."""

    @property
    def heading(self) -> str:
        """The text above the questions; empty if the text consists of the questions only."""
        return "" if self.text == "\n".join(part.text for part in self.parts) else self.text

    @property
    def options(self) -> tuple[str, ...]:
        """The answers that the user can choose by number."""
        if not self.parts:
            return YES, NO
        return self.parts[0].options if len(self.parts) == 1 else ()


class OpenQuestion(NamedTuple):
    """A question that its agent still waits for, with its answer if one is on the way."""

    question: Question
    item: str
    """The id of the question in the inbox."""
    answered_at: float | None = None
    answered_by: str = ""


class ClosedQuestion(NamedTuple):
    """A closed question with the reason."""

    question: Question
    why: str
    """`answered` if the agent received an answer from swarm-tui; otherwise a phrase such as `on the screen`."""


def identity(*parts: str) -> str:
    """Return a short id derived from a hash of the parts."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest[:5]).decode().lower()


def item_id(test: str, question: Question) -> str:
    """Return the id of a question in the inbox. It changes if any field of the question changes."""
    return identity(test, msgspec.json.encode(question).decode())


def question_lines(question: Question) -> list[str]:
    """Return a complete question as lines: its text and its parts with options and hints."""
    lines = [question.heading] if question.heading else []
    number = len(question.parts)
    for index, part in enumerate(question.parts, 1):
        lines.append(f"{index} of {number}: {part.text}" if number > 1 else part.text)
        for option, (label, description) in enumerate(described_options(part), 1):
            lines.append(f"  {option} {label}" + (f": {description}" if description else ""))
        lines.append(f"  ({part.hint})")
    return [*lines, *closing_hints(question)]


def described_options(part: QuestionPart) -> list[tuple[str, str]]:
    """Return pairs of option and description."""
    return list(zip_longest(part.options, part.descriptions[: len(part.options)], fillvalue=""))


def closing_hints(question: Question) -> list[str]:
    """Return hints about the answer as a whole."""
    hints = ["one line for each question"] if len(question.parts) > 1 else []
    return hints + (["`decline` to refuse"] if question.kind is QuestionKind.INPUT else [])


def is_declined(question: Question, text: str) -> bool:
    """Return whether an answer declines a form. "no" does not if it is an option of the only field."""
    word = text.strip().lower()
    if question.kind is not QuestionKind.INPUT:
        return False
    is_value = len(question.parts) == 1 and word in map(str.lower, question.parts[0].options)
    return not is_value and (word == DECLINE or word in NO_WORDS)


def answer_problem(question: Question, text: str) -> str:
    """Return why a text is not a valid answer to a question, or ""."""
    if not text.strip():
        return "the answer is empty"
    if len(text) > ANSWER_LIMIT:
        return f"the answer has {len(text):,} characters, the limit is {ANSWER_LIMIT:,}; name a file instead"
    if not question.parts and _begins_with_yes(text) and not permission_in(text)[0]:
        return "`yes` takes no further words; answer `yes`, or `no` and the reason"
    if not question.parts:
        return _number_problem(QuestionPart(key="", text="", options=(YES, NO)), text.strip())
    if is_declined(question, text):
        return ""
    lines, number = _lines_of(question, text), len(question.parts)
    if len(lines) != number:
        return f"the agent asks {number} questions; answer with one line for each"
    for index, (part, line) in enumerate(zip(question.parts, lines, strict=True), 1):
        problem = _question_problem(part, line.strip())
        if problem:
            return f"{index} of {number}: {problem}" if number > 1 else problem
    return ""


def answers_by_key(question: Question, text: str) -> dict[str, str | list[str]]:
    """Return the answer to each question by its key. A line chooses options by number (`1,3`) or is free text.

    Empty fields of a form are omitted. Several options of a form field are a list.
    """
    lines = _lines_of(question, text)
    answers: dict[str, str | list[str]] = {}
    for part, line in zip(question.parts, map(str.strip, lines), strict=False):
        chosen = _chosen(part, line)
        if part.field and not line:
            continue
        answers[part.key] = (chosen or [line]) if part.field and part.is_many else ", ".join(chosen) or line
    return answers


def _lines_of(question: Question, text: str) -> list[str]:
    """Return the line of an answer for each question. Trailing lines of optional fields may be missing."""
    if len(question.parts) == 1:
        return [text.strip()]
    lines = text.rstrip().split("\n")
    missing = question.parts[len(lines) :]
    return [*lines, *("" for _ in missing)] if all(not part.is_needed for part in missing) else lines


def _chosen(part: QuestionPart, text: str) -> list[str]:
    """Return the options that a text chooses by number or by name; empty if it does not choose options."""
    numbers = _numbers_in(part, text)
    if numbers and all(1 <= number <= len(part.options) for number in numbers):
        return [part.options[number - 1] for number in dict.fromkeys(numbers)]
    by_word = {option.casefold(): option for option in part.options}
    words = [text] if text.casefold() in by_word or not part.is_many else text.split(",")
    found = [by_word.get(word.strip().casefold(), "") for word in words]
    return list(dict.fromkeys(found)) if found and all(found) else []


def _question_problem(part: QuestionPart, text: str) -> str:
    """Return why a line is not a valid answer to a question, or ""."""
    if not text:
        return "the answer is empty" if part.is_needed else ""
    chosen = _chosen(part, text)
    if chosen and part.is_many and not _is_within(part, len(chosen)):
        return part.hint
    if chosen:
        return ""
    if problem := _number_problem(part, text):
        return problem
    is_yes_or_no = text.lower().rstrip(",.:;!") in YES_WORDS | NO_WORDS
    if part.options and (is_yes_or_no or part.field) and not _is_boolean(part, text):
        listed = ", ".join(f"{number} {option}" for number, option in enumerate(part.options, 1))
        return f"invalid option {text[:40]!r}; the options are {listed}"
    return _field_problem(part, text)


def _number_problem(part: QuestionPart, text: str) -> str:
    """Return why the numbers in a text are not valid options, or ""."""
    number = len(part.options)
    if not number or text in part.options:
        return ""
    missing = [each for each in _numbers_in(part, text) if not 1 <= each <= number]
    if missing:
        return f"invalid option {missing[0]}, choose 1 to {number}" + ("" if part.field else _IN_WORDS)
    if not part.is_many and _SEVERAL_NUMBERS.fullmatch(text):
        return f"choose only one option, 1 to {number}" + ("" if part.field else _IN_WORDS)
    return ""


def _field_problem(part: QuestionPart, text: str) -> str:
    """Return why a text is not a valid value of a form field, or ""."""
    is_right = True
    if part.field in ("integer", "number"):
        number = _number_of(text, is_whole=part.field == "integer")
        is_right = number is not None and _is_within(part, number)
    elif part.field == "text":
        is_right = _is_within(part, len(text)) and _has_format(text, part.format)
    return "" if is_right else f"invalid answer {text[:40]!r}; expected {part.hint}"


def _is_boolean(part: QuestionPart, text: str) -> bool:
    return part.field == "boolean" and text.lower() in YES_WORDS | NO_WORDS | {"true", "false"}


def _is_within(part: QuestionPart, number: float) -> bool:
    return (part.least is None or number >= part.least) and (part.most is None or number <= part.most)


def _number_of(text: str, *, is_whole: bool) -> float | None:
    try:
        number = int(text) if is_whole and len(text) < 20 else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and (not is_whole or number == int(number)) else None


def _has_format(text: str, format_name: str) -> bool:
    if format_name in ("date", "date-time"):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return False
        return moment.time() == time() if format_name == "date" else "T" in text.upper()
    pattern = {"email": r"[^@\s]+@[^@\s]+", "uri": r"[A-Za-z][A-Za-z0-9+.-]*:\S+"}.get(format_name)
    return pattern is None or re.fullmatch(pattern, text) is not None


def _numbers_in(part: QuestionPart, text: str) -> list[int]:
    """Return the numbers in a text that consists of numbers only; otherwise an empty list."""
    words = text.replace(",", " ").split() if part.is_many else [text.strip()]
    is_made_of_numbers = all(word.isascii() and word.isdigit() and len(word) < 10 for word in words)
    return [int(word) for word in words] if is_made_of_numbers else []


def _begins_with_yes(text: str) -> bool:
    words = text.split(None, 1)
    return bool(words) and words[0].lower().rstrip(",.:;!") in YES_WORDS


def permission_in(text: str) -> tuple[bool, str]:
    """Return whether an answer grants a permission, and the reason. Any text except a plain yes denies it."""
    chosen = {"1": YES, "2": NO}.get(text.strip(), text.strip())
    first, _, rest = chosen.partition(" ")
    word = first.lower().rstrip(",.:;!")
    if word in YES_WORDS and not rest.strip():
        return True, ""
    return False, rest.strip() if word in NO_WORDS else chosen


SUBJECT_LIMIT: Final = 2_000
SHELL_TOOLS: Final = frozenset({"Bash"})
# A prefix does not decide about a line with one of these characters: another command may follow.
_SHELL_CHARACTERS: Final = frozenset(";&|<>`$(){}\\\n\r\0")

Way = Literal["exactly", "begins", "folder", "any"]


class AnswerRule(Value, frozen=True, kw_only=True):
    """An answer to all permission questions about one tool with a matching subject."""

    id: str
    tool: str
    way: Way = "exactly"
    pattern: str = ""
    answer: str = YES
    by: str = ""

    @property
    def words(self) -> str:
        """A readable description of the rule."""
        match self.way:
            case "exactly":
                return f"{self.tool}, exactly `{self.pattern}`"
            case "begins":
                return f"{self.tool}, commands that begin with `{self.pattern}`"
            case "folder":
                return f"{self.tool}, files below `{self.pattern}`"
            case _:
                return f"{self.tool}, any use"


def rule_problem(rule: AnswerRule, others: Iterable[AnswerRule] = ()) -> str:
    """Return why a rule is invalid or duplicates another one, or ""."""
    if not rule.tool or not rule.answer.strip():
        return "a rule requires a tool and an answer"
    if len(rule.pattern) > SUBJECT_LIMIT or (rule.way != "any" and not rule.pattern.strip()):
        return "a rule requires a pattern of at most 2,000 characters"
    if rule.way == "begins" and not _is_one_command(rule.pattern):
        return "the prefix must be the start of a single command, without shell operators"
    if rule.way == "any" and rule.tool in SHELL_TOOLS:
        return "a rule cannot allow all commands; use `--permissions skip` when you start a sweep"
    for other in others:
        if (other.tool, other.way, other.pattern) == (rule.tool, rule.way, rule.pattern):
            return f"rule {other.id} already covers this"
    return ""


def fits(rule: AnswerRule, question: Question, subject: str) -> bool:
    """Return whether a rule answers a question with this `common_subject`."""
    if question.kind is not QuestionKind.PERMISSION or question.is_inexact or question.tool != rule.tool:
        return False
    match rule.way:
        case "exactly":
            return subject == rule.pattern
        case "begins":
            prefix = rule.pattern.split()
            return _is_one_command(subject) and subject.split()[: len(prefix)] == prefix
        case "folder":
            return subject.startswith(rule.pattern.rstrip("/") + "/") and ".." not in subject.split("/")
        case _:
            return True


def common_subject(question: Question, own_places: Mapping[str, str]) -> str:
    """Return the subject of a question with names such as `COPY` in place of the agent's own paths and branch."""
    text = question.subject
    for name, place in own_places.items():
        text = _with_name(text, place.rstrip("/"), name)
    return text


def _with_name(subject: str, place: str, name: str) -> str:
    if len(place) < 2:
        return subject
    # A branch name also occurs in ranges of commits. `../copies/a` is not the folder `/copies/a`.
    before = " \t\n\"'=:(" + ("" if place.startswith("/") else ".")
    pieces = subject.split(place)
    text = pieces[0]
    for piece in pieces[1:]:
        # Do not replace `/copies/a` in `/copies/ab` or in `/old/copies/a`.
        is_whole = (not piece or piece[0] in "/ \t\n\"';&|)") and (not text or text[-1] in before)
        text += (name if is_whole else place) + piece
    return text


def rule_for(
    rules: dict[str, AnswerRule], open_question: OpenQuestion, own_places: Mapping[str, str]
) -> AnswerRule | None:
    """Return the oldest rule that answers an open question."""
    subject = common_subject(open_question.question, own_places)
    return next((rule for rule in rules.values() if fits(rule, open_question.question, subject)), None)


def _is_one_command(text: str) -> bool:
    return bool(text.split()) and not _SHELL_CHARACTERS & set(text)
