"""Questions and permission requests in the lines of our hook, and the answers to them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from swarm_tui.agents.hook import ANSWERS_FOLDER
from swarm_tui.agents.observer import AnswerFile, Observation
from swarm_tui.model.questions import (
    FORMATS,
    NO,
    YES,
    ClosedQuestion,
    Question,
    QuestionKind,
    QuestionPart,
    answers_by_key,
    is_declined,
    permission_in,
)
from swarm_tui.model.text import plain, plain_lines

TEXT_LIMIT: Final = 2_000
LABEL_LIMIT: Final = 300
OPTIONS_LIMIT: Final = 50
QUESTIONS_LIMIT: Final = 50
PLAN_LIMIT: Final = 40_000

_FIELDS: Final[Mapping[str, Literal["integer", "number", "boolean"]]] = {
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
_ID: Final = re.compile(r"[\w-]{1,60}", re.ASCII)
_TELLING_INPUTS: Final = ("command", "file_path", "notebook_path", "path", "url", "pattern", "query")


def parse_question(event: dict[str, Any]) -> Question | None:
    """Return the question in a line of the hook; None if it has no valid id."""
    identity, at = event.get("id"), event.get("at")
    if not isinstance(identity, str) or not _ID.fullmatch(identity):
        return None
    arguments, tool = event.get("input"), plain(text_of(event.get("tool")), LABEL_LIMIT)
    arguments = arguments if isinstance(arguments, dict) else {}
    details = _details(event, tool, arguments)
    time = float(at) if isinstance(at, int | float) else 0.0
    return Question(id=identity, at=time, tool=tool, subagent=_subagent(event), **details)


MOST_OPEN_QUESTIONS: Final = 20
MOST_QUESTIONS: Final = 1_000


@dataclass(slots=True)
class QuestionLog:
    """The questions of one agent, from the lines of its hook. An agent can write any number of them."""

    open: dict[str, Question] = field(default_factory=dict)
    closed: dict[str, ClosedQuestion] = field(default_factory=dict)
    _count: int = 0

    @property
    def observation(self) -> Observation:
        """The oldest open question."""
        question = next(iter(self.open.values()))
        others = len(self.open) - 1
        more = f" (and {others} more)" if others else ""
        return Observation(True, "hook", question.text + more, question.options)

    def add(self, event: dict[str, Any]) -> None:
        question = parse_question(event)
        if question is None or question.id in self.open or question.id in self.closed:
            return
        if len(self.open) < MOST_OPEN_QUESTIONS and self._count < MOST_QUESTIONS:
            self._count += 1
            self.open[question.id] = question

    def close(self, identity: str, why: str) -> bool:
        """Close a question, and return whether it was open."""
        question = self.open.pop(identity, None)
        if question is not None:
            self.closed[identity] = ClosedQuestion(question, why)
        return question is not None

    def close_all(self, why: str) -> None:
        for identity in tuple(self.open):
            self.close(identity, why)


@dataclass(slots=True)
class AsksByHook:
    """The part of an observer for agents whose questions come from our hook, or from a plugin that writes its lines."""

    _questions: QuestionLog = field(default_factory=QuestionLog)

    @property
    def open_questions(self) -> Mapping[str, Question]:
        return self._questions.open

    @property
    def closed_questions(self) -> Mapping[str, ClosedQuestion]:
        return self._questions.closed

    def answer(self, question: Question, text: str, by: str) -> AnswerFile:
        return answer_file(question, text, by)


def _details(event: dict[str, Any], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if tool == "AskUserQuestion":
        parts = _question_parts(arguments)
        text = "\n".join(part.text for part in parts) or "it asks a question"
        return {"kind": QuestionKind.QUESTION, "text": text, "parts": parts}
    if tool == "ExitPlanMode":
        return _plan(event, text_of(arguments.get("plan"), PLAN_LIMIT))
    if event.get("kind") == "Elicitation":
        text = text_of(event.get("message")) or "an MCP server asks for input"
        parts = _fields(event.get("fields"), _list(event.get("required")))
        return {
            "kind": QuestionKind.INPUT,
            "text": text,
            "parts": parts,
            "is_inexact": bool(event.get("is_cut")),
        }
    subject = next(
        (arguments[key] for key in _TELLING_INPUTS if isinstance(arguments.get(key), str) and arguments[key]), ""
    )
    shown = text_of(subject)
    subagent = _subagent(event)
    asker = f"its subagent {subagent}" if subagent else "it"
    return {
        "text": f"{asker} asks to use {tool or 'a tool'}{': ' if shown else ''}{shown}",
        "subject": shown,
        "detail": _other_arguments(arguments, subject),
        # A command that looks the same but runs without the sandbox is a different command.
        "is_inexact": shown != subject.strip()
        or bool(event.get("is_cut") or arguments.get("dangerouslyDisableSandbox")),
    }


def _plan(event: dict[str, Any], plan: str) -> dict[str, Any]:
    if not plan:
        return {"kind": QuestionKind.PLAN, "text": "it asks to carry out its plan, which is shown only in its terminal"}
    is_cut = bool(event.get("is_cut"))
    return {"kind": QuestionKind.PLAN, "text": f"it asks to carry out its plan:\n{plan}", "is_inexact": is_cut}


def _other_arguments(arguments: dict[str, Any], subject: str) -> str:
    """Return the other inputs of a tool call, on one or more lines each."""
    lines = []
    for key, value in arguments.items():
        if value != subject:
            words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"{key}: {words[:TEXT_LIMIT]}")
    return text_of("\n".join(lines))


def _subagent(event: dict[str, Any]) -> str:
    return plain(text_of(event.get("subagent")), LABEL_LIMIT)


def _question_parts(arguments: dict[str, Any]) -> tuple[QuestionPart, ...]:
    questions = [question for question in _list(arguments.get("questions")) if isinstance(question, dict)]
    return tuple(_question(question) for question in questions[:QUESTIONS_LIMIT])


def _question(question: dict[str, Any]) -> QuestionPart:
    options = [option for option in _list(question.get("options")) if isinstance(option, dict)]
    return QuestionPart(
        key=str(question.get("question") or "")[:TEXT_LIMIT],
        text=text_of(question.get("question")),
        options=_labels([option.get("label") for option in options]),
        descriptions=_descriptions([option.get("description") for option in options]),
        is_many=bool(question.get("multiSelect")),
    )


def _fields(properties: object, required: list[Any]) -> tuple[QuestionPart, ...]:
    """Return the fields of a form as questions; `properties` is the description by the hook."""
    fields = properties if isinstance(properties, dict) else {}
    return tuple(
        _field(name, field, is_needed=name in required)
        for name, field in list(fields.items())[:QUESTIONS_LIMIT]
        if isinstance(name, str) and isinstance(field, dict)
    )


def _field(name: str, field: dict[str, Any], *, is_needed: bool) -> QuestionPart:
    """Return one field of a form. MCP allows texts, numbers, booleans and choices."""
    is_many, kind = field.get("type") == "array", text_of(field.get("type"))
    source = field.get("items") if is_many and isinstance(field.get("items"), dict) else field
    assert isinstance(source, dict)
    named = [one for key in ("oneOf", "anyOf") for one in _list(source.get(key)) if isinstance(one, dict)]
    values = [one.get("const") for one in named] or _list(source.get("enum"))
    titles = [one.get("title") for one in named] or _list(source.get("enumNames"))
    limits = {"array": ("minItems", "maxItems"), "integer": ("minimum", "maximum"), "number": ("minimum", "maximum")}
    least, most = limits.get(kind, ("minLength", "maxLength"))
    title, description = text_of(field.get("title")), text_of(field.get("description"))
    return QuestionPart(
        key=name[:TEXT_LIMIT],
        text=": ".join(filter(None, (title or plain(name, LABEL_LIMIT), description if description != title else ""))),
        options=(YES, NO) if kind == "boolean" else _labels(values),
        descriptions=_descriptions(titles),
        is_many=is_many,
        field=_FIELDS.get(kind, "text"),
        is_needed=is_needed,
        format=field["format"] if field.get("format") in FORMATS else "",
        least=_limit(field.get(least)),
        most=_limit(field.get(most)),
    )


def _limit(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if is_number and isinstance(value, int | float) else None


def _labels(values: object) -> tuple[str, ...]:
    shown = (value if isinstance(value, str) else json.dumps(value) for value in _list(values)[:OPTIONS_LIMIT])
    return tuple(plain(text_of(value), LABEL_LIMIT) for value in shown)


def _descriptions(values: list[Any]) -> tuple[str, ...]:
    """Return the descriptions of options; empty if no option has one."""
    found = tuple(plain(text_of(value), LABEL_LIMIT) for value in values[:OPTIONS_LIMIT])
    return found if any(found) else ()


def answer_content(question: Question, text: str) -> dict[str, Any]:
    """Return the user's answer to a question, in the format of the hook."""
    if is_declined(question, text):
        return {"verdict": "deny", "text": ""}
    if question.parts:
        return {"verdict": "answer", "answers": answers_by_key(question, text)}
    is_allowed, words = permission_in(text)
    return {"verdict": "allow"} if is_allowed else {"verdict": "deny", "text": words}


def answer_file(question: Question, text: str, by: str) -> AnswerFile:
    """Return the file that delivers the user's answer to a question."""
    content = json.dumps({**answer_content(question, text), "by": by}).encode()
    return AnswerFile(f"{ANSWERS_FOLDER}/{question.id}.json", content)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of(value: object, limit: int = TEXT_LIMIT) -> str:
    """Return a text from an agent, sanitized and cut; "" for anything that is not a text."""
    return plain_lines(value[:limit]).strip() if isinstance(value, str) else ""
