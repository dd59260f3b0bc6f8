"""API errors, the throttle and stuck agents: types, events, how events change the state, and their log lines."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from swarm_tui.model.event import Event, LogLine, TestEvent, Value
from swarm_tui.model.formatting import counted

if TYPE_CHECKING:
    from swarm_tui.journal.state import SweepState


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


def throttle_text(throttle: Throttle, wanted: int, now: float) -> str:
    """Return the throttle with its reason: `6 of 24: limited until 18:22`; empty if it has no effect."""
    if throttle.slots is None or throttle.slots >= wanted:
        return ""
    return f"{throttle.slots} of {wanted}: {throttle_reason(throttle, now)}"


def throttle_reason(throttle: Throttle, now: float) -> str:
    """Return the reason of the throttle."""
    if throttle.cause in set(ApiErrorKind):
        return api_error_text(ApiErrorKind(throttle.cause), throttle.until, now)
    return f"{throttle.cause} {throttle.detail}".strip()


def time_of_day(at: float, now: float) -> str:
    """Return a time of day, with the day of the week if it is more than a day from now."""
    return time.strftime("%H:%M" if abs(at - now) < _A_DAY else "%a %H:%M", time.localtime(at))


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """The state of the API access after all events so far."""

    throttle: Throttle = OPEN
    api_error_at: float = 0.0
    """When an agent last had an API error other than a lost login or missing credit."""
    lost: str = ""
    """`login_lost` or `unpaid` while launching is stopped for that reason; otherwise empty."""
    lost_reason: str = ""
    restored_at: float = 0.0
    """When the user last reported that the API works again."""

    @property
    def lost_words(self) -> str:
        """`login lost` or `no credit`; empty if access is not lost."""
        return WORDS[ApiErrorKind(self.lost)] if self.lost else ""

    def is_holding(self, now: float) -> bool:
        """Return whether launching is stopped by a lost login, missing credit or a rate limit."""
        return bool(self.lost) or now < (self.throttle.until or 0.0)

    def after_api_error(self, api_error: ApiError | None, at: float) -> ApiAccess:
        """Return the state after a poll of an agent, with its API error if any."""
        return self if api_error is None or api_error.kind in HOLDING else replace(self, api_error_at=at)


class ThrottleChanged(Event, frozen=True):
    """The throttle changed. The fields are those of `Throttle`."""

    slots: int | None = None
    cause: str = ""
    detail: str = ""
    until: float | None = None
    is_halved: bool = False
    too_many: int | None = None

    def after(self, throttle: Throttle) -> Throttle:
        """Return the throttle after this change."""
        return Throttle(
            slots=self.slots,
            cause=self.cause,
            detail=self.detail,
            until=self.until,
            halved_at=self.at if self.is_halved else throttle.halved_at,
            changed_at=self.at,
            too_many=self.too_many,
        )

    def apply(self, state: SweepState) -> None:
        state.access = replace(state.access, throttle=self.after(state.access.throttle))

    def log_line(self) -> LogLine | None:
        limit = "throttle off" if self.slots is None else f"throttled to {counted(self.slots, 'agent')}"
        if not self.is_halved:
            return self.logged(limit)
        return self.logged(f"{limit}: {throttle_reason(self.after(OPEN), self.at)}", "warning")


class LoginLost(Event, frozen=True):
    """The API refuses the agents' login, or the account has no credit. Launching stops until the user releases it."""

    kind: ApiErrorKind = ApiErrorKind.LOGIN_LOST
    test: str = ""
    reason: str = ""

    def apply(self, state: SweepState) -> None:
        state.access = replace(state.access, lost=self.kind.value, lost_reason=self.reason)

    def log_line(self) -> LogLine | None:
        return self.logged(f"{WORDS[self.kind]}, the queue is held: {self.reason}", "error", self.test)


class LoginRestored(Event, frozen=True):
    """The user reported that the login works again."""

    by: str = ""

    def apply(self, state: SweepState) -> None:
        state.access = replace(state.access, lost="", lost_reason="", restored_at=self.at)

    def log_line(self) -> LogLine | None:
        return self.logged(f"{self.by or 'a user'} released the queue: the API works again")


class AgentStuck(TestEvent, frozen=True):
    """The agent is stuck for this reason; without a reason, it is no longer stuck."""

    reason: str = ""
    is_nudged: bool = False
    """Whether a message is sent to the agent, which happens once for each agent."""

    def apply(self, state: SweepState) -> None:
        record = state.find(self.test)
        is_nudged = self.is_nudged or (record is not None and record.is_nudged)
        state.change(self.test, stuck=self.reason, is_nudged=is_nudged)

    def log_line(self) -> LogLine | None:
        return self.logged(f"stuck: {self.reason}", "warning", self.test) if self.reason else None
