"""What an agent's own files report about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from swarm_tui.agents.contract import CONDITION_PATH
from swarm_tui.agents.summary import number_of
from swarm_tui.limits.events import ApiError, api_error_text
from swarm_tui.model.questions import ClosedQuestion, Question
from swarm_tui.model.text import parse_json, plain
from swarm_tui.money.events import ModelTokens


@dataclass(frozen=True, slots=True)
class ObservedFile:
    """A file or a glob pattern of files in an agent's state folder."""

    name: str
    """The observer's name for the file."""
    pattern: str
    is_appended: bool = True
    """Whether only new lines are read. Other files are small and are read completely each time."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent is doing, and the source of that information."""

    needs_user: bool
    source: str
    question: str = ""
    """The question, or the request for permission."""
    options: tuple[str, ...] = ()
    status_detail: str = ""
    """A condition that needs no action, such as a request that is being retried."""
    api_error: ApiError | None = None
    """Why the agent's model does not answer."""
    needs_terminal: bool = False
    """Whether the question can be answered only in the agent's terminal."""


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file in an agent's state folder that delivers an answer without using its terminal."""

    path: str
    content: bytes


TURN_OVER: Final = "its turn is over, but it has not submitted its work"
"""The question of an agent that finished its turn without a word."""


class AgentObserver(Protocol):
    """Reads the files of one agent. Their content is untrusted."""

    @property
    def typing_problem(self) -> str:
        """Why text must not be typed into the agent's terminal now, or ""."""
        ...

    @property
    def dollars(self) -> float | None:
        """The agent's own total of its cost up to its last turn; None if it reports none."""
        ...

    @property
    def models(self) -> tuple[ModelTokens, ...]:
        """The agent's tokens by model; empty if its transcript has them."""
        ...

    @property
    def open_questions(self) -> Mapping[str, Question]:
        """Open questions that the agent asked through a hook, by id, oldest first."""
        ...

    @property
    def closed_questions(self) -> Mapping[str, ClosedQuestion]:
        """Closed questions by id, in closing order."""
        ...

    def answer(self, question: Question, text: str, by: str) -> AnswerFile:
        """Return the file that delivers an answer. Only valid if `answer_problem` returns no reason."""
        ...

    @property
    def files(self) -> Sequence[ObservedFile]:
        """The files to read."""
        ...

    def add_lines(self, name: str, lines: Sequence[bytes]) -> None:
        """Add new lines of an appended file."""
        ...

    def set_contents(self, name: str, contents: Mapping[str, bytes]) -> None:
        """Set the contents of the files that match a pattern, by path."""
        ...

    def observe(self, now: float) -> Observation | None:
        """Return what the agent is doing at a Unix time; None if its files do not show it."""
        ...


_WORDS_LIMIT = 200


@dataclass(slots=True)
class ConditionObserver:
    """Observer for agent types that provide no information except their process and this file."""

    files: Sequence[ObservedFile] = (ObservedFile("condition", CONDITION_PATH, is_appended=False),)
    _api_error: ApiError | None = None
    _words: str = ""

    @property
    def typing_problem(self) -> str:
        return ""

    @property
    def dollars(self) -> float | None:
        return None

    @property
    def models(self) -> tuple[ModelTokens, ...]:
        return ()

    @property
    def open_questions(self) -> Mapping[str, Question]:
        return {}

    @property
    def closed_questions(self) -> Mapping[str, ClosedQuestion]:
        return {}

    def answer(self, question: Question, text: str, by: str) -> AnswerFile:
        raise LookupError("agents of this type ask no questions through a hook")

    def add_lines(self, name: str, lines: Sequence[bytes]) -> None:
        """Do nothing, because no file of this observer is appended."""

    def set_contents(self, name: str, contents: Mapping[str, bytes]) -> None:
        raw = next(iter(contents.values()), b"{}")
        try:
            report = parse_json(raw)
            kind, until = report.get("api_error"), number_of(report.get("until"))
            fields = {**report, "kind": kind, "until": until, "is_claim": True}
            self._api_error = msgspec.convert(fields, ApiError) if kind else None
            self._words = plain(str(report.get("words") or ""), _WORDS_LIMIT)
        except (ValueError, AttributeError, TypeError):
            self._api_error = None

    def observe(self, now: float) -> Observation | None:
        if self._api_error is None:
            return None
        words = self._words or api_error_text(self._api_error.kind, self._api_error.until, now)
        return Observation(False, "its report", status_detail=words, api_error=self._api_error)
