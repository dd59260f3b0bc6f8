"""Reads what Claude Code asks from the lines of our hook, and writes answers as the hook wants them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from swarm_tui.model.asks import NO_WORDS, Ask, AskedQuestion, AskKind, answers_by_key, permission_in
from swarm_tui.model.text import plain, plain_lines

TEXT_LIMIT: Final = 2_000
LABEL_LIMIT: Final = 300
OPTIONS_LIMIT: Final = 20
QUESTIONS_LIMIT: Final = 10

_ID: Final = re.compile(r"[\w-]{1,60}", re.ASCII)
_TELLING_INPUTS: Final = ("command", "file_path", "notebook_path", "path", "url", "pattern", "query")


def ask_of(event: dict[str, Any]) -> Ask | None:
    """Return what a line of the hook asks; None where it has no proper id."""
    identity, at = event.get("id"), event.get("at")
    if not isinstance(identity, str) or not _ID.fullmatch(identity):
        return None
    given, tool = event.get("input"), plain(text_of(event.get("tool")), LABEL_LIMIT)
    given = given if isinstance(given, dict) else {}
    made = _details(event, tool, given)
    time = float(at) if isinstance(at, int | float) else 0.0
    return Ask(id=identity, at=time, tool=tool, subagent=_subagent(event), **made)


def _details(event: dict[str, Any], tool: str, given: dict[str, Any]) -> dict[str, Any]:
    if tool == "AskUserQuestion":
        questions = _questions(given)
        asked = "\n".join(question.text for question in questions) or "it asks a question"
        return {"kind": AskKind.QUESTION, "text": asked, "questions": questions}
    if tool == "ExitPlanMode":
        return {"kind": AskKind.PLAN, "text": f"it wants to carry out its plan:\n{text_of(given.get('plan'))}"}
    if event.get("kind") == "Elicitation":
        text = text_of(event.get("message")) or "a tool server asks for input"
        return {"kind": AskKind.INPUT, "text": text, "questions": _fields(event.get("fields"))}
    subject = next((given[key] for key in _TELLING_INPUTS if isinstance(given.get(key), str) and given[key]), "")
    shown = text_of(subject)
    subagent = _subagent(event)
    who = f"its subagent {subagent}" if subagent else "it"
    return {
        "text": f"{who} wants to use {tool or 'a tool'}{': ' if shown else ''}{shown}",
        "subject": shown,
        "detail": _rest_of(given, subject),
        # Without its sandbox a command is another one, whatever it looks like.
        "is_inexact": shown != subject.strip() or bool(event.get("is_cut") or given.get("dangerouslyDisableSandbox")),
    }


def _rest_of(given: dict[str, Any], subject: str) -> str:
    """Return what a tool is called with besides its subject, a line or more for each input."""
    lines = []
    for key, value in given.items():
        if value != subject:
            words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"{key}: {words[:TEXT_LIMIT]}")
    return text_of("\n".join(lines))


def _subagent(event: dict[str, Any]) -> str:
    return plain(text_of(event.get("subagent")), LABEL_LIMIT)


def _questions(given: dict[str, Any]) -> tuple[AskedQuestion, ...]:
    asked = [question for question in _list(given.get("questions")) if isinstance(question, dict)]
    return tuple(
        AskedQuestion(
            key=str(question.get("question") or "")[:TEXT_LIMIT],
            text=text_of(question.get("question")),
            options=_labels(
                [option.get("label") for option in _list(question.get("options")) if isinstance(option, dict)]
            ),
            is_many=bool(question.get("multiSelect")),
        )
        for question in asked[:QUESTIONS_LIMIT]
    )


def _fields(schema: object) -> tuple[AskedQuestion, ...]:
    """Return the fields of a form, as the hook describes them, as questions."""
    fields = schema if isinstance(schema, dict) else {}
    return tuple(
        AskedQuestion(
            key=name[:TEXT_LIMIT],
            text=text_of(field.get("title")) or text_of(field.get("description")) or plain(name, LABEL_LIMIT),
            options=_labels(field.get("enum")),
        )
        for name, field in list(fields.items())[:QUESTIONS_LIMIT]
        if isinstance(name, str) and isinstance(field, dict)
    )


def _labels(values: object) -> tuple[str, ...]:
    shown = (value if isinstance(value, str) else json.dumps(value) for value in _list(values)[:OPTIONS_LIMIT])
    return tuple(plain(text_of(value), LABEL_LIMIT) for value in shown)


def answer_content(ask: Ask, text: str) -> dict[str, Any]:
    """Return what a person's text says to an ask, as the hook reads it."""
    is_refusal = text.strip().lower() in NO_WORDS
    if ask.questions and not (ask.kind is AskKind.INPUT and is_refusal):
        return {"verdict": "answer", "answers": answers_by_key(ask, text)}
    is_allowed, words = permission_in(text)
    return {"verdict": "allow"} if is_allowed else {"verdict": "deny", "text": words}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Return a text of an agent's, harmless and not too long; "" for what is no text."""
    return plain_lines(value[:TEXT_LIMIT]).strip() if isinstance(value, str) else ""
