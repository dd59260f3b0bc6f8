"""Reads what a Claude Code agent is doing from its session file, the events of our hook, and its debug log."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swarm_tui.agents.claude.hook import ANSWERS_FOLDER, EVENTS_PATH
from swarm_tui.agents.observation import AnswerFile, Observation, ObservedFile
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.model.trouble import Trouble, TroubleKind

DEBUG_PATH: Final = "plugin/swarm/claude_debug.log"
SESSION: Final = ObservedFile("session", "plugin/claude/anthropic/sessions/*.json", is_appended=False)
MAIN_PROCESS: Final = ObservedFile("main process", "claude_main_pid", is_appended=False)
EVENTS: Final = ObservedFile("events", EVENTS_PATH)
DEBUG: Final = ObservedFile("debug", DEBUG_PATH)

# Claude is idle for a moment before its first message, and its dialog stands for a moment after our hook has answered.
CONFIRMED_AFTER: Final = 1.5
QUESTION_LIMIT: Final = 2_000
OPTIONS_SHOWN: Final = 20
REQUESTS_KEPT: Final = 200

_ID: Final = re.compile(r"[\w-]{1,60}")
_FAILED_ATTEMPT: Final = re.compile(rb"API error \(attempt (\d+)/(\d+)\): (\S+)")
_ANSWERED: Final = b"first byte after"
# What compacting costs is in no other file.
_TURN_COST: Final = re.compile(rb"\[engine\] turn \d+ end \(.*\bcost=\$(\d{1,9}\.\d{1,9})\b")
_TELLING_INPUTS: Final = ("command", "file_path", "path", "url", "pattern")
_YES: Final = frozenset({"y", "yes", "ok", "allow"})
_NO: Final = frozenset({"n", "no", "deny"})
_DIALOGS: Final = {
    "permission prompt": "a permission dialog is open in its terminal",
    "input needed": "a question is open in its terminal",
    "dialog open": "a dialog is open in its terminal",
}
_TROUBLES: Final = {
    "rate_limit": TroubleKind.LIMITED,
    "server_error": TroubleKind.OVERLOADED,
    "authentication_failed": TroubleKind.LOGIN_LOST,
    "billing_error": TroubleKind.UNPAID,
}
"""What the hook StopFailure calls the reasons for which a turn ended."""
# A login of a subscription is renewed when its first request is refused.
_REFUSED_BEFORE_LOST: Final = 2


@dataclass(frozen=True, slots=True)
class _Request:
    """Something that Claude Code asks a person."""

    question: str
    options: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    """What is asked, where that wants more than a yes or a no."""


@dataclass(slots=True)
class ClaudeObserver:
    """One Claude Code agent."""

    files: Sequence[ObservedFile] = (MAIN_PROCESS, SESSION, EVENTS, DEBUG)
    dollars: float | None = None
    _process_id: str = ""
    _status: str = ""
    _waiting_for: str = ""
    _steady_status: str = ""
    _steady_since: float = 0.0
    _requests: dict[str, _Request] = field(default_factory=dict)
    """Open requests by their id, the oldest first."""
    _last_words: str = ""
    """What the last turn ended with."""
    _failure: str = ""
    """Why the last turn failed."""
    _is_compacting: bool = False
    _failed_for: TroubleKind | None = None
    """The trouble for which it failed; None where the request itself was wrong."""
    _attempt: tuple[int, int, str] | None = None
    """The number of a failed request, the most there are, and its status."""

    @property
    def typing_problem(self) -> str:
        # mngr would press Escape first, and that rejects what the dialog asks.
        is_dialog = self._status == "waiting" and not self._requests
        return "a dialog is open in its terminal: attach, and answer it there" if is_dialog else ""

    def answer(self, text: str, by: str) -> AnswerFile | None:
        if not self._requests:
            return None
        identity, request = next(iter(self._requests.items()))
        content = json.dumps({**_answer_to(request, text.strip()), "by": by}).encode()
        return AnswerFile(f"{ANSWERS_FOLDER}/{identity}.json", content)

    def add_lines(self, name: str, lines: Sequence[bytes]) -> None:
        for line in lines:
            if name == DEBUG.name:
                self._add_debug_line(line)
            elif name == EVENTS.name and (event := _object(line)):
                self._add_event(event)

    def set_contents(self, name: str, contents: Mapping[str, bytes]) -> None:
        if name == MAIN_PROCESS.name:
            self._process_id = next(iter(contents.values()), b"").decode("ascii", "replace").strip()
        elif name == SESSION.name:
            sessions = {path.rpartition("/")[2].removesuffix(".json"): _object(raw) for path, raw in contents.items()}
            # A Claude Code that the agent starts as a command writes its session file into the same folder.
            session = sessions.get(self._process_id) or min(sessions.values(), key=_started_at, default={})
            status = session.get("status")
            self._status = status if isinstance(status, str) else ""
            self._waiting_for = _text(session.get("waitingFor"))

    def observe(self, now: float) -> Observation | None:
        if self._status != self._steady_status:
            self._steady_status, self._steady_since = self._status, now
        is_steady = now - self._steady_since >= CONFIRMED_AFTER
        if self._requests:
            # A subagent's request is open while the session is busy: the request itself counts.
            request = next(iter(self._requests.values()))
            others = len(self._requests) - 1
            more = f" (and {others} more)" if others else ""
            return Observation(True, "hook", request.question + more, request.options)
        match self._status:
            case "waiting" if is_steady:
                return Observation(True, "session file", _DIALOGS.get(self._waiting_for, _DIALOGS["dialog open"]))
            case "busy" | "waiting":
                return Observation(False, "session file", condition=self._condition(), trouble=self._retried_trouble())
            case "shell":
                return Observation(False, "session file", condition="a command runs in the background")
            case "idle" if self._failed_for is not None:
                trouble = Trouble(kind=self._failed_for, has_given_up=True)
                return Observation(False, "hook", condition=self._failure, trouble=trouble)
            case "idle" if is_steady:
                question = self._failure or self._last_words or "its turn is over, and it has not handed in its work"
                return Observation(True, "hook" if self._failure or self._last_words else "session file", question)
            case "idle":
                return Observation(False, "session file")
        return None

    def _condition(self) -> str:
        if self._attempt is None:
            return "it compacts its conversation" if self._is_compacting else ""
        number, most, status = self._attempt
        reason = f"API error {status}" if status.isdigit() else "no connection to the API"
        return f"{reason}, tries again ({min(number, most - 1)} of {most - 1})"

    def _retried_trouble(self) -> Trouble | None:
        if self._attempt is None:
            return None
        number, _, status = self._attempt
        kind = _trouble_of_status(status)
        is_renewed = kind is TroubleKind.LOGIN_LOST and number < _REFUSED_BEFORE_LOST
        return Trouble(kind=kind) if kind is not None and not is_renewed else None

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
                identity = _text(event.get("id"))
                if _ID.fullmatch(identity) and len(self._requests) < REQUESTS_KEPT:
                    self._requests[identity] = _request(event)
            case "closed":
                self._requests.pop(str(event.get("id")), None)
            case "UserPromptSubmit":
                self._last_words = self._failure = ""
                self._failed_for = None
            case "Stop":
                self._last_words, self._failure = _text(event.get("last_assistant_message")), ""
                self._failed_for = None
            case "StopFailure":
                error = _text(event.get("error"))
                self._failure = _text(event.get("last_assistant_message")) or error
                self._failed_for = _TROUBLES.get(error)
                if error == "server_error" and self._attempt is not None:
                    self._failed_for = _trouble_of_status(self._attempt[2])
                self._attempt = None
            case "SessionStart" | "SessionEnd":
                self._requests.clear()


def _trouble_of_status(status: str) -> TroubleKind | None:
    """Return the trouble that the status of a failed request stands for; None where the request itself is wrong."""
    if not status.isdigit():
        return TroubleKind.UNREACHABLE
    match int(status):
        case 429:
            return TroubleKind.LIMITED
        case 401 | 403:
            return TroubleKind.LOGIN_LOST
        case number if number >= 500 or number == 408:
            return TroubleKind.OVERLOADED
    return None


def _request(event: dict[str, Any]) -> _Request:
    """Return what a person reads of a permission request or a question."""
    tool, given = _text(event.get("tool")), event.get("input")
    given = given if isinstance(given, dict) else {}
    if tool == "AskUserQuestion":
        questions = [question for question in _list(given.get("questions")) if isinstance(question, dict)]
        texts = tuple(_text(question.get("question")) for question in questions)
        options = [option for question in questions[:1] for option in _list(question.get("options"))]
        labels = [_text(option.get("label")) for option in options if isinstance(option, dict)]
        asked = "\n".join(texts) or "it asks a question"
        return _Request(asked, tuple(labels[:OPTIONS_SHOWN]), texts)
    if tool == "ExitPlanMode":
        return _Request(f"it wants to carry out its plan:\n{_text(given.get('plan'))}", ("yes", "no"))
    if event.get("kind") == "Elicitation":
        return _Request(_text(event.get("message")) or "a tool server asks for input", ("yes", "no"))
    detail = next(
        (_text(given[key]) for key in ("command", "file_path", "path", "url", "pattern") if given.get(key)), ""
    )
    who = f"its subagent {_text(event['subagent'])}" if event.get("subagent") else "it"
    return _Request(f"{who} wants to use {tool or 'a tool'}{': ' if detail else ''}{detail}", ("yes", "no"))


def _started_at(session: dict[str, Any]) -> float:
    started = session.get("startedAt")
    return float(started) if isinstance(started, int | float) else float("inf")


def _answer_to(request: _Request, text: str) -> dict[str, Any]:
    """Return what a person's text says to a request: an option by its number or its words, yes, or no with a reason."""
    number = int(text) - 1 if text.isascii() and text.isdigit() else -1
    chosen = request.options[number] if 0 <= number < len(request.options) else text
    if request.questions:
        return {"verdict": "answer", "answers": dict.fromkeys(request.questions, chosen)}
    first, _, rest = chosen.partition(" ")
    word = first.lower().rstrip(",.:;!")
    if word in _YES:
        return {"verdict": "allow"}
    return {"verdict": "deny", "text": rest.strip() if word in _NO else chosen}


def _object(raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return plain_lines(value[:QUESTION_LIMIT]).strip() if isinstance(value, str) else ""
