"""What Claude Code is doing and asking."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from swarm_tui.agents.observer import AnswerFile, Observation, ObservedFile
from swarm_tui.agents.types.claude.hook import ANSWERS_FOLDER, EVENTS_PATH
from swarm_tui.limits.events import ApiError, ApiErrorKind
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
from swarm_tui.model.text import parse_object, plain, plain_lines

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


def _details(event: dict[str, Any], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if tool == "AskUserQuestion":
        questions = _questions(arguments)
        asked = "\n".join(question.text for question in questions) or "it asks a question"
        return {"kind": QuestionKind.QUESTION, "text": asked, "questions": questions}
    if tool == "ExitPlanMode":
        return _plan(event, text_of(arguments.get("plan"), PLAN_LIMIT))
    if event.get("kind") == "Elicitation":
        text = text_of(event.get("message")) or "an MCP server asks for input"
        questions = _fields(event.get("fields"), _list(event.get("required")))
        return {
            "kind": QuestionKind.INPUT,
            "text": text,
            "questions": questions,
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


def _questions(arguments: dict[str, Any]) -> tuple[QuestionPart, ...]:
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
    if question.questions:
        return {"verdict": "answer", "answers": answers_by_key(question, text)}
    is_allowed, words = permission_in(text)
    return {"verdict": "allow"} if is_allowed else {"verdict": "deny", "text": words}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of(value: object, limit: int = TEXT_LIMIT) -> str:
    """Return a text from an agent, sanitized and cut; "" for anything that is not a text."""
    return plain_lines(value[:limit]).strip() if isinstance(value, str) else ""


DEBUG_PATH: Final = "plugin/swarm/claude_debug.log"
SESSION: Final = ObservedFile("session", "plugin/claude/anthropic/sessions/*.json", is_appended=False)
MAIN_PROCESS: Final = ObservedFile("main process", "claude_main_pid", is_appended=False)
EVENTS: Final = ObservedFile("events", EVENTS_PATH)
DEBUG: Final = ObservedFile("debug", DEBUG_PATH)

# Seconds during which Claude is idle before its first message.
CONFIRMED_AFTER: Final = 1.5
# Seconds during which the dialog stays visible after our hook has answered, more on a busy machine.
GONE_WITHIN: Final = 6.0
MOST_OPEN_QUESTIONS: Final = 20
MOST_QUESTIONS: Final = 1_000
# A running hook reports within 0.5 s that its dialog was closed.
HOOK_LAST_WORDS: Final = 3.0
# Seconds until the hook that reports why a turn failed has started on a busy machine.
FAILURE_TOLD_WITHIN: Final = 5.0

_FAILED_ATTEMPT: Final = re.compile(rb"API error \(attempt (\d+)/(\d+)\): (\S+)")
_ANSWERED: Final = b"first byte after"
# No other file has the cost of compaction.
_TURN_COST: Final = re.compile(rb"\[engine\] turn \d+ end \(.*\bcost=\$(\d{1,9}\.\d{1,9})\b")
_DIALOGS: Final = {
    "permission prompt": "a permission dialog is open in its terminal",
    "input needed": "a question is open in its terminal",
    "dialog open": "a dialog is open in its terminal",
}
_API_ERRORS: Final = {
    "rate_limit": ApiErrorKind.LIMITED,
    "server_error": ApiErrorKind.OVERLOADED,
    "authentication_failed": ApiErrorKind.LOGIN_LOST,
    "billing_error": ApiErrorKind.UNPAID,
}
"""The reasons for a failed turn in the hook StopFailure."""
# A subscription login is renewed when its first request is refused.
_REFUSED_BEFORE_LOST: Final = 2


@dataclass(slots=True)
class ClaudeObserver:
    """Observer of one Claude Code agent."""

    files: Sequence[ObservedFile] = (MAIN_PROCESS, SESSION, EVENTS, DEBUG)
    dollars: float | None = None
    _process_id: str = ""
    _status: str = ""
    _waiting_for: str = ""
    _steady_status: str = ""
    _steady_since: float = 0.0
    _is_just_answered: bool = False
    open_questions: dict[str, Question] = field(default_factory=dict)
    closed_questions: dict[str, ClosedQuestion] = field(default_factory=dict)
    _question_count: int = 0
    _had_dialog: bool = False
    _left_open: tuple[float, tuple[str, ...]] | None = None
    """When the dialogs disappeared from the screen, and their questions."""
    _last_words: str = ""
    """The last message of the last turn."""
    _failure: str = ""
    """Why the last turn failed."""
    _is_compacting: bool = False
    _failed_for: ApiErrorKind | None = None
    """The API error of the last turn; None if the request itself was wrong."""
    _attempt: tuple[int, int, str] | None = None
    """The number of a failed request, the maximum, and its status."""

    @property
    def typing_problem(self) -> str:
        # mngr would press Escape first, which rejects the question of the dialog.
        is_dialog = self._status == "waiting" and not self.open_questions
        return "a dialog is open in its terminal, attach and answer it there" if is_dialog else ""

    def answer(self, question: Question, text: str, by: str) -> AnswerFile:
        content = json.dumps({**answer_content(question, text), "by": by}).encode()
        return AnswerFile(f"{ANSWERS_FOLDER}/{question.id}.json", content)

    def add_lines(self, name: str, lines: Sequence[bytes]) -> None:
        for line in lines:
            if name == DEBUG.name:
                self._add_debug_line(line)
            elif name == EVENTS.name and (event := parse_object(line)):
                self._add_event(event)

    def set_contents(self, name: str, contents: Mapping[str, bytes]) -> None:
        if name == MAIN_PROCESS.name:
            self._process_id = next(iter(contents.values()), b"").decode("ascii", "replace").strip()
        elif name == SESSION.name:
            sessions = {
                path.rpartition("/")[2].removesuffix(".json"): parse_object(raw) for path, raw in contents.items()
            }
            # A Claude Code that the agent starts as a command writes its session file into the same folder.
            session = sessions.get(self._process_id) or min(sessions.values(), key=_started_at, default={})
            status = session.get("status")
            self._status = status if isinstance(status, str) else ""
            self._waiting_for = text_of(session.get("waitingFor"))

    def observe(self, now: float) -> Observation | None:
        if self._status != self._steady_status:
            self._is_just_answered = self._is_just_answered and self._steady_status == "" and self._status == "waiting"
            self._steady_status, self._steady_since = self._status, now
        is_steady = now - self._steady_since >= (GONE_WITHIN if self._is_just_answered else CONFIRMED_AFTER)
        self._end_answered_on_screen(now)
        if self.open_questions:
            # A subagent's request is open while the session is busy, so the request decides.
            question = next(iter(self.open_questions.values()))
            others = len(self.open_questions) - 1
            more = f" (and {others} more)" if others else ""
            return Observation(True, "hook", question.text + more, question.options)
        match self._status:
            case "waiting" if is_steady:
                dialog = _DIALOGS.get(self._waiting_for, _DIALOGS["dialog open"])
                return Observation(True, "session file", dialog, needs_terminal=True)
            case "busy" | "waiting":
                return Observation(
                    False, "session file", condition=self._condition(), api_error=self._retried_api_error()
                )
            case "shell":
                return Observation(False, "session file", condition="a command runs in the background")
            case "idle" if self._failed_for is not None:
                api_error = ApiError(kind=self._failed_for, has_given_up=True)
                return Observation(False, "hook", condition=self._failure, api_error=api_error)
            case "idle" if self._attempt is not None and now - self._steady_since < FAILURE_TOLD_WITHIN:
                return Observation(
                    False, "session file", condition=self._condition(), api_error=self._retried_api_error()
                )
            case "idle" if is_steady:
                words = self._failure or self._last_words or "its turn is over, but it has not submitted its work"
                return Observation(True, "hook" if self._failure or self._last_words else "session file", words)
            case "idle":
                return Observation(False, "session file")
        return None

    def _condition(self) -> str:
        if self._attempt is None:
            return "compacting its conversation" if self._is_compacting else ""
        number, most, status = self._attempt
        reason = f"API error {status}" if status.isdigit() else "no connection to the API"
        return f"{reason}, retrying ({min(number, most - 1)} of {most - 1})"

    def _retried_api_error(self) -> ApiError | None:
        if self._attempt is None:
            return None
        number, _, status = self._attempt
        kind = _api_error_of_status(status)
        is_renewed = kind is ApiErrorKind.LOGIN_LOST and number < _REFUSED_BEFORE_LOST
        return ApiError(kind=kind) if kind is not None and not is_renewed else None

    def _add_debug_line(self, line: bytes) -> None:
        failed = _FAILED_ATTEMPT.search(line)
        if failed:
            self._attempt = int(failed[1]), int(failed[2]), plain(failed[3].decode("utf-8", "replace"), 20)
        elif _ANSWERED in line:
            self._attempt = None
        elif cost := _TURN_COST.search(line):
            self.dollars = float(cost[1])

    def _add_event(self, event: dict[str, Any]) -> None:
        self._is_compacting = event.get("event") == "PreCompact"
        match event.get("event"):
            case "asked":
                self._add_question(event)
            case "closed":
                self._close_question(str(event.get("id")), text_of(event.get("why")))
            case "UserPromptSubmit":
                self._last_words = self._failure = ""
                self._failed_for = None
            case "Stop":
                self._last_words, self._failure = text_of(event.get("last_assistant_message")), ""
                self._failed_for = None
            case "StopFailure":
                error = text_of(event.get("error"))
                self._failure = text_of(event.get("last_assistant_message")) or error
                self._failed_for = _API_ERRORS.get(error)
                if error == "server_error" and self._attempt is not None:
                    self._failed_for = _api_error_of_status(self._attempt[2])
                self._attempt = None
            case "SessionStart" | "SessionEnd":
                for identity in tuple(self.open_questions):
                    self._close_question(identity, "Claude Code exited")

    def _add_question(self, event: dict[str, Any]) -> None:
        question = parse_question(event)
        if question is None or question.id in self.open_questions or question.id in self.closed_questions:
            return
        # An agent can write any number of lines into this file.
        if len(self.open_questions) < MOST_OPEN_QUESTIONS and self._question_count < MOST_QUESTIONS:
            self._question_count += 1
            self.open_questions[question.id] = question

    def _close_question(self, identity: str, why: str) -> None:
        question = self.open_questions.pop(identity, None)
        if question is not None:
            self.closed_questions[identity] = ClosedQuestion(question, why)
            # Its dialog may stay visible for a moment.
            self._steady_status, self._is_just_answered = "", True

    def _end_answered_on_screen(self, now: float) -> None:
        """Close questions whose dialog disappeared without a report of their hook, because the hook was killed."""
        if self._status == "waiting":
            self._had_dialog, self._left_open = True, None
        elif self._had_dialog:
            own = [question for question in self.open_questions.values() if not question.subagent]
            shown = [question for question in own if question.kind is not QuestionKind.INPUT]
            self._had_dialog, self._left_open = False, (now, tuple(question.id for question in shown))
        if self._left_open is not None and now - self._left_open[0] >= HOOK_LAST_WORDS:
            for identity in self._left_open[1]:
                self._close_question(identity, "on the screen")
            self._left_open = None


def _api_error_of_status(status: str) -> ApiErrorKind | None:
    """Return the API error for the status of a failed request; None if the request itself is wrong."""
    if not status.isdigit():
        return ApiErrorKind.UNREACHABLE
    match int(status):
        case 429:
            return ApiErrorKind.LIMITED
        case 401 | 403:
            return ApiErrorKind.LOGIN_LOST
        case number if number >= 500 or number == 408:
            return ApiErrorKind.OVERLOADED
    return None


def _started_at(session: dict[str, Any]) -> float:
    started = session.get("startedAt")
    return float(started) if isinstance(started, int | float) else float("inf")
