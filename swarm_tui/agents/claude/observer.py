"""Reads what a Claude Code agent is doing from its session file, the events of our hook, and its debug log."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swarm_tui.agents.claude.asks import answer_content, ask_of, text_of
from swarm_tui.agents.claude.hook import ANSWERS_FOLDER, EVENTS_PATH
from swarm_tui.agents.observation import AnswerFile, Observation, ObservedFile
from swarm_tui.model.asks import Ask, AskKind, EndedAsk
from swarm_tui.model.text import plain
from swarm_tui.model.trouble import Trouble, TroubleKind

DEBUG_PATH: Final = "plugin/swarm/claude_debug.log"
SESSION: Final = ObservedFile("session", "plugin/claude/anthropic/sessions/*.json", is_appended=False)
MAIN_PROCESS: Final = ObservedFile("main process", "claude_main_pid", is_appended=False)
EVENTS: Final = ObservedFile("events", EVENTS_PATH)
DEBUG: Final = ObservedFile("debug", DEBUG_PATH)

# Claude is idle for a moment before its first message.
CONFIRMED_AFTER: Final = 1.5
# Its dialog stands for a moment after our hook has answered, longer on a machine with much to do.
GONE_WITHIN: Final = 6.0
OPEN_ASKS: Final = 20
ASKS_IN_ALL: Final = 1_000
# A hook whose dialog is gone says so within half a second, if it lives.
HOOK_LAST_WORDS: Final = 3.0
# The hook that says why a turn has failed takes a while to start where much is to do.
FAILURE_TOLD_WITHIN: Final = 5.0

_FAILED_ATTEMPT: Final = re.compile(rb"API error \(attempt (\d+)/(\d+)\): (\S+)")
_ANSWERED: Final = b"first byte after"
# What compacting costs is in no other file.
_TURN_COST: Final = re.compile(rb"\[engine\] turn \d+ end \(.*\bcost=\$(\d{1,9}\.\d{1,9})\b")
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
    _is_just_answered: bool = False
    asks: dict[str, Ask] = field(default_factory=dict)
    ended_asks: dict[str, EndedAsk] = field(default_factory=dict)
    _asks_made: int = 0
    _had_dialog: bool = False
    _left_open: tuple[float, tuple[str, ...]] | None = None
    """When the dialogs had gone from the screen, and what was asked by them."""
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
        is_dialog = self._status == "waiting" and not self.asks
        return "a dialog is open in its terminal: attach, and answer it there" if is_dialog else ""

    def answer(self, ask: Ask, text: str, by: str) -> AnswerFile:
        content = json.dumps({**answer_content(ask, text), "by": by}).encode()
        return AnswerFile(f"{ANSWERS_FOLDER}/{ask.id}.json", content)

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
            self._waiting_for = text_of(session.get("waitingFor"))

    def observe(self, now: float) -> Observation | None:
        if self._status != self._steady_status:
            self._is_just_answered = self._is_just_answered and self._steady_status == "" and self._status == "waiting"
            self._steady_status, self._steady_since = self._status, now
        is_steady = now - self._steady_since >= (GONE_WITHIN if self._is_just_answered else CONFIRMED_AFTER)
        self._end_answered_on_screen(now)
        if self.asks:
            # A subagent's request is open while the session is busy: the request itself counts.
            ask = next(iter(self.asks.values()))
            others = len(self.asks) - 1
            more = f" (and {others} more)" if others else ""
            return Observation(True, "hook", ask.text + more, ask.options)
        match self._status:
            case "waiting" if is_steady:
                dialog = _DIALOGS.get(self._waiting_for, _DIALOGS["dialog open"])
                return Observation(True, "session file", dialog, needs_terminal=True)
            case "busy" | "waiting":
                return Observation(False, "session file", condition=self._condition(), trouble=self._retried_trouble())
            case "shell":
                return Observation(False, "session file", condition="a command runs in the background")
            case "idle" if self._failed_for is not None:
                trouble = Trouble(kind=self._failed_for, has_given_up=True)
                return Observation(False, "hook", condition=self._failure, trouble=trouble)
            case "idle" if self._attempt is not None and now - self._steady_since < FAILURE_TOLD_WITHIN:
                return Observation(False, "session file", condition=self._condition(), trouble=self._retried_trouble())
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
                self._add_ask(event)
            case "closed":
                self._end_ask(str(event.get("id")), text_of(event.get("why")))
            case "UserPromptSubmit":
                self._last_words = self._failure = ""
                self._failed_for = None
            case "Stop":
                self._last_words, self._failure = text_of(event.get("last_assistant_message")), ""
                self._failed_for = None
            case "StopFailure":
                error = text_of(event.get("error"))
                self._failure = text_of(event.get("last_assistant_message")) or error
                self._failed_for = _TROUBLES.get(error)
                if error == "server_error" and self._attempt is not None:
                    self._failed_for = _trouble_of_status(self._attempt[2])
                self._attempt = None
            case "SessionStart" | "SessionEnd":
                for identity in tuple(self.asks):
                    self._end_ask(identity, "Claude Code ended")

    def _add_ask(self, event: dict[str, Any]) -> None:
        ask = ask_of(event)
        is_new = ask is not None and ask.id not in self.asks and ask.id not in self.ended_asks
        # An agent can write as many lines into this file as it likes.
        if ask is not None and is_new and len(self.asks) < OPEN_ASKS and self._asks_made < ASKS_IN_ALL:
            self._asks_made += 1
            self.asks[ask.id] = ask

    def _end_ask(self, identity: str, why: str) -> None:
        ask = self.asks.pop(identity, None)
        if ask is not None:
            self.ended_asks[identity] = EndedAsk(ask, why)
            # Its dialog may be seen for a moment yet.
            self._steady_status, self._is_just_answered = "", True

    def _end_answered_on_screen(self, now: float) -> None:
        """End what stood on the screen when no dialog does any more: its hook has died without a word."""
        if self._status == "waiting":
            self._had_dialog, self._left_open = True, None
        elif self._had_dialog:
            shown = [ask for ask in self.asks.values() if ask.kind is not AskKind.INPUT and not ask.subagent]
            self._had_dialog, self._left_open = False, (now, tuple(ask.id for ask in shown))
        if self._left_open is not None and now - self._left_open[0] >= HOOK_LAST_WORDS:
            for identity in self._left_open[1]:
                self._end_ask(identity, "on the screen")
            self._left_open = None


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


def _started_at(session: dict[str, Any]) -> float:
    started = session.get("startedAt")
    return float(started) if isinstance(started, int | float) else float("inf")


def _object(raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
