"""Request types and their file."""

from __future__ import annotations

import getpass
import time
import uuid
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, TypedDict, Unpack

import msgspec

from swarm_tui.journal.append import LineAppender
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LineFollower
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import AnswerRule
from swarm_tui.money.events import limit_text


class RequestKind(StrEnum):
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
    SEND_BACK = "send_back"
    ANSWER = "answer"
    ADD_RULE = "add_rule"
    REMOVE_RULE = "remove_rule"


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request. If `tests` is empty, most kinds apply to the whole sweep."""

    id: str
    at: float
    by: str = ""
    kind: RequestKind
    tests: tuple[str, ...] = ()
    slots: int | None = None
    dollars: float | None = None
    """A budget; 0 removes it."""
    text: str | None = None
    items: tuple[str, ...] = ()
    """The ids of the answered inbox items."""
    rule: AnswerRule | None = None
    fix: str | None = None
    """The fix to send back to its agent, as a commit of the integrated branch."""
    hunk: str | None = None
    """The lines of the fix to revise, as a diff; None for the whole fix."""


_REQUEST: Final = msgspec.json.Decoder(Request)


class RequestDetails(TypedDict, total=False):
    """The fields of `Request` that the caller chooses."""

    tests: Iterable[str]
    slots: int | None
    dollars: float | None
    text: str | None
    items: Iterable[str]
    rule: AnswerRule | None
    fix: str | None
    hunk: str | None


def request_words(request: Request, noun: str = "test") -> str:
    """Return a short description of a request: `stop 3 tests`."""
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
        case RequestKind.ADD_RULE | RequestKind.REMOVE_RULE:
            return "add a rule" if request.kind is RequestKind.ADD_RULE else f"remove rule {request.text}"
        case RequestKind.HOLD | RequestKind.RELEASE if not request.tests:
            return f"{request.kind.value} the queue"
        case _:
            number = len(request.tests)
            return f"{request.kind.value} {counted(number, noun)}" if number else request.kind.value


def append_request(folder: SweepFolder, kind: RequestKind, **details: Unpack[RequestDetails]) -> Request:
    """Append a request for the engine and return it. The event that answers it contains its id."""
    fields: dict[str, Any] = {
        **details,
        "tests": tuple(details.get("tests", ())),
        "items": tuple(details.get("items", ())),
    }
    request = Request(id=uuid.uuid4().hex[:12], at=time.time(), by=user_name(), kind=kind, **fields)
    lines = LineAppender(folder.requests)
    try:
        lines.append(msgspec.json.encode(request))
    finally:
        lines.close()
    return request


def user_name() -> str:
    """Return the user name for requests and verdicts."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "someone"


class RequestFollower:
    """Returns each request once per process. Events record which requests were already answered."""

    def __init__(self, folder: SweepFolder) -> None:
        self._lines = LineFollower(folder.requests)

    def read(self) -> tuple[list[Request], list[str]]:
        """Return the new requests, and an error for each invalid line."""
        lines, _ = self._lines.read()
        requests, refused = [], []
        for _, line in lines:
            if not line.strip():
                continue
            try:
                requests.append(_REQUEST.decode(line))
            except (ValueError, RecursionError) as error:
                refused.append(str(error).split("\n")[0][:200])
        return requests, refused
