"""What Claude Code is doing and asking."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swarm_tui.agents.hook import EVENTS_PATH
from swarm_tui.agents.hook_questions import AsksByHook, text_of
from swarm_tui.agents.observer import TURN_OVER, Observation, ObservedFile
from swarm_tui.limits.events import ApiError, ApiErrorKind
from swarm_tui.model.questions import QuestionKind
from swarm_tui.model.text import parse_object, plain
from swarm_tui.money.events import ModelTokens

DEBUG_PATH: Final = "plugin/swarm/claude_debug.log"
SESSION: Final = ObservedFile("session", "plugin/claude/anthropic/sessions/*.json", is_appended=False)
MAIN_PROCESS: Final = ObservedFile("main process", "claude_main_pid", is_appended=False)
EVENTS: Final = ObservedFile("events", EVENTS_PATH)
DEBUG: Final = ObservedFile("debug", DEBUG_PATH)

# Seconds during which Claude is idle before its first message.
CONFIRMED_AFTER: Final = 1.5
# Seconds during which the dialog stays visible after our hook has answered, more on a busy machine.
GONE_WITHIN: Final = 6.0
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
class ClaudeObserver(AsksByHook):
    """Observer of one Claude Code agent."""

    files: Sequence[ObservedFile] = (MAIN_PROCESS, SESSION, EVENTS, DEBUG)
    dollars: float | None = None
    _process_id: str = ""
    _status: str = ""
    _waiting_for: str = ""
    _steady_status: str = ""
    _steady_since: float = 0.0
    _is_just_answered: bool = False
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
    def models(self) -> tuple[ModelTokens, ...]:
        """Return nothing, because its session log has its tokens."""
        return ()

    @property
    def typing_problem(self) -> str:
        # mngr would press Escape first, which rejects the question of the dialog.
        is_dialog = self._status == "waiting" and not self.open_questions
        return "a dialog is open in its terminal, attach and answer it there" if is_dialog else ""

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
            return self._questions.observation
        match self._status:
            case "waiting" if is_steady:
                dialog = _DIALOGS.get(self._waiting_for, _DIALOGS["dialog open"])
                return Observation(True, "session file", dialog, needs_terminal=True)
            case "busy" | "waiting":
                return Observation(
                    False, "session file", status_detail=self._condition(), api_error=self._retried_api_error()
                )
            case "shell":
                return Observation(False, "session file", status_detail="a command runs in the background")
            case "idle" if self._failed_for is not None:
                api_error = ApiError(kind=self._failed_for, has_given_up=True)
                return Observation(False, "hook", status_detail=self._failure, api_error=api_error)
            case "idle" if self._attempt is not None and now - self._steady_since < FAILURE_TOLD_WITHIN:
                return Observation(
                    False, "session file", status_detail=self._condition(), api_error=self._retried_api_error()
                )
            case "idle" if is_steady:
                words = self._failure or self._last_words or TURN_OVER
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
                self._questions.add(event)
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

    def _close_question(self, identity: str, why: str) -> None:
        if self._questions.close(identity, why):
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
