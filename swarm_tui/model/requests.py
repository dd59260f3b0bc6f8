"""Requests of people to a running engine: one line each in requests.jsonl, answered by events."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

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
