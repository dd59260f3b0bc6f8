"""What keeps an agent's model from answering, and the dial by which fewer agents are launched then."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

_A_DAY: Final = 86_400.0


class TroubleKind(StrEnum):
    """Why a model does not answer."""

    LIMITED = "limited"
    OVERLOADED = "overloaded"
    UNREACHABLE = "unreachable"
    LOGIN_LOST = "login_lost"
    UNPAID = "unpaid"


HOLDING: Final = frozenset({TroubleKind.LOGIN_LOST, TroubleKind.UNPAID})
"""Troubles that only a person can end: no further agent is launched. The others turn the dial."""

WORDS: Final = {
    TroubleKind.LIMITED: "limited",
    TroubleKind.OVERLOADED: "API busy",
    TroubleKind.UNREACHABLE: "no API",
    TroubleKind.LOGIN_LOST: "login lost",
    TroubleKind.UNPAID: "no credit",
}


class Trouble(BaseModel):
    """Why the model of one agent does not answer."""

    model_config = ConfigDict(frozen=True)

    kind: TroubleKind
    until: float | None = None
    """When it is over, as far as its server has said it."""
    has_given_up: bool = False
    """The agent does not try again by itself: it has to be told to go on."""


@dataclass(frozen=True, slots=True)
class Dial:
    """How many agents are to be at work at most, below what the person has set."""

    slots: int | None = None
    """None: as many as the person has set."""
    cause: str = ""
    """The kind of trouble; `memory` or `load` of this machine."""
    detail: str = ""
    """Numbers of the machine, such as `14 on 2 cores`."""
    until: float | None = None
    halved_at: float = 0.0
    changed_at: float = 0.0
    too_many: int | None = None
    """So many agents at work were too many when it was halved last."""


OPEN: Final = Dial()


def trouble_words(kind: TroubleKind, until: float | None, now: float) -> str:
    """Return a trouble as people read it: `limited until 18:22`."""
    return f"{WORDS[kind]} until {time_of_day(until, now)}" if until is not None and until > now else WORDS[kind]


def dial_words(dial: Dial, wanted: int, now: float) -> str:
    """Return what the dial stands at, and why: `6 of 24: limited until 18:22`; empty when nothing is held back."""
    if dial.slots is None or dial.slots >= wanted:
        return ""
    return f"{dial.slots} of {wanted}: {why_turned(dial, now)}"


def why_turned(dial: Dial, now: float) -> str:
    """Return why the dial was turned down."""
    if dial.cause in set(TroubleKind):
        return trouble_words(TroubleKind(dial.cause), dial.until, now)
    return f"{dial.cause} {dial.detail}".strip()


def time_of_day(at: float, now: float) -> str:
    """Return a time as a clock shows it, with its day when that is not within a day from now."""
    return time.strftime("%H:%M" if abs(at - now) < _A_DAY else "%a %H:%M", time.localtime(at))
