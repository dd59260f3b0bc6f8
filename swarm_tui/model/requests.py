"""Requests of people to a running engine: one line each in requests.jsonl, answered by events."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypedDict

from pydantic import BaseModel, ConfigDict

from swarm_tui.model.budget import limit_text
from swarm_tui.model.formatting import counted
from swarm_tui.model.rules import AnswerRule


class RequestKind(StrEnum):
    """The kinds of requests."""

    STOP = "stop"
    RETRY = "retry"
    MESSAGE = "message"
    HOLD = "hold"
    RELEASE = "release"
    SLOTS = "slots"
    BUDGET = "budget"
    BUDGET_EACH = "budget_each"
    STOP_SWEEP = "stop_sweep"
    INTEGRATE = "integrate"
    REVISE = "revise"
    ANSWER = "answer"
    MAKE_RULE = "make_rule"
    END_RULE = "end_rule"


class Request(BaseModel):
    """One request. `tests` empty means the whole sweep, where that makes sense."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    at: float
    by: str = ""
    kind: RequestKind
    tests: tuple[str, ...] = ()
    slots: int | None = None
    dollars: float | None = None
    """A budget; 0 takes it away."""
    text: str | None = None
    items: tuple[str, ...] = ()
    """What of the inbox is answered."""
    rule: AnswerRule | None = None
    fix: str | None = None
    """The fix, a commit of the integrated branch, that is sent back to its author."""
    hunk: str | None = None
    """The lines of the fix that it is about, as a diff; None where it is about all of it."""


class RequestDetails(TypedDict, total=False):
    """What a request says beside its kind: the fields of `Request` that a person chooses."""

    tests: Iterable[str]
    slots: int | None
    dollars: float | None
    text: str | None
    items: Iterable[str]
    rule: AnswerRule | None
    fix: str | None
    hunk: str | None


def request_words(request: Request, noun: str = "test") -> str:
    """Return a request in a few words: `stop 3 tests`."""
    match request.kind:
        case RequestKind.SLOTS:
            return f"{request.slots} slots"
        case RequestKind.BUDGET | RequestKind.BUDGET_EACH:
            each = " for each agent" if request.kind is RequestKind.BUDGET_EACH else ""
            return f"budget{each} {limit_text(request.dollars or 0.0)}"
        case RequestKind.STOP_SWEEP:
            return "stop the sweep"
        case RequestKind.ANSWER:
            return f"answer {counted(len(request.items), 'agent')}"
        case RequestKind.MAKE_RULE | RequestKind.END_RULE:
            return "a rule" if request.kind is RequestKind.MAKE_RULE else f"rule {request.text} taken back"
        case RequestKind.HOLD | RequestKind.RELEASE if not request.tests:
            return f"{request.kind.value} the queue"
        case _:
            number = len(request.tests)
            return f"{request.kind.value} {counted(number, noun)}" if number else request.kind.value
