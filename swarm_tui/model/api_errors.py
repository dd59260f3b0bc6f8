"""API errors of agents, and the throttle that reduces the number of running agents."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from swarm_tui.model.event import Value

_A_DAY: Final = 86_400.0


class ApiErrorKind(StrEnum):
    """The kind of an API error."""

    LIMITED = "limited"
    OVERLOADED = "overloaded"
    UNREACHABLE = "unreachable"
    LOGIN_LOST = "login_lost"
    UNPAID = "unpaid"


HOLDING: Final = frozenset({ApiErrorKind.LOGIN_LOST, ApiErrorKind.UNPAID})
"""API errors that only the user can resolve. They stop launching; the other kinds throttle."""

WORDS: Final = {
    ApiErrorKind.LIMITED: "limited",
    ApiErrorKind.OVERLOADED: "API busy",
    ApiErrorKind.UNREACHABLE: "no API",
    ApiErrorKind.LOGIN_LOST: "login lost",
    ApiErrorKind.UNPAID: "no credit",
}


class ApiError(Value, frozen=True, kw_only=True):
    """An API error of one agent."""

    kind: ApiErrorKind
    until: float | None = None
    """When it will be over, if the server reported that."""
    has_given_up: bool = False
    """Whether the agent stopped retrying and needs a message to continue."""
    is_claim: bool = False
    """Whether only the agent reports the error, and the log of its program does not."""


@dataclass(frozen=True, slots=True)
class Throttle:
    """The throttle: a limit on running agents below the configured slots."""

    slots: int | None = None
    """None means that the throttle is off."""
    cause: str = ""
    """The kind of API error, or `memory` or `load` of this machine."""
    detail: str = ""
    """Values of this machine, such as `14 on 2 cores`."""
    until: float | None = None
    halved_at: float = 0.0
    changed_at: float = 0.0
    too_many: int | None = None
    """The number of running agents when the limit was last halved."""


OPEN: Final = Throttle()


def api_error_text(kind: ApiErrorKind, until: float | None, now: float) -> str:
    """Return an API error as text: `limited until 18:22`."""
    return f"{WORDS[kind]} until {time_of_day(until, now)}" if until is not None and until > now else WORDS[kind]


def dial_words(dial: Throttle, wanted: int, now: float) -> str:
    """Return the throttle with its reason: `6 of 24: limited until 18:22`; empty if it has no effect."""
    if dial.slots is None or dial.slots >= wanted:
        return ""
    return f"{dial.slots} of {wanted}: {why_turned(dial, now)}"


def why_turned(dial: Throttle, now: float) -> str:
    """Return the reason of the throttle."""
    if dial.cause in set(ApiErrorKind):
        return api_error_text(ApiErrorKind(dial.cause), dial.until, now)
    return f"{dial.cause} {dial.detail}".strip()


def time_of_day(at: float, now: float) -> str:
    """Return a time of day, with the day of the week if it is more than a day from now."""
    return time.strftime("%H:%M" if abs(at - now) < _A_DAY else "%a %H:%M", time.localtime(at))
